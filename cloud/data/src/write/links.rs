//! Checks of the targets of written links.

use std::collections::BTreeSet;

use resources::{Method, OnDelete, Resource, Role, Rows, StoredValue, Type};

use super::{Change, WriteError, WriteResult, Writer, known};
use crate::caller::{Caller, SystemPurpose};
use crate::query::QueryContext;
use crate::record::Record;
use crate::statement::sql;

impl Writer<'_> {
    /// Checks that each link leads to a row that the caller may read, or to the caller itself.
    pub(super) async fn check_links(
        &mut self,
        resource: &'static Resource,
        values: &Record,
        method: Method,
    ) -> WriteResult {
        for (name, value) in values.iter() {
            let (Some(field), StoredValue::Integer(id)) = (resource.find_field(name), value) else {
                continue;
            };
            let Type::Link { to, on_delete } = field.kind else {
                continue;
            };
            if on_delete == OnDelete::Ignore {
                continue;
            }
            let context = match to {
                // The body contained the invited address itself, and its row exists only for that reason.
                "invitee" => QueryContext {
                    caller: &Caller::Platform(SystemPurpose::Rules),
                    ..self.context
                },
                _ => self.context,
            };
            let right = self.transaction.right(&context, to, *id, Method::Read);
            if right.await?.is_none() && !self.is_its_own(to, *id).await? {
                return Err(self.hidden(resource, name, to, *id, method));
            }
        }
        Ok(())
    }

    /// Checks that the caller may change both the old and the new owner of each row.
    pub(super) async fn check_both_ends(
        &mut self,
        resource: &'static Resource,
        changes: &[Change],
    ) -> WriteResult {
        if self.is_platform() {
            return Ok(());
        }
        for field in resource.fields.iter().filter(|field| field.belongs) {
            let Type::Link { to, .. } = field.kind else {
                continue;
            };
            let mut ends = BTreeSet::new();
            for change in changes.iter().filter(|change| change.alters(field.name)) {
                ends.extend(change.old.number(field.name));
                ends.extend(change.new.number(field.name));
            }
            for end in ends {
                let right = self
                    .transaction
                    .right(&self.context, to, end, Method::Update);
                if right.await?.is_none() {
                    return Err(WriteError::NoRights);
                }
            }
        }
        Ok(())
    }

    /// Returns whether a row is that of the caller's credential: a provisioning key cannot read its fleet, but creates
    /// devices in it.
    async fn is_its_own(&mut self, to: &str, id: i64) -> WriteResult<bool> {
        let has_actor = |field: &resources::Field| field.owns && field.name == "actor";
        let (Some(actor), true) = (self.actor(), known(to)?.fields.iter().any(has_actor)) else {
            return Ok(false);
        };
        let select = format!("SELECT id FROM \"{to}\" WHERE id = ? AND actor = ?");
        let its_own = sql(select).with(id).with(actor);
        Ok(self.transaction.id(&its_own).await?.is_some())
    }

    /// Returns the error for a link to a row that the caller cannot see.
    fn hidden(
        &self,
        resource: &Resource,
        name: &str,
        to: &str,
        id: i64,
        method: Method,
    ) -> WriteError {
        let by_that = |role: Role| {
            resource.grants.iter().any(|grant| {
                grant.role == role
                    && grant.methods.has(method)
                    && matches!(grant.rows, Rows::Through(field) if field == name)
            })
        };
        match (self.context.caller, method, name) {
            (_, Method::Update, "belongs_to__application") if resource.name == "device" => {
                WriteError::NotFound(format!("there is no fleet {id}"))
            }
            // It knows only its own fleet.
            (caller, Method::Create, _) if caller.role() == Some(Role::ProvisioningKey) => {
                WriteError::NoRights
            }
            // The right to create the row is the right to change its owner.
            (caller, Method::Create, _) if caller.role().is_some_and(by_that) => {
                WriteError::NoRights
            }
            _ => WriteError::Refused(format!("`{name}`: there is no `{to}` {id}")),
        }
    }
}
