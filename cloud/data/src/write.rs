//! Changes of rows, by any caller (docs/spec/cloud.md#odata-writes, docs/spec/cloud.md#rules).
//!
//! ```text
//! body ── body     values of fields, and who may write each field
//!      ├─ links    a written link must lead to a row that the caller may read
//!      ├─ rules    constraints between rows; values of derived fields (RowRules)
//!      ├─ record   the statements
//!      └─ after    the caller may create or change the resulting row; consequences; effects
//! ```
//!
//! [`write`] executes one request of the data API in its own transaction. A [`Writer`] makes several changes in a
//! transaction begun by the server, most of them as [`Caller::Platform`].

mod body;
mod cascade;
mod change;
mod compat;
mod create;
mod links;
mod request;
mod row_rules;
mod sealing;

use resources::{Branding, Method, Model, Resource, Role, Source};
use serde_json::{Map, Value};

pub use crate::refusal::{WriteError, WriteResult};
pub(crate) use cascade::RowsToDelete;
pub(crate) use change::{Change, altering, targets};
pub use request::{Verb, Write, WriteOutcome, write};
pub(crate) use row_rules::RowRules;

use crate::caller::{Caller, SystemPurpose};
use crate::file::File;
use crate::keyring::Keyring;
use crate::query::{self, QueryContext};
use crate::quota::{self, Quotas};
use crate::record::{self, RowLock};
use crate::transaction::{Retries, Transaction};

/// The configuration that writes depend on.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Names that a vendor can change.
    pub branding: Branding,
    /// The host (and port) of the registry, the beginning of image locations.
    pub registry: String,
    /// Whether the cloud has the registry delete removed images, and so keeps their locations until then.
    pub deletes_images: bool,
    /// What organizations may store.
    pub quotas: Quotas,
    /// The keys that encrypt secrets.
    pub keyring: Keyring,
    /// The rules between rows: [`ROW_RULES`](crate::ROW_RULES).
    pub rules: Rules,
}

/// The rules between rows that a [`Writer`] applies.
#[derive(Debug, Clone, Copy)]
pub struct Rules(pub(crate) &'static dyn RowRules);

/// Changes rows in a transaction, for one caller.
pub struct Writer<'a> {
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) context: QueryContext<'a>,
    pub(crate) environment: &'a Environment,
    /// Whether the caller may write the fields that devices report.
    pub(crate) reports: bool,
    /// The file uploaded with the request.
    pub(crate) file: Option<&'a File>,
    /// The only rows of the request to change, selected before the transaction began.
    pub(crate) chosen: Option<&'a [i64]>,
}

impl<'a> Writer<'a> {
    /// Creates a writer for rows of this transaction. The context's model must be [`resources::v7`]: requests of older
    /// versions are translated before.
    #[must_use]
    pub fn new(
        transaction: &'a mut Transaction,
        context: QueryContext<'a>,
        environment: &'a Environment,
    ) -> Self {
        Writer {
            transaction,
            context,
            environment,
            reports: false,
            file: None,
            chosen: None,
        }
    }

    /// Also accepts device reports from this caller: a device registers with the key of a fleet or of a user.
    #[must_use]
    pub fn with_reports(mut self) -> Self {
        self.reports = true;
        self
    }

    /// Creates a writer for this transaction as the cloud itself, at `now` in milliseconds.
    #[must_use]
    pub fn platform(
        purpose: SystemPurpose,
        transaction: &'a mut Transaction,
        environment: &'a Environment,
        now: i64,
    ) -> Self {
        let context = QueryContext {
            model: model(),
            dialect: transaction.dialect(),
            caller: purpose.caller(),
            now,
            addresses: "",
            always_addressed: false,
            lenient: false,
            tunnel_variables: &[],
            origin: "",
        };
        Writer::new(transaction, context, environment)
    }

    /// Returns a writer that acts as the cloud itself: what follows from a change requires no right of the caller.
    pub(crate) fn as_platform(&mut self) -> Writer<'_> {
        let context = QueryContext {
            caller: &Caller::Platform(SystemPurpose::Rules),
            ..self.context
        };
        Writer::new(self.transaction, context, self.environment)
    }

    /// Returns the transaction, for the server's own statements.
    pub fn transaction(&mut self) -> &mut Transaction {
        self.transaction
    }

    /// Returns the time of the request, in milliseconds.
    pub(crate) fn now(&self) -> i64 {
        self.context.now
    }

    /// Returns the calling user, if it is one.
    pub(crate) fn user(&self) -> Option<i64> {
        self.context.caller.user()
    }

    /// Returns the calling actor, if it is one.
    pub(crate) fn actor(&self) -> Option<i64> {
        self.context.caller.actor()
    }

    /// Returns whether the caller is a device, with its key.
    pub(crate) fn is_device(&self) -> bool {
        self.context.caller.role() == Some(Role::DeviceKey)
    }

    pub(crate) fn is_platform(&self) -> bool {
        matches!(self.context.caller, Caller::Platform(_))
    }

    /// Checks that no quota is exceeded after this row was created or changed.
    pub(crate) async fn check_quotas(&mut self, resource: &str, row: i64) -> WriteResult {
        quota::check(self.transaction, &self.environment.quotas, resource, row).await
    }

    /// Locks these rows for a change by this transaction.
    pub(crate) async fn lock(&mut self, table: &str, ids: &[i64]) -> WriteResult {
        Ok(record::lock(self.transaction, table, ids, RowLock::ToChange).await?)
    }

    /// Returns a resource that has a table, and on which the caller has any right of this kind.
    fn table(&self, name: &str, method: Method) -> WriteResult<&'static Resource> {
        let resource = known(name)?;
        if resource.source != Source::Table {
            return Err(WriteError::NoRights);
        }
        if query::any_right(&self.context, resource.name, method)? {
            Ok(resource)
        } else {
            Err(WriteError::NoRights)
        }
    }
}

/// Returns the values of a row by the names of its fields.
#[must_use]
pub fn row(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Runs `attempt`, which makes changes in a transaction, and repeats it from the beginning a few times if other
/// transactions were changing the same rows. A commit that failed because the connection was lost is also repeated: use
/// it only for changes that may be made twice.
///
/// # Errors
/// Those of the last `attempt`.
pub async fn retried<T, A: Future<Output = WriteResult<T>>>(
    attempt: impl Fn() -> A,
) -> WriteResult<T> {
    let mut retries = Retries::default();
    loop {
        match attempt().await {
            Err(WriteError::Data(error)) if retries.again(&error) => {}
            result => return result,
        }
    }
}

/// Returns the model that writes use.
fn model() -> &'static Model {
    resources::v7()
}

/// Returns the resource with a name or synonym.
pub(crate) fn known(name: &str) -> WriteResult<&'static Resource> {
    model().resource(name).ok_or(WriteError::NoRights)
}
