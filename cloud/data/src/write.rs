//! Changes of rows, by whoever asks for them (docs/spec/cloud.md#odata-writes, docs/spec/cloud.md#rules).
//!
//! ```text
//! body ── body     values of fields, whose word each field takes
//!      ├─ links    a link that is written leads to a row that the caller may read
//!      ├─ rules    what holds between rows; what other fields become (crate::rules)
//!      ├─ record   the statements
//!      └─ after    the row is one that the caller may make or change; what follows; effects
//! ```
//!
//! [`write`] does one request of the data API in a transaction of its own. A [`Writer`] does several changes
//! in a transaction that the server began, most of them as [`Caller::Platform`].

mod body;
mod cascade;
mod change;
mod create;
mod links;
mod older;
mod request;
mod sealing;

use resources::{Branding, Method, Model, Resource, Role, Source};
use serde_json::{Map, Value};

pub use crate::refusal::{WriteError, WriteResult};
pub(crate) use cascade::RowsToDelete;
pub(crate) use change::{Change, altering, targets};
pub use request::{Verb, Write, WriteOutcome, write};

use crate::caller::{Caller, SystemPurpose};
use crate::file::File;
use crate::keyring::Keyring;
use crate::query::{self, QueryContext};
use crate::quota::{self, Quotas};
use crate::record::{self, RowLock};
use crate::transaction::{Retries, Transaction};

/// What of writes is configured.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Names that a vendor changes.
    pub branding: Branding,
    /// The host (and port) of the registry, which locations of images begin with.
    pub registry: String,
    /// Whether the cloud has the registry delete images that are no more, and so keeps their locations until then.
    pub deletes_images: bool,
    /// What organizations may keep.
    pub quotas: Quotas,
    /// By which keys secrets are encrypted.
    pub keyring: Keyring,
}

/// Changes rows in a transaction, for one caller.
pub struct Writer<'a> {
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) context: QueryContext<'a>,
    pub(crate) environment: &'a Environment,
    /// Fields that devices report take the caller's word.
    pub(crate) reports: bool,
    /// What was uploaded with the request.
    pub(crate) file: Option<&'a File>,
    /// Of the rows that the request means, these alone: they were chosen before the transaction began.
    pub(crate) chosen: Option<&'a [i64]>,
}

impl<'a> Writer<'a> {
    /// Changes rows of this transaction. The context's model must be [`resources::v7`]: older versions are
    /// translated before.
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

    /// Takes what devices report of themselves from this caller as well: a device that registers does so by
    /// the key of a fleet or of a user.
    #[must_use]
    pub fn with_reports(mut self) -> Self {
        self.reports = true;
        self
    }

    /// Changes rows of this transaction as the cloud itself, at `now` in milliseconds.
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

    /// The same, in the name of the cloud: what follows from a change needs no right of whoever made it.
    pub(crate) fn as_platform(&mut self) -> Writer<'_> {
        let context = QueryContext {
            caller: &Caller::Platform(SystemPurpose::Rules),
            ..self.context
        };
        Writer::new(self.transaction, context, self.environment)
    }

    /// The transaction, for statements of the server's own.
    pub fn transaction(&mut self) -> &mut Transaction {
        self.transaction
    }

    /// The moment of the request, in milliseconds.
    pub(crate) fn now(&self) -> i64 {
        self.context.now
    }

    /// The user who asks, where it is one.
    pub(crate) fn user(&self) -> Option<i64> {
        self.context.caller.user()
    }

    /// The actor that asks, where it is one.
    pub(crate) fn actor(&self) -> Option<i64> {
        self.context.caller.actor()
    }

    /// Whether it is a device that asks, by its key.
    pub(crate) fn is_device(&self) -> bool {
        self.context.caller.role() == Some(Role::DeviceKey)
    }

    pub(crate) fn is_platform(&self) -> bool {
        matches!(self.context.caller, Caller::Platform(_))
    }

    /// Nothing is more than it may be by a quota now that this row was made, or that it was changed.
    pub(crate) async fn check_quotas(&mut self, resource: &str, row: i64) -> WriteResult {
        quota::check(self.transaction, &self.environment.quotas, resource, row).await
    }

    /// Takes these rows for this transaction alone, to change them.
    pub(crate) async fn lock(&mut self, table: &str, ids: &[i64]) -> WriteResult {
        Ok(record::lock(self.transaction, table, ids, RowLock::ToChange).await?)
    }

    /// A resource that has a table, and on which the caller has any right of this kind.
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

/// The values of a row by the names of its fields.
#[must_use]
pub fn row(fields: Value) -> Map<String, Value> {
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Has `attempt` make changes in a transaction, and again from its begin, a few times, where others were at the same
/// rows. A commit that failed because the connection was lost is such a failure as well: only what may be done twice
/// goes through here.
///
/// # Errors
/// As `attempt`, the last time.
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

/// The model that writes go by.
fn model() -> &'static Model {
    resources::v7()
}

/// The resource of a name or synonym.
pub(crate) fn known(name: &str) -> WriteResult<&'static Resource> {
    model().resource(name).ok_or(WriteError::NoRights)
}
