//! `/cloud/v1/organization/:id/quotas`: the quotas of an organization, and how much of them is used.
//!
//! ```json
//! {"quotas":[{"name":"devices","limit":50000,"is_default":true,"used":12}, …]}
//! ```
//!
//! Names that end in `_bytes` count bytes, the others count rows; `used` is null if devices or releases are counted
//! separately. Members of the organization may use GET. An administrator of the cloud who has just signed in may use
//! GET and PATCH; the body of the latter is an object of names and new limits, where null resets a limit to the
//! default.

use axum::extract::{Path, Request, State};
use cloud_core::accounts::cloud_administrators::administrator;
use cloud_core::accounts::organization_quotas::{Changes, give, may_read};
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::body;
use cloud_core::cloud::{Cloud, SharedCloud};
use data::quota::{Quota, QuotaUsage};
use serde_json::{Map, Value, json};

/// `GET /cloud/v1/organization/:id/quotas`
pub(crate) async fn read(
    State(cloud): State<SharedCloud>,
    Path(organization): Path<i64>,
    request: Request,
) -> Answer {
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
) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    administrator(&cloud, &identity).await?;
    let most = cloud.auth.longest_body(&identity);
    let limits = body::object(&parts.headers, body, most).await?;
    let changes = changes(&limits)?;
    give(&cloud, &identity, organization, &changes).await?;
    answer(&cloud, organization).await
}

fn changes(limits: &Map<String, Value>) -> Result<Changes, Refusal> {
    let mut changes = Vec::with_capacity(limits.len());
    for (name, limit) in limits {
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

async fn answer(cloud: &Cloud, organization: i64) -> Answer {
    let defaults = &cloud.environment.quotas;
    let usages = cloud.database.quotas(organization, defaults).await?;
    let quotas: Vec<Value> = usages
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
    Ok(ok(&json!({ "quotas": quotas })))
}
