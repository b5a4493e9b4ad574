//! `/actor/v1/whoami` and `/user/v1/whoami`: what a credential represents.

use axum::extract::{Request, State};
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::credential::{Identity, select};
use data::DataError;
use serde_json::{Value, json};

/// Answers the actor of any credential.
pub(crate) async fn actor(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let identity = identified(&cloud, request).await?;
    let actor = identity.actor().ok_or(Refusal::Unauthorized)?;
    let who = who_is(&cloud, actor).await?.ok_or(Refusal::Unauthorized)?;
    Ok(ok(&who))
}

/// Answers the user of a user's credential.
pub(crate) async fn user(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let identity = identified(&cloud, request).await?;
    let user = identity.user().ok_or(Refusal::Unauthorized)?;
    let statement = select("user", &["username", "email"], "id", user);
    let row = cloud.database.row(&statement).await?;
    let row = row.ok_or(Refusal::Unauthorized)?;
    let who = json!({ "id": user, "username": row.text(0)?, "email": row.text(1)? });
    Ok(ok(&who))
}

async fn identified(cloud: &Cloud, request: Request) -> Result<Identity, Refusal> {
    let (parts, _) = request.into_parts();
    cloud.auth.admit(&parts).await
}

/// Returns the user, fleet or device of an actor.
async fn who_is(cloud: &Cloud, actor: i64) -> Result<Option<Value>, DataError> {
    let row = |table, fields: &'static [&'static str]| {
        let statement = select(table, fields, "actor", actor);
        async move { cloud.database.row(&statement).await }
    };
    if let Some(user) = row("user", &["id", "username", "email"]).await? {
        return Ok(Some(json!({
            "id": actor, "actorType": "user", "actorTypeId": user.id(0)?,
            "username": user.text(1)?, "email": user.text(2)?,
        })));
    }
    if let Some(device) = row("device", &["id", "uuid"]).await? {
        return Ok(Some(json!({
            "id": actor, "actorType": "device", "actorTypeId": device.id(0)?,
            "uuid": device.text(1)?,
        })));
    }
    let Some(fleet) = row("application", &["id", "slug"]).await? else {
        return Ok(None);
    };
    Ok(Some(json!({
        "id": actor, "actorType": "application", "actorTypeId": fleet.id(0)?,
        "slug": fleet.text(1)?,
    })))
}
