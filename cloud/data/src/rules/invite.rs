//! Invites to organizations and fleets (docs/spec/cloud.md#model-invites).

use resources::{Resource, StoredValue};
use serde_json::{Map, Value};

use super::people;
use crate::random;
use crate::record::{self, Record};
use crate::statement::sql;
use crate::write::{Change, WriteError, WriteResult, Writer, known};

/// How long an invite can be accepted, in milliseconds.
const LASTS: i64 = 7 * 24 * 3600 * 1000;

/// Sets the invitee from the address in a body; each address has its own row. Rows of other invitees are never shown,
/// so bodies do not contain their numbers.
pub(super) async fn invitee(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    body: &Map<String, Value>,
    values: &mut Record,
) -> WriteResult {
    let is_invite = matches!(resource.name, "organization_invite" | "application_invite");
    if !is_invite || values.has("invitee") {
        return Ok(());
    }
    let address = body.get("invitee").filter(|address| address.is_string());
    let Some(address) = address else {
        return Err(WriteError::refused(
            "`invitee` is required: an address such as `name@example.com`",
        ));
    };
    let invitee = known("invitee")?;
    let field = invitee
        .find_field("email")
        .ok_or_else(|| WriteError::Broken("an invitee has no address".to_owned()))?;
    let StoredValue::Text(email) = field.take(address, &writer.environment.branding)? else {
        return Err(WriteError::refused("`invitee` must be an address"));
    };
    let id = match record::with_value(writer.transaction, "invitee", "email", &email).await? {
        Some(id) => id,
        None => {
            let mut row = Record::made_at(writer.now());
            row.set_text("email", email);
            record::insert(writer.transaction, invitee, &row).await?
        }
    };
    values.set_number("invitee", id);
    Ok(())
}

/// Gives a new invite its token and expiry, and deletes expired ones for the same address.
pub(super) async fn before_create(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    change: &mut Change,
) -> WriteResult {
    if change.text("invitation_token").is_none() {
        change.new.set_text("invitation_token", random::digits()?);
    }
    if change.number("expiry_date").is_none() {
        let expires = writer.now().saturating_add(LASTS);
        change.new.set_number("expiry_date", expires);
    }
    if let Some(user) = writer.user() {
        change.new.set_number("is_created_by__user", user);
    }
    let (role, link) = match resource.name {
        "organization_invite" => (people::MEMBER, "is_invited_to__organization"),
        _ => (people::DEVELOPER, "is_invited_to__application"),
    };
    role.give_to(writer, change).await?;
    let over = format!(
        "DELETE FROM {} WHERE invitee = ? AND {link} = ? AND expiry_date <= ?",
        resource.name
    );
    let over = sql(over)
        .with(change.number("invitee").unwrap_or_default())
        .with(change.number(link).unwrap_or_default())
        .with(writer.now());
    writer.transaction.execute(&over).await?;
    Ok(())
}
