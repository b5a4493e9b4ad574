//! `POST /user/v1/invitation/:token`: whoever was invited accepts.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use cloud_core::answer::{Refusal, json as json_answer};
use cloud_core::clock::now;
use cloud_core::cloud::SharedCloud;
use cloud_core::credential::Credential;
use data::write::Writer;
use data::{SystemPurpose, Transaction};
use http::StatusCode;
use serde_json::{Map, Value, json};

/// An invite, and what it makes.
struct Invite {
    /// Its resource.
    resource: &'static str,
    id: i64,
    expires: i64,
    email: String,
    /// What it leads to, by which link of the membership.
    to: (&'static str, i64),
    /// The role, by its field.
    role: (&'static str, Option<i64>),
    /// The resource of the membership.
    membership: &'static str,
    /// What the answer calls it.
    named: &'static str,
}

/// Makes a member of the user who is signed in, where the invite is to their address.
pub(crate) async fn accept(
    State(cloud): State<SharedCloud>,
    Path(token): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let (Credential::Session(_), Some(user)) = (&identity.credential, identity.user()) else {
        return Err(Refusal::Unauthorized);
    };
    let mut transaction = cloud.database.begin().await?;
    let missing = || Refusal::Missing("there is no such invite, or it has expired".to_owned());
    let invite = found(&mut transaction, &token).await?.ok_or_else(missing)?;
    if invite.expires <= now() {
        return Err(missing());
    }
    let own = SystemPurpose::Invitations
        .sql("SELECT email FROM \"user\" WHERE id = ?")
        .with(user);
    let own = transaction.texts(&own).await?.into_iter().flatten().next();
    if own.as_deref() != Some(invite.email.as_str()) {
        return Err(Refusal::Forbidden(
            "the invite is to another address than that of your user".to_owned(),
        ));
    }
    let (link, to) = invite.to;
    let there = match invite.membership {
        "organization_membership" => SystemPurpose::Invitations.sql(
            "SELECT id FROM organization_membership WHERE \"user\" = ? AND is_member_of__organization = ?",
        ),
        _ => SystemPurpose::Invitations.sql(
            "SELECT id FROM user_application_membership WHERE \"user\" = ? AND is_member_of__application = ?",
        ),
    };
    let there = transaction.row(&there.with(user).with(to)).await?;
    let mut writer = Writer::platform(
        SystemPurpose::Invitations,
        &mut transaction,
        &cloud.environment,
        now(),
    );
    if there.is_none() {
        let mut membership = Map::new();
        membership.insert("user".to_owned(), json!(user));
        membership.insert(link.to_owned(), json!(to));
        if let (field, Some(role)) = invite.role {
            membership.insert(field.to_owned(), json!(role));
        }
        writer.create(invite.membership, &membership).await?;
    }
    writer.remove(invite.resource, &[invite.id]).await?;
    transaction.commit().await?;
    let answer: Value = json!({ invite.named: to });
    Ok(json_answer(StatusCode::OK, answer.to_string()))
}

async fn found(transaction: &mut Transaction, token: &str) -> Result<Option<Invite>, Refusal> {
    let organizations = SystemPurpose::Invitations.sql(
        "SELECT i.id, i.expiry_date, e.email, i.is_invited_to__organization, i.organization_membership_role \
         FROM organization_invite AS i JOIN invitee AS e ON e.id = i.invitee WHERE i.invitation_token = ?",
    );
    if let Some(row) = transaction.row(&organizations.with(token)).await? {
        return Ok(Some(Invite {
            resource: "organization_invite",
            id: row.id(0)?,
            expires: row.id(1)?,
            email: row.some_text(2)?,
            to: ("is_member_of__organization", row.id(3)?),
            role: ("organization_membership_role", row.number(4)?),
            membership: "organization_membership",
            named: "organization",
        }));
    }
    let fleets = SystemPurpose::Invitations.sql(
        "SELECT i.id, i.expiry_date, e.email, i.is_invited_to__application, i.application_membership_role \
         FROM application_invite AS i JOIN invitee AS e ON e.id = i.invitee WHERE i.invitation_token = ?",
    );
    let Some(row) = transaction.row(&fleets.with(token)).await? else {
        return Ok(None);
    };
    Ok(Some(Invite {
        resource: "application_invite",
        id: row.id(0)?,
        expires: row.id(1)?,
        email: row.some_text(2)?,
        to: ("is_member_of__application", row.id(3)?),
        role: ("application_membership_role", row.number(4)?),
        membership: "user_application_membership",
        named: "application",
    }))
}
