//! `GET /auth/v1/token`: a signed token with the caller's rights at the registry (Docker Registry's token protocol).
//!
//! A caller who may read an image may pull it, and one who may change it may push it; so a device can pull the images
//! of its releases. Without a credential there is no token.

use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use cloud_core::credential::Identity;
use data::SystemPurpose;
use http::{HeaderMap, StatusCode, header};
use jiff::Timestamp;
use resources::Method;
use serde_json::json;

use super::scope::{may_be_an_image, scopes};
use super::{Access, LIFE};
use crate::device::parameter;
use crate::state::ServerState;

/// Issues a token.
pub(crate) async fn give(State(server): State<ServerState>, request: Request) -> Answer {
    let cloud = &*server.cloud;
    let (parts, _) = request.into_parts();
    let query = parts.uri.query().unwrap_or_default();
    let identity = match password(&parts.headers) {
        Some(password) => cloud.auth.identify_by(&password).await,
        None => cloud.auth.identify(&parts.headers, parts.uri.query()).await,
    };
    let identity = match cloud.auth.count(identity, &parts) {
        Ok(identity) if identity.actor().is_some() => identity,
        Ok(_) | Err(Refusal::Unauthorized) => {
            let basic = [(header::WWW_AUTHENTICATE, "Basic realm=\"fleet-cloud\"")];
            return Ok((StatusCode::UNAUTHORIZED, basic).into_response());
        }
        Err(other) => return Err(other),
    };
    let service = &cloud.environment.registry;
    if parameter(&parts, "service").is_some_and(|service_name| service_name != *service) {
        return Err(Refusal::Wrong(
            "this cloud issues tokens for no registry of this name (`service`)".to_owned(),
        ));
    }
    let mut access = Vec::new();
    for scope in scopes(query) {
        let Some(image) = image(cloud, &scope.repository).await? else {
            continue;
        };
        let mut actions = Vec::new();
        for (is_requested, method, action) in [
            (scope.pull, Method::Read, "pull"),
            (scope.push, Method::Update, "push"),
        ] {
            if is_requested && may(cloud, &identity, image, method).await? {
                actions.push(action);
            }
        }
        if !actions.is_empty() {
            access.push(Access {
                kind: "repository",
                name: scope.repository,
                actions,
            });
        }
    }
    let subject = identity
        .actor()
        .map_or_else(String::new, |actor| actor.to_string());
    let issued = now() / 1000;
    let token = server
        .registry
        .token(&subject, service, &access, issued)
        .map_err(Refusal::Fault)?;
    let issued = Timestamp::from_second(issued).unwrap_or(Timestamp::UNIX_EPOCH);
    let answer = json!({
        "token": token,
        "access_token": token,
        "expires_in": LIFE.as_secs(),
        "issued_at": issued.to_string(),
    });
    Ok(ok(&answer))
}

/// Returns the password of basic authentication: a key, or a session token. It identifies its holder itself, so the
/// name is ignored.
fn password(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim()).ok()?;
    let (_, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some(password.to_owned())
}

/// Returns the image that is stored in this repository of the registry.
async fn image(cloud: &Cloud, repository: &str) -> Result<Option<i64>, Refusal> {
    if !may_be_an_image(repository) {
        return Ok(None);
    }
    let location = format!("{}/{repository}", cloud.environment.registry);
    let select = SystemPurpose::Lookup
        .sql("SELECT id FROM image WHERE is_stored_at__image_location = ?")
        .with(location);
    Ok(cloud.database.id(&select).await?)
}

async fn may(
    cloud: &Cloud,
    identity: &Identity,
    image: i64,
    method: Method,
) -> Result<bool, Refusal> {
    let right = cloud
        .right(&identity.caller, "image", image, method)
        .await?;
    Ok(right.is_some())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_password_is_the_credential_whatever_the_name() {
        for (value, found) in [
            (
                format!("Basic {}", STANDARD.encode("d_ab12:key")),
                Some("key"),
            ),
            (
                format!("basic {}", STANDARD.encode(":k:e:y")),
                Some("k:e:y"),
            ),
            (format!("Basic {}", STANDARD.encode("key")), None),
            ("Basic ???".to_owned(), None),
            ("Bearer key".to_owned(), None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::AUTHORIZATION,
                HeaderValue::from_str(&value).expect("text"),
            );
            assert_eq!(password(&headers).as_deref(), found, "{value}");
        }
    }
}
