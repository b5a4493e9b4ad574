//! Registering users, and changing passwords.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, Request, State};
use cloud_core::accounts::cloud_administrators;
use cloud_core::accounts::sessions::{SessionOrigin, SignInKind};
use cloud_core::accounts::users::{PasswordChange, hashed, password_changed};
use cloud_core::answer::{Answer, Refusal, json as json_answer};
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::configuration::Registration;
use cloud_core::credential::{Credential, Identity, select};
use cloud_core::limits::{Account, Network};
use cloud_core::random::random_text;
use cloud_core::{body, charge};
use data::SystemPurpose;
use data::write::row;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::sessions;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewUser {
    username: String,
    email: String,
    password: String,
    /// The organization that the user joins. Without it, one of their own is created.
    organization: Option<i64>,
}

/// `POST /user/register`: creates a user; for administrators of the cloud, or for everybody if registration is open.
pub(crate) async fn register(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let is_administrator = cloud_administrators::is_one(&cloud, &identity).await?;
    if !is_administrator && cloud.configuration.registration == Registration::Closed {
        return Err(Refusal::Unauthorized);
    }
    let administers = administered(&cloud, &identity).await?;
    let from = charge::address(&parts.extensions);
    if !is_administrator && administers.is_empty() {
        // Hashing a password is expensive: self-registrations are limited in the same way as failed sign-ins.
        cloud
            .auth
            .limits
            .attempts
            .begin(&Account::Registration, Network::from_address(from), false)
            .map_err(Refusal::TooMany)?;
    }
    let new: NewUser =
        body::typed(&parts.headers, body, cloud.auth.longest_body(&identity)).await?;
    if let Some(organization) = new.organization
        && !administers.contains(&organization)
    {
        return Err(Refusal::Wrong(format!(
            "you are not an administrator of an organization {organization}"
        )));
    }
    let hash = hashed(&cloud, new.password, from).await?;
    let mut transaction = cloud.database.begin().await?;
    let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Accounts);
    let user = row(json!({
        "username": new.username, "email": new.email, "password": hash,
        "jwt_secret": random_text(16).map_err(Refusal::Fault)?,
    }));
    let user = writer.create("user", &user).await?;
    let stored = writer
        .transaction()
        .row(&select("user", &["username", "email"], "id", user))
        .await?;
    let Some(stored) = stored else {
        return Err(Refusal::Fault(anyhow::anyhow!(
            "the user {user} was deleted as soon as it was created"
        )));
    };
    let (username, email) = (stored.some_text(0)?, stored.text(1)?);
    let (organization, role) = match new.organization {
        Some(organization) => (organization, "member"),
        None => {
            let own = row(json!({ "name": username, "handle": username }));
            (writer.create("organization", &own).await?, "administrator")
        }
    };
    let find = SystemPurpose::Accounts
        .sql("SELECT id FROM organization_membership_role WHERE name = ?")
        .with(role);
    let role = writer.transaction().id(&find).await?;
    let membership = row(json!({
        "user": user, "is_member_of__organization": organization,
        "organization_membership_role": role,
    }));
    writer
        .create("organization_membership", &membership)
        .await?;
    transaction.commit().await?;
    let answer = json!({ "id": user, "username": username, "email": email });
    Ok(json_answer(StatusCode::CREATED, answer.to_string()))
}

/// Returns the organizations that a user administers.
async fn administered(cloud: &Cloud, identity: &Identity) -> Result<Vec<i64>, Refusal> {
    // Keys never create users.
    let (Some(user), Credential::Session(_)) = (identity.user(), &identity.credential) else {
        return Ok(Vec::new());
    };
    let find = SystemPurpose::Accounts
        .sql(
            "SELECT m.is_member_of__organization FROM organization_membership AS m \
         JOIN organization_membership_role AS r ON r.id = m.organization_membership_role \
         WHERE m.\"user\" = ? AND r.name = 'administrator'",
        )
        .with(user);
    Ok(cloud.database.ids(&find).await?)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewPassword {
    current_password: String,
    new_password: String,
    /// Whether the user's named keys end as well.
    #[serde(default)]
    end_keys: bool,
}

/// `POST /user/v1/change-password`: ends all sessions of the user, and answers the token of a new one.
pub(crate) async fn change_password(
    State(cloud): State<SharedCloud>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let Credential::Session(claims) = identity.credential else {
        return Err(Refusal::Unauthorized);
    };
    let new: NewPassword =
        body::typed(&parts.headers, body, cloud.configuration.limits.body).await?;
    let beginning = SessionOrigin::new(&parts.headers, from, SignInKind::Api);
    let change = PasswordChange {
        current: new.current_password,
        new: new.new_password,
        end_keys: new.end_keys,
    };
    let token = password_changed(&cloud, claims.id, change, from, beginning).await?;
    Ok(sessions::text(token))
}
