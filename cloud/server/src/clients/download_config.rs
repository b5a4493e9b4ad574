//! `GET` and `POST /download-config`: the `config.json` with which devices join a fleet.

use axum::extract::{Request, State};
use cloud_core::answer::{Answer, ok};
use cloud_core::body;
use cloud_core::cloud::SharedCloud;
use cloud_core::download_config::made;
use http::Method;
use serde_json::Value;

/// Creates it with a key of its own, which can create devices of that fleet.
pub(crate) async fn make(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let given = match parts.method {
        Method::POST => {
            body::object(&parts.headers, body, cloud.auth.longest_body(&identity)).await?
        }
        _ => form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
            .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
            .collect(),
    };
    let made = made(&cloud, &identity, &parts.headers, &given).await?;
    Ok(ok(&made))
}
