//! Organizations and their members (docs/spec/cloud.md#model-organizations, docs/spec/cloud.md#rule-handles).

use resources::{Method, Resource, StoredValue};
use serde_json::{Map, Value};

use super::affected;
use crate::query;
use crate::record::{self, Record};
use crate::statement::{AT_ONCE, sql};
use crate::write::{Change, WriteError, WriteResult, Writer, known};

/// Sets the new member from a username in the body, if it does not contain the user's number.
pub(super) async fn member(
    writer: &mut Writer<'_>,
    resource: &'static Resource,
    body: &Map<String, Value>,
    values: &mut Record,
) -> WriteResult {
    let is_membership = matches!(
        resource.name,
        "organization_membership" | "user_application_membership" | "team_membership"
    );
    let Some(name) = body.get("username").filter(|_| is_membership) else {
        return Ok(());
    };
    if values.has("user") {
        return Ok(());
    }
    // The same error whether the user does not exist or is unknown to the caller, so that nobody can find out which
    // users exist.
    let nobody = || {
        WriteError::refused(
            "`username`: you share neither an organization nor a fleet with a user of this name; invite them by \
             `organization_invite` or `application_invite`",
        )
    };
    let field = known("user")?.find_field("username");
    let field = field.ok_or_else(|| WriteError::Broken("a user has no name".to_owned()))?;
    let StoredValue::Text(name) = field.take(name, &writer.environment.branding)? else {
        return Err(nobody());
    };
    let id = record::with_value(writer.transaction, "user", "username", &name).await?;
    let id = id.ok_or_else(nobody)?;
    let readable = query::permitted(&writer.context, "user", id, Method::Read)?;
    if writer.transaction.id(&readable).await?.is_none() {
        return Err(nobody());
    }
    values.set_number("user", id);
    Ok(())
}

/// The role of rows of one kind that do not specify another.
pub(super) struct DefaultRole {
    /// The link to the role, which has the name of the linked resource.
    link: &'static str,
    name: &'static str,
}

/// Members are ordinary ones by default.
pub(super) const MEMBER: DefaultRole = DefaultRole {
    link: "organization_membership_role",
    name: "member",
};

/// People with whom a fleet is shared may change it by default.
pub(super) const DEVELOPER: DefaultRole = DefaultRole {
    link: "application_membership_role",
    name: "developer",
};

impl DefaultRole {
    pub(super) async fn give_to(
        &self,
        writer: &mut Writer<'_>,
        change: &mut Change,
    ) -> WriteResult {
        if change.number(self.link).is_none() {
            let role = role(writer, self.link, self.name).await?;
            change.new.set_number(self.link, role);
        }
        Ok(())
    }
}

/// The maximum length of a handle derived from a name; a number may follow.
const MADE_HANDLE: usize = 80;

/// Derives the handle of an organization without one from its name, with a number if it is already in use
/// (docs/spec/cloud.md#model-organizations).
pub(super) async fn before_organization(
    writer: &mut Writer<'_>,
    change: &mut Change,
) -> WriteResult {
    if change.text("handle").is_some() {
        return Ok(());
    }
    let name = change.text("name").unwrap_or_default().to_lowercase();
    let words = name.split(|it: char| !it.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut handle: String = words.join("_").chars().take(MADE_HANDLE).collect();
    if handle.is_empty() || writer.environment.branding.is_reserved_handle(&handle) {
        handle = "organization".to_owned();
    }
    // The `_` in the handle matches any character here; additional matches do no harm.
    let alike =
        sql("SELECT handle FROM organization WHERE handle LIKE ?").with(format!("{handle}%"));
    let alike = writer.transaction.texts(&alike).await?;
    let is_taken = |handle: &str| alike.iter().flatten().any(|it| it == handle);
    let (mut free, mut number) = (handle.clone(), 2);
    while is_taken(&free) {
        free = format!("{handle}_{number}");
        number += 1;
    }
    change.new.set_text("handle", free);
    Ok(())
}

/// Makes the creator of an organization its first administrator.
pub(super) async fn after_organization(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let Some(user) = writer.user() else {
        return Ok(());
    };
    let role = role(writer, MEMBER.link, "administrator").await?;
    let mut membership = Record::made_at(writer.now());
    membership.set_number("user", user);
    membership.set_number("is_member_of__organization", change.id);
    membership.set_number("organization_membership_role", role);
    let resource = known("organization_membership")?;
    let id = record::insert(writer.transaction, resource, &membership).await?;
    writer.check_quotas(resource.name, id).await
}

/// Checks changes of members who are then no longer administrators.
pub(super) async fn before_membership_change(
    writer: &mut Writer<'_>,
    changes: &[Change],
) -> WriteResult {
    let administrator = role(writer, MEMBER.link, "administrator").await?;
    let leaving: Vec<i64> = changes
        .iter()
        .filter(|change| {
            change.number("organization_membership_role") != Some(administrator)
                || change.alters("is_member_of__organization")
                || change.alters("user")
        })
        .map(|change| change.id)
        .collect();
    before_leaving(writer, &leaving).await
}

/// Checks that each organization keeps an administrator when these memberships end.
pub(super) async fn before_leaving(writer: &mut Writer<'_>, memberships: &[i64]) -> WriteResult {
    for some in memberships.chunks(AT_ONCE) {
        // If two members leave at the same time, one waits for the other: each would count on the other to stay.
        let theirs =
            "SELECT is_member_of__organization FROM organization_membership WHERE id IN (?)";
        let theirs = writer.transaction.ids(&sql(theirs).with_all(some)).await?;
        writer.lock("organization", &theirs).await?;
        let without = sql(
            "SELECT min(o.handle) FROM organization AS o \
             JOIN organization_membership AS l ON l.is_member_of__organization = o.id \
             JOIN organization_membership_role AS r ON r.id = l.organization_membership_role \
             WHERE l.id IN (?) AND r.name = 'administrator' AND o.is_system = FALSE AND NOT EXISTS (SELECT 1 \
             FROM organization_membership AS m \
             JOIN organization_membership_role AS s ON s.id = m.organization_membership_role \
             WHERE m.is_member_of__organization = o.id AND s.name = 'administrator' AND m.id NOT IN (?))",
        )
        .with_all(some)
        .with_all(memberships);
        let without = writer.transaction.texts(&without).await?;
        if let Some(handle) = without.into_iter().flatten().next() {
            return Err(WriteError::Refused(format!(
                "the organization `{handle}` would be left without an administrator: make another member one, or \
                 delete the organization"
            )));
        }
    }
    Ok(())
}

/// Checks that a user who is deleted may leave all organizations.
pub(super) async fn before_user_goes(writer: &mut Writer<'_>, users: &[i64]) -> WriteResult {
    let memberships =
        record::leading_to(writer.transaction, "organization_membership", "user", users).await?;
    before_leaving(writer, &memberships).await
}

/// Checks that the organization of the system is not deleted: it belongs to the cloud, and its administrators manage
/// only its fleets.
pub(super) async fn before_organization_goes(
    writer: &mut Writer<'_>,
    organizations: &[i64],
) -> WriteResult {
    if writer.is_platform() {
        return Ok(());
    }
    let system = sql("SELECT id FROM organization WHERE id IN (?) AND is_system = TRUE");
    let system = writer.transaction.ids_about(organizations, system).await?;
    if !system.is_empty() {
        return Err(WriteError::refused(
            "the organization of the system belongs to the cloud, and cannot be deleted",
        ));
    }
    Ok(())
}

/// Checks that the organization of the system keeps its handle, as in [`before_organization_goes`].
pub(super) fn before_organization_change(writer: &Writer<'_>, changes: &[Change]) -> WriteResult {
    let renamed = |change: &Change| change.flag("is_system") && change.alters("handle");
    if !writer.is_platform() && changes.iter().any(renamed) {
        Err(WriteError::refused(
            "`handle`: only the cloud chooses that of the organization of the system",
        ))
    } else {
        Ok(())
    }
}

/// Updates the slugs of fleets, which begin with the handle of their organization.
pub(super) async fn after_organization_change(
    writer: &mut Writer<'_>,
    changes: &[Change],
) -> WriteResult {
    for change in changes.iter().filter(|change| change.alters("handle")) {
        let handle = change.text("handle").unwrap_or_default();
        give_slugs(writer, change.id, handle).await?;
    }
    Ok(())
}

/// Sets the slugs of an organization's fleets according to its new handle.
pub(crate) async fn give_slugs(
    writer: &mut Writer<'_>,
    organization: i64,
    handle: &str,
) -> WriteResult {
    let update = sql(
        "UPDATE application SET slug = lower(CAST(? AS TEXT) || '/' || app_name), modified_at = ? \
             WHERE organization = ?",
    )
    .with(handle)
    .with(writer.now())
    .with(organization);
    writer.transaction.execute(&update).await?;
    let ids = [organization];
    let fleets = record::leading_to(writer.transaction, "application", "organization", &ids);
    let fleets = fleets.await?;
    affected::fleets(writer, fleets);
    Ok(())
}

async fn role(writer: &mut Writer<'_>, table: &str, name: &str) -> WriteResult<i64> {
    let role = record::with_value(writer.transaction, table, "name", name).await?;
    role.ok_or_else(|| WriteError::Broken(format!("there is no `{table}` `{name}`")))
}
