//! `POST /user/v1/invitation/:token`: accepts an invitation.

use axum::extract::{Path, Request, State};
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::clock::now;
use cloud_core::cloud::SharedCloud;
use cloud_core::credential::Credential;
use data::write::row;
use data::{Row, SystemPurpose, Transaction};
use serde_json::json;

/// The tables of invites, and the membership that an invite creates.
struct InviteKind {
    invite: &'static str,
    membership: &'static str,
    /// Selects an invite by its token: its id, expiry, address, target, and role.
    find: &'static str,
    /// Selects an existing membership of the user.
    find_membership: &'static str,
    /// The membership's link to the target of the invite.
    link: &'static str,
    /// The field of the role.
    role: &'static str,
    /// The name of the target in the answer.
    answer: &'static str,
}

const INVITE_KINDS: [InviteKind; 2] = [
    InviteKind {
        invite: "organization_invite",
        membership: "organization_membership",
        find: "SELECT i.id, i.expiry_date, e.email, i.is_invited_to__organization, i.organization_membership_role \
               FROM organization_invite AS i JOIN invitee AS e ON e.id = i.invitee WHERE i.invitation_token = ?",
        find_membership: "SELECT id FROM organization_membership WHERE \"user\" = ? AND is_member_of__organization = ?",
        link: "is_member_of__organization",
        role: "organization_membership_role",
        answer: "organization",
    },
    InviteKind {
        invite: "application_invite",
        membership: "user_application_membership",
        find: "SELECT i.id, i.expiry_date, e.email, i.is_invited_to__application, i.application_membership_role \
               FROM application_invite AS i JOIN invitee AS e ON e.id = i.invitee WHERE i.invitation_token = ?",
        find_membership: "SELECT id FROM user_application_membership WHERE \"user\" = ? AND is_member_of__application = ?",
        link: "is_member_of__application",
        role: "application_membership_role",
        answer: "application",
    },
];

/// Makes the signed-in user a member, if the invite is for their address.
pub(crate) async fn accept(
    State(cloud): State<SharedCloud>,
    Path(token): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let (Credential::Session(_), Some(user)) = (&identity.credential, identity.user()) else {
        return Err(Refusal::Unauthorized);
    };
    let mut transaction = cloud.database.begin().await?;
    let missing = || Refusal::Missing("there is no such invite, or it has expired".to_owned());
    let (kind, invite) = found(&mut transaction, &token).await?.ok_or_else(missing)?;
    if invite.id(1)? <= now() {
        return Err(missing());
    }
    let own = SystemPurpose::Invitations
        .sql("SELECT email FROM \"user\" WHERE id = ?")
        .with(user);
    let own = transaction.texts(&own).await?.into_iter().flatten().next();
    if own != Some(invite.some_text(2)?) {
        return Err(Refusal::Forbidden(
            "the invitation is for another address than that of your user".to_owned(),
        ));
    }
    let to = invite.id(3)?;
    let existing = SystemPurpose::Invitations.sql(kind.find_membership);
    let existing = transaction.id(&existing.with(user).with(to)).await?;
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Invitations);
    if existing.is_none() {
        let mut membership = row(json!({ "user": user, kind.link: to }));
        if let Some(role) = invite.number(4)? {
            membership.insert(kind.role.to_owned(), json!(role));
        }
        writer.create(kind.membership, &membership).await?;
    }
    writer.remove(kind.invite, &[invite.id(0)?]).await?;
    transaction.commit().await?;
    Ok(ok(&json!({ kind.answer: to })))
}

async fn found(
    transaction: &mut Transaction,
    token: &str,
) -> Result<Option<(&'static InviteKind, Row)>, Refusal> {
    for kind in &INVITE_KINDS {
        let find = SystemPurpose::Invitations.sql(kind.find).with(token);
        if let Some(invite) = transaction.row(&find).await? {
            return Ok(Some((kind, invite)));
        }
    }
    Ok(None)
}
