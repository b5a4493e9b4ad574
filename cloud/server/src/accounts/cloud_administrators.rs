//! What concerns the whole cloud, and is for its administrators: a mark on users, which the first start gives to the
//! one whom it makes. It gives no right on rows of tenants.

use axum::extract::{Request, State};
use axum::response::Response;
use data::sql;
use data::write::Writer;
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::{Refusal, json as json_answer};
use crate::cloud::{Cloud, Shared, now};
use crate::credential::{Credential, Identity, STALE};

/// `POST /cloud/v1/system-organization`: makes the one who asks an administrator of the organization of the system, to
/// keep supervisors and operating systems in its fleets. Answers its `id` and `handle`.
pub(crate) async fn join_system_organization(
    State(cloud): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let identity = cloud.admit(&parts).await?;
    let user = administrator(&cloud, &identity).await?;
    let mut transaction = cloud.database.begin().await?;
    let found =
        sql("SELECT id, handle FROM organization WHERE is_system = TRUE ORDER BY id LIMIT 1");
    let found = transaction
        .row(&found)
        .await?
        .ok_or_else(|| Refusal::Fault(anyhow::anyhow!("there is no organization of the system")))?;
    let (organization, handle) = (found.id(0)?, found.some_text(1)?);
    let there = sql(
        "SELECT id FROM organization_membership WHERE \"user\" = ? AND is_member_of__organization = ?",
    );
    let there = transaction
        .row(&there.with(user).with(organization))
        .await?;
    if there.is_none() {
        let role = sql("SELECT id FROM organization_membership_role WHERE name = 'administrator'");
        let role = transaction.row(&role).await?;
        let role = role.map(|row| row.id(0)).transpose()?;
        let membership = Map::from_iter(
            [
                ("user", json!(user)),
                ("is_member_of__organization", json!(organization)),
                ("organization_membership_role", json!(role)),
            ]
            .map(|(field, value)| (field.to_owned(), value)),
        );
        let mut writer = Writer::platform(&mut transaction, &cloud.environment, now());
        writer
            .create("organization_membership", &membership)
            .await?;
    }
    transaction.commit().await?;
    let answer: Value = json!({ "id": organization, "handle": handle });
    Ok(json_answer(StatusCode::OK, answer.to_string()))
}

/// The administrator of the cloud who just signed in.
///
/// # Errors
/// 401 where it is somebody else, another credential, or the sign-in is a while ago.
pub(super) async fn administrator(cloud: &Cloud, identity: &Identity) -> Result<i64, Refusal> {
    let Credential::Session(claims) = &identity.credential else {
        return Err(Refusal::Unauthorized);
    };
    let administrator =
        sql("SELECT id FROM \"user\" WHERE id = ? AND is_cloud_administrator = TRUE");
    let administrator = cloud.database.row(&administrator.with(claims.id)).await?;
    match administrator {
        None => Err(Refusal::Unauthorized),
        Some(_) if !claims.fresh() => Err(Refusal::UnauthorizedSaying(STALE)),
        Some(_) => Ok(claims.id),
    }
}
