//! Quotas of an organization: who may read them, and who may change them.

use data::SystemPurpose;
use data::audit::{self, Event};
use data::quota::{self, Quota};
use resources::Method;
use serde_json::{Map, Value, json};

use super::cloud_administrators::administrator;
use crate::answer::Refusal;
use crate::clock::now;
use crate::cloud::Cloud;
use crate::credential::Identity;

/// Quotas and the new limit of each; none restores the default.
pub type Changes = Vec<(Quota, Option<i64>)>;

/// Sets quotas of an organization; only for an administrator of the cloud who has just signed in.
///
/// # Errors
/// 401 for anybody else; 404 if there is no such organization.
pub async fn give(
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

/// Whether the caller may see the organization, and so its quotas.
///
/// # Errors
/// If the database fails.
pub async fn may_read(
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
