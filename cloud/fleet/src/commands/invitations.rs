//! `invitations` and `invitation …`. The cloud sends no e-mail: the inviting user passes the token on.

use reqwest::Method;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::members::MemberOwner;
use crate::arguments::people::{Group, InvitationCommand};
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::odata::encoded;
use crate::output::{Output, plain, quiet, when};
use crate::rows;

/// An invitation, as the API returns it and as it is printed.
#[derive(Deserialize, Serialize)]
struct Invitation {
    id: i64,
    #[serde(rename(deserialize = "invitee"), deserialize_with = "address")]
    email: String,
    #[serde(alias = "organization_membership_role")]
    #[serde(alias = "application_membership_role")]
    #[serde(deserialize_with = "rows::role")]
    role: Option<String>,
    message: Option<String>,
    /// The token to accept it with, valid only for the user of that address.
    #[serde(rename(deserialize = "invitation_token"))]
    token: String,
    #[serde(rename(deserialize = "expiry_date"))]
    expires: String,
    created_at: String,
}

fn address<'de, D: Deserializer<'de>>(link: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct Invitee {
        email: String,
    }
    let invitee = rows::first::<Invitee, D>(link)?;
    Ok(invitee.map(|invitee| invitee.email).unwrap_or_default())
}

async fn invitations(cloud: &Cloud, of: &MemberOwner) -> Result<Vec<Invitation>> {
    let query = format!(
        "$select=id,invitation_token,message,expiry_date,created_at\
         &$expand=invitee($select=email),{}($select=name)&$filter={} eq {}&$orderby=id asc",
        of.roles, of.invited_to, of.id
    );
    cloud.rows(of.invitations, &query).await
}

pub(crate) async fn list(cloud: &Cloud, output: &Output, group: &Group) -> Result<()> {
    let of = MemberOwner::group(cloud, group).await?;
    let all = invitations(cloud, &of).await?;
    output.rows(
        &all,
        &[
            ("E-MAIL", |one| plain(&one.email)),
            ("ROLE", |one| plain(&one.role)),
            ("MADE", |one| quiet(&when(&one.created_at))),
            ("EXPIRES", |one| quiet(&when(&one.expires))),
            ("ID", |one| quiet(&one.id.to_string())),
        ],
        &format!("nobody is invited to {}", of.name),
    );
    Ok(())
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: InvitationCommand) -> Result<()> {
    match command {
        InvitationCommand::Create {
            email,
            group,
            role,
            message,
        } => {
            let of = MemberOwner::group(cloud, &group).await?;
            let mut body = json!({ "invitee": email, of.invited_to: of.id, "message": message });
            if let Some(role) = &role {
                body[of.roles] = json!(of.role(cloud, role).await?);
            }
            let made = cloud.create(of.invitations, &body).await;
            let id = made.map_err(|failure| {
                match (failure.is_duplicate(), failure.kind) {
                    (true, _) => {
                        Failure::failed(format!("{email} is already invited to {}", of.name)).hint(
                            "`fleet invitation revoke` revokes that; `fleet invitations --json` has its token",
                        )
                    }
                    (false, Kind::NotAllowed) => {
                        Failure::not_allowed(format!("you may not invite anybody to {}", of.name))
                            .hint("administrators of the organization may")
                    }
                    _ => failure,
                }
            })?;
            let all = invitations(cloud, &of).await?;
            let made = all.into_iter().find(|one| one.id == id);
            let made = made.ok_or_else(|| Failure::failed("the invitation no longer exists"))?;
            output.note(format!(
                "{} is invited to {}, until {}; the cloud sends no mail: pass this token on",
                made.email,
                of.name,
                when(&made.expires)
            ));
            if output.json {
                output.value(&made)
            } else {
                output.text(&made.token)
            }
            output.note("`fleet invitation accept TOKEN` accepts it");
        }
        InvitationCommand::Revoke { invitation, group } => {
            let of = MemberOwner::group(cloud, &group).await?;
            let all = invitations(cloud, &of).await?;
            let lower = invitation.to_lowercase();
            let found = all
                .into_iter()
                .find(|one| one.email.to_lowercase() == lower || one.id.to_string() == lower);
            let revoked = found.ok_or_else(|| {
                Failure::not_found(format!("`{invitation}` is not invited to {}", of.name))
                    .hint(format!("`fleet invitations {}` lists who is", of.argument))
            })?;
            cloud
                .delete(&format!("{}({})", of.invitations, revoked.id))
                .await?;
            output.done(
                format!("{} is no longer invited to {}", revoked.email, of.name),
                &json!({ "revoked": { "id": revoked.id, "email": revoked.email } }),
            );
        }
        InvitationCommand::Accept { token } => {
            let path = format!("/user/v1/invitation/{}", encoded(&token));
            let accepted = cloud
                .answer(Method::POST, &path, Some(&json!({})))
                .await
                .map_err(|failure| match failure.kind {
                    Kind::NotFound => {
                        Failure::not_found("there is no such invitation, or it has expired")
                            .hint("ask the person who invited you for another one")
                    }
                    Kind::NotAllowed if failure.to_string().contains("another address") => failure
                        .hint("sign in as the user of the address that was invited"),
                    Kind::NotAllowed => failure.hint(
                        "only people who signed in with a password can accept invitations, keys cannot: `fleet login`",
                    ),
                    _ => failure,
                })?;
            let accepted: Value = serde_json::from_slice(&accepted).unwrap_or_default();
            let (kind, id) = match (&accepted["organization"], &accepted["application"]) {
                (Value::Number(id), _) => ("organization", id.as_i64()),
                (_, Value::Number(id)) => ("fleet", id.as_i64()),
                _ => ("group", None),
            };
            output.done(
                format!(
                    "accepted; you are a member of the {kind} {}",
                    named(cloud, kind, id).await
                ),
                &json!({ "accepted": kind, "id": id }),
            );
        }
    }
    Ok(())
}

/// Returns the name of the organization or fleet that was joined, or its id if the name cannot be read.
async fn named(cloud: &Cloud, kind: &str, id: Option<i64>) -> String {
    #[derive(Deserialize)]
    struct NamedRow {
        #[serde(alias = "handle")]
        slug: String,
    }
    let Some(id) = id else {
        return String::new();
    };
    let (address, query) = match kind {
        "fleet" => (format!("application({id})"), "$select=slug"),
        _ => (format!("organization({id})"), "$select=handle"),
    };
    let row: Result<Option<NamedRow>> = cloud.row(&address, query).await;
    match row {
        Ok(Some(named)) => named.slug,
        _ => id.to_string(),
    }
}
