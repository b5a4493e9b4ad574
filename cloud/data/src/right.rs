//! Rights on rows, as found by a check: hand-written statements that answer a caller are built from them.

use resources::{Method, Role, Rows};

use crate::caller::Caller;
use crate::database::Database;
use crate::error::DataError;
use crate::query::{self, QueryContext, QueryError, Right};
use crate::refusal::WriteResult;
use crate::row::Row;
use crate::statement::{Sql, sql};
use crate::transaction::Transaction;

/// Proof of a caller's right on a row. It exists only after a check: [`Database::right`], [`Database::rights`] and
/// [`Transaction::right`] query the database, [`RowRight::from_device_key`] checks the declared rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRight {
    table: &'static str,
    id: i64,
    right: Right,
}

impl RowRight {
    /// Returns the number of the row.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Returns whether this is that right on the row with this number.
    #[must_use]
    pub fn is_to(&self, right: impl Into<Right>, table: &str, id: i64) -> bool {
        self.table == table && self.id == id && self.right == right.into()
    }

    /// Creates a statement about the row. Its first `?` is the row's number; further values are added in order.
    #[must_use]
    pub fn sql(&self, text: &'static str) -> Sql {
        debug_assert!(
            text.contains(self.table),
            "not about a {}: {text}",
            self.table
        );
        sql(text).with(self.id)
    }

    /// Creates a statement about several rows: their numbers replace its first `?`, in parentheses (`id IN (?)`).
    #[must_use]
    pub fn sql_of_all(rights: &[RowRight], text: &'static str) -> Sql {
        let ids: Vec<i64> = rights.iter().map(RowRight::id).collect();
        sql(text).with_all(&ids)
    }

    /// Returns the right of a device on its own row, with its key: without a statement, for the frequent requests of
    /// devices. `None` if the key belongs to another actor, or the model declares no such right of devices on
    /// themselves. The caller must know that the row `device` has this actor.
    #[must_use]
    pub fn from_device_key(
        caller: &Caller,
        device: i64,
        actor: i64,
        right: impl Into<Right>,
    ) -> Option<RowRight> {
        let right = right.into();
        let resource = resources::v7().resource("device")?;
        let itself = |role: Role, rows: Rows| {
            role == Role::DeviceKey && rows == Rows::Where("actor eq @actor")
        };
        let is_declared = match right {
            Right::Method(method) => resource
                .grants
                .iter()
                .any(|grant| grant.methods.has(method) && itself(grant.role, grant.rows)),
            Right::Action(action) => resource
                .permits
                .iter()
                .any(|permit| permit.action == action && itself(permit.role, permit.rows)),
        };
        let is_itself = caller.role() == Some(Role::DeviceKey) && caller.actor() == Some(actor);
        (is_declared && is_itself).then_some(RowRight {
            table: resource.table,
            id: device,
            right,
        })
    }
}

/// Checks a right on a row with a query executed by `row`. Returns `None` also if the caller has no rights on the
/// resource at all.
async fn found(
    context: &QueryContext<'_>,
    resource: &str,
    id: i64,
    right: Right,
    row: impl AsyncFnOnce(query::CompiledQuery) -> Result<Option<Row>, DataError>,
) -> WriteResult<Option<RowRight>> {
    let Some(declared) = context.model.resource(resource) else {
        return Ok(None);
    };
    let table = declared.table;
    match query::permitted(context, resource, id, right) {
        Ok(select) => Ok(row(select).await?.map(|_| RowRight { table, id, right })),
        Err(QueryError::NoRights(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Database {
    /// Returns this right of the context's caller on the row with this number, if it has it.
    ///
    /// # Errors
    /// [`WriteError`]; a missing right is not an error.
    pub async fn right(
        &self,
        context: &QueryContext<'_>,
        resource: &str,
        id: i64,
        right: impl Into<Right>,
    ) -> WriteResult<Option<RowRight>> {
        let row = async |select| self.row(&select).await;
        found(context, resource, id, right.into(), row).await
    }

    /// Returns this right on each of the rows that a request selects.
    ///
    /// # Errors
    /// [`WriteError`]; also if the caller has no rights on the resource at all.
    pub async fn rights(
        &self,
        context: &QueryContext<'_>,
        request: &odata::Request,
        method: Method,
    ) -> WriteResult<Vec<RowRight>> {
        let (table, select) = query::rows(context, request, method)?;
        let rows = self.rows(&select).await?;
        let right = Right::Method(method);
        let rights = rows.iter().map(|row| {
            let id = row.id(0)?;
            Ok(RowRight { table, id, right })
        });
        rights.collect()
    }
}

impl Transaction {
    /// Like [`Database::right`], including the changes of this transaction.
    ///
    /// # Errors
    /// [`WriteError`]; a missing right is not an error.
    pub async fn right(
        &mut self,
        context: &QueryContext<'_>,
        resource: &str,
        id: i64,
        right: impl Into<Right>,
    ) -> WriteResult<Option<RowRight>> {
        let row = async |select| self.row(&select).await;
        found(context, resource, id, right.into(), row).await
    }
}

#[cfg(test)]
mod tests {
    use resources::Action;

    use super::*;

    fn key(role: Role, actor: i64) -> Caller {
        Caller::Holder {
            role,
            actor: Some(actor),
            user: None,
        }
    }

    #[test]
    fn a_device_has_the_declared_rights_on_itself_and_no_others() {
        let own = key(Role::DeviceKey, 5);
        let to_read = RowRight::from_device_key(&own, 7, 5, Method::Read);
        let to_read = to_read.expect("a device reads itself");
        assert!(to_read.is_to(Method::Read, "device", 7));
        assert!(!to_read.is_to(Method::Update, "device", 7));
        assert!(!to_read.is_to(Method::Read, "device", 8));
        assert!(!to_read.is_to(Method::Read, "application", 7));
        for action in [Action::ReadTargetState, Action::WriteLog, Action::CloudLink] {
            assert!(RowRight::from_device_key(&own, 7, 5, action).is_some());
        }
        for right in [
            Right::from(Method::Delete),
            Right::from(Method::Create),
            Right::from(Action::CreateDeviceKey),
        ] {
            assert_eq!(RowRight::from_device_key(&own, 7, 5, right), None);
        }
        for other in [
            key(Role::DeviceKey, 6),
            key(Role::ProvisioningKey, 5),
            key(Role::User, 5),
            Caller::guest(),
        ] {
            assert_eq!(RowRight::from_device_key(&other, 7, 5, Method::Read), None);
        }
    }
}
