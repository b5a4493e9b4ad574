//! `/cloud/v1/organization/:id/quotas`: how much an organization may keep, and how much it keeps.
//!
//! ```json
//! {"quotas":[{"name":"devices","limit":50000,"is_default":true,"used":12}, …]}
//! ```
//!
//! Bytes for the names that end in `_bytes`, rows for the others; `used` is null where each device or release is
//! counted by itself. Members of the organization may GET it. An administrator of the cloud who just signed in may too,
//! and PATCHes it with an object of names and new limits, of which null takes a limit back to the default.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use data::SystemPurpose;
use data::audit::{self, Event};
use data::quota::{self, Quota, QuotaUsage};
use http::StatusCode;
use resources::Method;
use serde_json::{Map, Value, json};

use super::cloud_administrators::administrator;
use crate::answer::{Refusal, json as json_answer};
use crate::body;
use crate::clock::now;
use crate::cloud::{Cloud, SharedCloud};
use crate::credential::Identity;

/// `GET /cloud/v1/organization/:id/quotas`
pub(crate) async fn read(
    State(cloud): State<SharedCloud>,
    Path(organization): Path<i64>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if !may_read(&cloud, &identity, organization).await? {
        administrator(&cloud, &identity).await?;
    }
    answer(&cloud, organization).await
}

/// `PATCH /cloud/v1/organization/:id/quotas`
pub(crate) async fn change(
    State(cloud): State<SharedCloud>,
    Path(organization): Path<i64>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    administrator(&cloud, &identity).await?;
    let most = cloud.auth.longest_body(&identity);
    let given = body::object(&parts.headers, body, most).await?;
    let changes = changes(&given)?;
    give(&cloud, &identity, organization, &changes).await?;
    answer(&cloud, organization).await
}

/// Quotas, and the new limit of each: none where it is to be the default.
pub(crate) type Changes = Vec<(Quota, Option<i64>)>;

fn changes(given: &Map<String, Value>) -> Result<Changes, Refusal> {
    let mut changes = Vec::with_capacity(given.len());
    for (name, limit) in given {
        let Some(quota) = Quota::named(name) else {
            let all: Vec<&str> = Quota::ALL.into_iter().map(Quota::name).collect();
            return Err(Refusal::Wrong(format!(
                "there is no quota with this name; the quotas are {}",
                all.join(", ")
            )));
        };
        let limit = match limit {
            Value::Null => None,
            limit => Some(limit.as_i64().filter(|limit| *limit >= 0).ok_or_else(|| {
                Refusal::Wrong(format!(
                    "`{name}` must be a whole number from 0 on, or null"
                ))
            })?),
        };
        changes.push((quota, limit));
    }
    Ok(changes)
}

/// Gives an organization quotas, as an administrator of the cloud who just signed in.
///
/// # Errors
/// 401 for anybody else; 404 where there is no such organization.
pub(crate) async fn give(
    cloud: &Cloud,
    identity: &Identity,
    organization: i64,
    changes: &Changes,
) -> Result<(), Refusal> {
    administrator(cloud, identity).await?;
    let mut transaction = cloud.database.begin().await?;
    let there = SystemPurpose::Administration
        .sql("SELECT id FROM organization WHERE id = ?")
        .with(organization);
    if transaction.row(&there).await?.is_none() {
        return Err(missing());
    }
    for (quota, limit) in changes {
        quota::give(&mut transaction, organization, *quota, *limit).await?;
    }
    let limits = changes.iter();
    let limits: Map<String, Value> = limits
        .map(|(quota, limit)| (quota.name().to_owned(), json!(limit)))
        .collect();
    let event = Event {
        verb: "give-quotas",
        resource: "organization",
        ids: &[organization],
        fields: Some(&json!(limits).to_string()),
    };
    audit::note(&mut transaction, None, event, now()).await?;
    Ok(transaction.commit().await?)
}

/// Whether somebody sees the organization, and so its quotas.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn may_read(
    cloud: &Cloud,
    identity: &Identity,
    organization: i64,
) -> Result<bool, Refusal> {
    let right = cloud.right(&identity.caller, "organization", organization, Method::Read);
    Ok(right.await?.is_some())
}

fn missing() -> Refusal {
    Refusal::Missing("there is no such organization".to_owned())
}

async fn answer(cloud: &Cloud, organization: i64) -> Result<Response, Refusal> {
    let defaults = &cloud.environment.quotas;
    let found = cloud.database.quotas(organization, defaults).await?;
    let quotas: Vec<Value> = found
        .iter()
        .map(
            |QuotaUsage {
                 quota,
                 most,
                 given,
                 kept,
             }| {
                json!({ "name": quota.name(), "limit": most, "is_default": !given, "used": kept })
            },
        )
        .collect();
    Ok(json_answer(
        StatusCode::OK,
        json!({ "quotas": quotas }).to_string(),
    ))
}
