//! `/cloud/v1/…`: operations on the whole cloud, for its administrators.

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::accounts::cloud_administrators::{administrator, is_one};
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::body;
use cloud_core::clock::now;
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::random::random_text;
use data::write::row;
use data::{SystemPurpose, Transaction};
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::device::parameter;

/// `POST /cloud/v1/system-organization`: makes the caller an administrator of the organization of the system, to manage
/// supervisors and operating systems in its fleets. Answers its `id` and `handle`.
pub(crate) async fn join_system_organization(
    State(cloud): State<SharedCloud>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let user = administrator(&cloud, &identity).await?;
    let mut transaction = cloud.database.begin().await?;
    let system = SystemPurpose::Administration
        .sql("SELECT id, handle FROM organization WHERE is_system = TRUE ORDER BY id LIMIT 1");
    let system = transaction.row(&system).await?.ok_or_else(|| {
        Refusal::Fault(anyhow::anyhow!("the database has no system organization"))
    })?;
    let (organization, handle) = (system.id(0)?, system.some_text(1)?);
    let existing = SystemPurpose::Administration.sql(
        "SELECT id FROM organization_membership WHERE \"user\" = ? AND is_member_of__organization = ?",
    );
    let existing = existing.with(user).with(organization);
    if transaction.id(&existing).await?.is_none() {
        let role = SystemPurpose::Administration
            .sql("SELECT id FROM organization_membership_role WHERE name = 'administrator'");
        let membership = row(json!({
            "user": user, "is_member_of__organization": organization,
            "organization_membership_role": transaction.id(&role).await?,
        }));
        let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Administration);
        writer
            .create("organization_membership", &membership)
            .await?;
    }
    transaction.commit().await?;
    Ok(ok(&json!({ "id": organization, "handle": handle })))
}

/// Maximum number of users in one answer.
const PAGE: i64 = 1000;

/// `GET /cloud/v1/users?after=<id>`: users, by their numbers, a thousand at a time.
pub(crate) async fn users(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if !is_one(&cloud, &identity).await? {
        return Err(Refusal::Unauthorized);
    }
    let after = match parameter(&parts, "after") {
        None => 0,
        Some(after) => after
            .parse::<i64>()
            .map_err(|_| Refusal::Wrong("`after` must be the number of a user".to_owned()))?,
    };
    let select = SystemPurpose::Administration.sql(
        "SELECT id, username, email, is_cloud_administrator, is_disabled FROM \"user\" WHERE id > ? \
         ORDER BY id LIMIT ?",
    );
    let rows = cloud.database.rows(&select.with(after).with(PAGE)).await?;
    let mut users = Vec::with_capacity(rows.len());
    for row in &rows {
        users.push(json!({
            "id": row.id(0)?, "username": row.some_text(1)?, "email": row.text(2)?,
            "is_cloud_administrator": row.flag(3)?, "is_disabled": row.flag(4)?,
        }));
    }
    Ok(ok(&json!({ "d": users })))
}

/// An administrator's changes to a user.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UserChanges {
    is_cloud_administrator: Option<bool>,
    is_disabled: Option<bool>,
}

/// `PATCH /cloud/v1/users/:id`: sets whether a user is an administrator of the cloud, and whether the user is disabled.
/// A disabled user loses all sessions and keys, and can no longer sign in.
pub(crate) async fn mark(
    State(cloud): State<SharedCloud>,
    Path(id): Path<i64>,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let own = administrator(&cloud, &identity).await?;
    let changes: UserChanges =
        body::typed(&parts.headers, body, cloud.auth.longest_body(&identity)).await?;
    if own == id {
        return Err(Refusal::Wrong(
            "you cannot change this for yourself: another administrator of the cloud can"
                .to_owned(),
        ));
    }
    let mut transaction = cloud.database.begin().await?;
    let mut changed = 0;
    if let Some(is) = changes.is_cloud_administrator {
        let update = SystemPurpose::Administration
            .sql("UPDATE \"user\" SET is_cloud_administrator = ?, modified_at = ? WHERE id = ?");
        changed += transaction
            .execute(&update.with(is).with(now()).with(id))
            .await?;
    }
    if let Some(is) = changes.is_disabled {
        let update = SystemPurpose::Administration
            .sql("UPDATE \"user\" SET is_disabled = ?, modified_at = ? WHERE id = ?");
        changed += transaction
            .execute(&update.with(is).with(now()).with(id))
            .await?;
        if is {
            let keys = SystemPurpose::Administration.sql(
                "SELECT k.id FROM api_key AS k JOIN \"user\" AS u ON u.actor = k.is_of__actor WHERE u.id = ?",
            );
            let keys = transaction.ids(&keys.with(id)).await?;
            end_sessions(&cloud, &mut transaction, id).await?;
            let mut writer = cloud.own_writer(&mut transaction, SystemPurpose::Administration);
            writer.remove("api_key", &keys).await?;
        }
    }
    if changed == 0 {
        return Err(Refusal::Missing(format!(
            "there is no user {id}, or the body changes nothing"
        )));
    }
    transaction.commit().await?;
    Ok(StatusCode::OK.into_response())
}

/// Ends all sessions of a user, including those that begin at this moment.
async fn end_sessions(
    cloud: &Cloud,
    transaction: &mut Transaction,
    user: i64,
) -> Result<(), Refusal> {
    let secret = random_text(16).map_err(Refusal::Fault)?;
    let update =
        SystemPurpose::Administration.sql("UPDATE \"user\" SET jwt_secret = ? WHERE id = ?");
    transaction.execute(&update.with(secret).with(user)).await?;
    let sessions = SystemPurpose::Administration
        .sql("SELECT id FROM user_session WHERE \"user\" = ?")
        .with(user);
    let sessions = transaction.ids(&sessions).await?;
    let mut writer = cloud.own_writer(transaction, SystemPurpose::Administration);
    writer.remove("user_session", &sessions).await?;
    Ok(())
}
