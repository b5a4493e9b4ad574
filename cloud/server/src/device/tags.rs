//! `PATCH /device/v3/tags`: tags that devices set on themselves (docs/spec/cloud.md#device-tags).

use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::cloud::{Cloud, SharedCloud};
use cloud_core::credential::Identity;
use data::RowRight;
use data::write::{WriteError, retried, row};
use http::StatusCode;
use resources::Method;
use serde_json::{Value, json};

/// Maximum number of tags in one request.
const MOST: usize = 500;

/// `PATCH /device/v3/tags`
pub(crate) async fn patch(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit_key(&parts).await?;
    let body = body::object(&parts.headers, body, cloud.configuration.limits.body).await?;
    let mut labels: Vec<(RowRight, &str, &str)> = Vec::new();
    for (uuid, tags) in &body {
        let Value::Object(tags) = tags else {
            return Err(Refusal::Wrong(format!(
                "the tags of `{uuid}` must be an object"
            )));
        };
        let device = cloud.device(uuid).await?.ok_or(Refusal::Unauthorized)?;
        let right = cloud.right_on_device(&identity, device, Method::Update);
        let right = right.await?.ok_or(Refusal::Unauthorized)?;
        for (key, value) in tags {
            let Value::String(value) = value else {
                return Err(Refusal::Wrong(format!("the tag `{key}` must be text")));
            };
            labels.push((right, key, value));
        }
        if labels.len() > MOST {
            return Err(Refusal::Wrong(format!("more than {MOST} tags at once")));
        }
    }
    if labels.is_empty() {
        return Err(Refusal::Wrong("the body has no tags".to_owned()));
    }
    retried(|| once(&cloud, &identity, &labels)).await?;
    Ok(StatusCode::OK.into_response())
}

async fn once(
    cloud: &Cloud,
    identity: &Identity,
    tags: &[(RowRight, &str, &str)],
) -> Result<(), WriteError> {
    let mut transaction = cloud.database.begin().await?;
    let mut writer = cloud.writer(&mut transaction, &identity.caller);
    let mut changed = false;
    for (device, key, value) in tags {
        let present =
            device.sql("SELECT id, value FROM device_tag WHERE device = ? AND tag_key = ?");
        let present = present.with(*key);
        match writer.transaction().row(&present).await? {
            Some(present) if present.some_text(1)? == *value => {}
            Some(present) => {
                let body = row(json!({ "value": value }));
                writer
                    .change("device_tag", &[present.id(0)?], &body)
                    .await?;
                changed = true;
            }
            None => {
                let body = row(json!({ "device": device.id(), "tag_key": key, "value": value }));
                writer.create("device_tag", &body).await?;
                changed = true;
            }
        }
    }
    if changed {
        Ok(transaction.commit().await?)
    } else {
        Ok(())
    }
}
