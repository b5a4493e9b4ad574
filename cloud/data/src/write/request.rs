//! A data API request that changes rows.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use futures::FutureExt as _;
use odata::{Address, Key, Literal, Request, ResourcePath};
use resources::{Method, Resource, Source, Version};
use serde_json::{Map, Value};

use super::{Environment, WriteError, WriteResult, Writer};
use crate::database::Database;
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::file::File;
use crate::query::{self, QueryContext};
use crate::record::{self, RowLock};
use crate::transaction::{Retries, Transaction};

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Create a row.
    Post,
    /// Change rows; `MERGE` is the same.
    Patch,
    /// Replace a row according to the body, or create it.
    Put,
    /// Delete rows.
    Delete,
}

/// A request that changes rows.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    /// The version that the names in path, filter and body belong to.
    pub version: Version,
    /// The operation.
    pub verb: Verb,
    /// The rows to change, as parsed by [`odata::parse`].
    pub request: &'a Request,
    /// Values of fields; empty for a DELETE.
    pub body: &'a Map<String, Value>,
    /// The file uploaded for a `release_asset`, which the body's `asset` then names.
    pub file: Option<&'a File>,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// A row was created.
    Created {
        /// Its resource, by its own name.
        resource: &'static str,
        /// Its id.
        id: i64,
    },
    /// This many rows were changed, or deleted.
    Changed(u64),
}

/// Executes a request, completely or not at all. It is repeated if other transactions change the same rows.
///
/// # Errors
/// [`WriteError`]; then nothing is changed.
pub async fn write(
    database: &Database,
    environment: &Environment,
    context: QueryContext<'_>,
    write: Write<'_>,
) -> WriteResult<WriteOutcome> {
    let mut retries = Retries::default();
    let chosen = chosen(database, context, write)
        .boxed()
        .await
        .map_err(|error| write.in_its_names(error))?;
    if let (Some([]), Verb::Delete) = (chosen.as_deref(), write.verb) {
        return Ok(WriteOutcome::Changed(0));
    }
    loop {
        let tried = tried(database, environment, context, write, chosen.as_deref());
        let error = match tried.boxed().await {
            Err(error) => error,
            Ok((transaction, outcome)) => match transaction.commit().await {
                Ok(()) => return Ok(outcome),
                Err(error @ DataError::Contended(_)) => error.into(),
                // If the connection was lost, the changes may have been made, so it must not be repeated here.
                Err(error) => return Err(write.in_its_names(error.into())),
            },
        };
        match error {
            WriteError::Data(error) if retries.again(&error) => {}
            // Somebody else created the row after it was looked up.
            WriteError::Conflict(_) if write.verb == Verb::Put && retries.once_more() => {}
            error => return Err(write.in_its_names(error)),
        }
    }
}

/// How long the selection of rows by a filter may take, before the transaction begins.
const CHOOSING: Duration = Duration::from_secs(5);
/// The maximum number of rows that are checked again by their numbers.
const LISTED: usize = 1000;

/// Selects the rows of a request with a filter, without blocking other writers. The transaction checks them again; if
/// there are few, only those.
async fn chosen(
    database: &Database,
    context: QueryContext<'_>,
    write: Write<'_>,
) -> WriteResult<Option<Vec<i64>>> {
    let method = match write.verb {
        Verb::Patch => Method::Update,
        Verb::Delete => Method::Delete,
        Verb::Post | Verb::Put => return Ok(None),
    };
    let path = addressed(write)?;
    let named = write.resource(&path.resource.text)?;
    let is_list = path.key.is_none() && write.request.options.filter.is_some();
    if !is_list || named.source != Source::Table {
        return Ok(None);
    }
    let context = write.context(context);
    if !query::any_right(&context, named.name, method)? {
        return Err(WriteError::NoRights);
    }
    let (_, select) = query::rows(&context, write.request, method)?;
    let ids = tokio::time::timeout(CHOOSING, database.ids(&select)).await;
    let ids = ids.map_err(|_| DataError::TooSlow(sqlx::Error::PoolTimedOut))??;
    Ok(Some(ids).filter(|ids| ids.len() <= LISTED))
}

/// Executes the request once; returns the transaction to commit, and the result.
async fn tried(
    database: &Database,
    environment: &Environment,
    context: QueryContext<'_>,
    write: Write<'_>,
    chosen: Option<&[i64]>,
) -> WriteResult<(Transaction, WriteOutcome)> {
    let mut transaction = database.begin().await?;
    let mut writer = Writer::new(&mut transaction, context, environment);
    writer.file = write.file;
    writer.chosen = chosen;
    let outcome = match write.verb {
        Verb::Post => writer.post(write).await?,
        Verb::Patch => writer.patch(write).await?,
        Verb::Put => writer.put(write).await?,
        Verb::Delete => writer.delete(write).await?,
    };
    Ok((transaction, outcome))
}

impl Writer<'_> {
    async fn post(&mut self, write: Write<'_>) -> WriteResult<WriteOutcome> {
        let path = path(write)?;
        if path.key.is_some() || !path.links.is_empty() || path.tail != odata::Tail::Records {
            return Err(WriteError::refused(
                "to create a record, POST to its resource without a key",
            ));
        }
        let resource = write.resource(&path.resource.text)?;
        let table = self.table(resource.table, Method::Create)?;
        let body = Cow::Borrowed(write.body);
        let translated = self
            .in_current_names(write, resource, Method::Create, body)
            .await?;
        let id = self.create_from_body(write, resource, &translated).await?;
        Ok(WriteOutcome::Created {
            resource: table.name,
            id,
        })
    }

    async fn patch(&mut self, write: Write<'_>) -> WriteResult<WriteOutcome> {
        let path = addressed(write)?;
        if write.body.is_empty() {
            return Err(WriteError::refused("the body names no field to be changed"));
        }
        let resource = write.resource(&path.resource.text)?;
        let (table, ids) = self.rows(write, Method::Update).await?;
        let body = Cow::Borrowed(write.body);
        let translated = self
            .in_current_names(write, resource, Method::Update, body)
            .await?;
        Ok(WriteOutcome::Changed(
            self.change_from_body(table, &ids, &translated).await?,
        ))
    }

    async fn put(&mut self, write: Write<'_>) -> WriteResult<WriteOutcome> {
        let path = path(write)?;
        let Some(key) = &path.key else {
            return Err(WriteError::refused(
                "a PUT names its record by a key, such as `device_tag(device=1,tag_key='place')`",
            ));
        };
        let resource = write.resource(&path.resource.text)?;
        let table = self.table(resource.table, Method::Update)?;
        self.table(resource.table, Method::Create)?;
        let mut body = write.body.clone();
        if let Key::Fields(fields) = key {
            for (name, value) in fields {
                body.insert(name.text.clone(), constant(write.request, value)?);
            }
        }
        let (_, ids) = self.rows(write, Method::Update).await?;
        let method = if ids.is_empty() {
            Method::Create
        } else {
            Method::Update
        };
        let translated = self
            .in_current_names(write, resource, method, Cow::Owned(body))
            .await?;
        if ids.is_empty() {
            if matches!(key, Key::Id(_)) {
                return Err(WriteError::refused(format!(
                    "there is no such record of `{}`, and the cloud chooses the id of a new one: use POST, or a PUT by its \
                     other keys",
                    resource.name
                )));
            }
            self.create_from_body(write, resource, &translated).await?;
            return Ok(WriteOutcome::Changed(1));
        }
        self.replace_from_body(table, &ids, &translated).await
    }

    async fn delete(&mut self, write: Write<'_>) -> WriteResult<WriteOutcome> {
        let path = addressed(write)?;
        let (resource, ids) = self.rows(write, Method::Delete).await?;
        if ids.is_empty() && resource == "application" && path.key.is_some() {
            return Err(WriteError::NotFound("there is no such fleet".to_owned()));
        }
        if ids.is_empty() && resource == "user" {
            return Err(WriteError::refused("users can delete only themselves"));
        }
        Ok(WriteOutcome::Changed(self.remove(resource, &ids).await?))
    }

    /// Returns the rows of a request on which the caller has the right. Nobody else can change them until the
    /// transaction ends.
    async fn rows(
        &mut self,
        write: Write<'_>,
        method: Method,
    ) -> WriteResult<(&'static str, Vec<i64>)> {
        let named = write.resource(&path(write)?.resource.text)?;
        let resource: &'static Resource = self.table(named.table, method)?;
        let context = write.context(self.context);
        let (_, mut select) = query::rows(&context, write.request, method)?;
        if let Some(chosen) = self.chosen {
            query::among(&mut select, chosen);
        }
        let mut ids = self.transaction.ids(&select).await?;
        if self.transaction.dialect() == Dialect::Postgres && !ids.is_empty() {
            // Not in one statement: for a row that it had to wait for, PostgreSQL would check the new values, but the
            // old values of linked rows.
            let lock = match method {
                Method::Delete => RowLock::ToDelete,
                _ => RowLock::ToChange,
            };
            record::lock(self.transaction, resource.name, &ids, lock).await?;
            let locked: BTreeSet<i64> = ids.into_iter().collect();
            ids = self.transaction.ids(&select).await?;
            ids.retain(|id| locked.contains(id));
        }
        ids.sort_unstable();
        Ok((resource.name, ids))
    }
}

fn path(write: Write<'_>) -> WriteResult<&ResourcePath> {
    match &write.request.address {
        Address::Resource(path) => Ok(path),
        Address::Metadata => Err(WriteError::refused("`$metadata` is read only")),
    }
}

/// Checks that a request selects rows by a key or a filter, so that nobody changes all rows by omitting both.
fn addressed(write: Write<'_>) -> WriteResult<&ResourcePath> {
    let path = path(write)?;
    if path.key.is_none() && write.request.options.filter.is_none() {
        return Err(WriteError::Refused(format!(
            "which records of `{}`? Name one by its key or several by `$filter` (`$filter=true` is all of them)",
            path.resource.text
        )));
    }
    Ok(path)
}

/// Converts a value of a key to the form in a body.
fn constant(request: &Request, value: &odata::Value) -> WriteResult<Value> {
    let literal = match value {
        odata::Value::Literal(literal) => literal,
        odata::Value::Alias(name) => request
            .options
            .aliases
            .get(&name.text)
            .ok_or_else(|| WriteError::Refused(format!("`@{}` has no value", name.text)))?,
    };
    Ok(match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => (*flag).into(),
        Literal::Integer(number) => (*number).into(),
        Literal::Decimal(text)
        | Literal::Text(text)
        | Literal::DateTime(text)
        | Literal::Duration(text) => text.as_str().into(),
    })
}
