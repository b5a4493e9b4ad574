//! Organizations and their members (cloud behaviour 1.12, 5.16).

use super::affected;
use crate::record::{self, Record};
use crate::statement::sql;
use crate::write::{Change, WriteError, Writer, known};

/// A member is an ordinary one unless another role is given.
pub(super) async fn before_membership(
    writer: &mut Writer<'_>,
    change: &mut Change,
) -> Result<(), WriteError> {
    if change.number("organization_membership_role").is_none() {
        let role = role(writer, "member").await?;
        change.new.set_number("organization_membership_role", role);
    }
    Ok(())
}

/// Whoever makes an organization is its first administrator.
pub(super) async fn after_organization(
    writer: &mut Writer<'_>,
    change: &Change,
) -> Result<(), WriteError> {
    let Some(user) = writer.user() else {
        return Ok(());
    };
    let role = role(writer, "administrator").await?;
    let mut membership = Record::default();
    membership.set_number("created_at", writer.now());
    membership.set_number("modified_at", writer.now());
    membership.set_number("user", user);
    membership.set_number("is_member_of__organization", change.id);
    membership.set_number("organization_membership_role", role);
    let resource = known("organization_membership")?;
    record::insert(writer.transaction, resource, &membership).await?;
    Ok(())
}

/// Slugs of fleets begin with the handle of their organization.
pub(super) async fn after_organization_change(
    writer: &mut Writer<'_>,
    changes: &[Change],
) -> Result<(), WriteError> {
    for change in changes.iter().filter(|change| change.alters("handle")) {
        let update = sql(
            "UPDATE application SET slug = lower(CAST(? AS TEXT) || '/' || app_name), modified_at = ? \
             WHERE organization = ?",
        )
        .with(change.text("handle").unwrap_or_default())
        .with(writer.now())
        .with(change.id);
        writer.transaction.execute(&update).await?;
        let fleets = record::leading_to(
            writer.transaction,
            "application",
            "organization",
            &[change.id],
        )
        .await?;
        affected::fleets(writer, fleets);
    }
    Ok(())
}

async fn role(writer: &mut Writer<'_>, name: &str) -> Result<i64, WriteError> {
    let role = sql("SELECT id FROM organization_membership_role WHERE name = ?").with(name);
    writer
        .transaction
        .id(&role)
        .await?
        .ok_or_else(|| WriteError::Broken(format!("there is no role of members `{name}`")))
}
