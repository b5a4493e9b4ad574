//! `/v1/…` to `/v7/…`: the data API over HTTP (docs/spec/cloud.md#odata, docs/spec/cloud.md#older-versions).
//!
//! The path is routed undecoded, because a quoted key may contain slashes. An older version consists of its own model
//! for reads, a translation for writes, and the form of its answers (`resources::Version`).

mod can_access;
mod change;
mod listing;
mod upload;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::charge::payer;
use cloud_core::credential::{Credential, Identity, STALE};
use cloud_core::limits::RateLimitKey;
use cloud_core::public_url::public_url;
use data::query::{self, Caller, QueryContext, ReadStatement};
use data::write::{Verb, Write};
use http::{HeaderMap, Method, StatusCode, header};
use odata::{Address, Key};
use resources::Version;
use serde_json::{Map, json};

use crate::etag::tagged;
use crate::release_asset::{self, AssetForm};
use crate::state::{Server, ServerState};
use change::change;

/// Maximum bytes of a `canAccess` question.
const MAX_QUESTION: usize = 4 << 10;

/// Handles any request of the data API.
pub(crate) async fn serve(State(server): State<ServerState>, request: Request) -> Response {
    match answer(&server, request).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(server: &Server, request: Request) -> Answer {
    let cloud = &*server.cloud;
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let Some((version, rest)) = versioned(path) else {
        return Err(Refusal::Missing(format!("not found: `{path}`")));
    };
    let query = parts.uri.query().filter(|query| !query.is_empty());
    let identity = cloud.auth.admit(&parts).await?;
    let most = cloud.configuration.limits.data_body;
    if parts.method == Method::POST
        && let Some(of) = rest.strip_suffix("/canAccess")
    {
        let body = body::object(&parts.headers, body, MAX_QUESTION).await?;
        let _share = server.share(&identity, &parts).await?;
        return can_access::can_access(cloud, &identity, version, of, query, &body).await;
    }
    if parts.method == Method::POST
        && let Some((of, action)) = upload::Action::behind(rest)
    {
        return upload::serve(server, &identity, version, of, action, &parts, body).await;
    }
    if rest == "/$batch" {
        return Err(Refusal::Missing("`$batch` is not supported".to_owned()));
    }
    let base = path.strip_suffix(rest).unwrap_or_default();
    let parsed = odata::parse_behind(base, rest, query)?;
    let Some(verb) = verb(&parts.method) else {
        return match parts.method {
            Method::GET | Method::HEAD => {
                let request_read = ReadRequest {
                    version,
                    request: &parsed,
                    origin: &public_url(cloud, &parts.headers),
                    payer: &payer(&identity, &parts),
                };
                let share = server.share(&identity, &parts).await?;
                let response = get(server, &identity.caller, request_read, &parts.headers).await?;
                Ok(share.until_sent(response))
            }
            _ => {
                let allowed = "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS";
                Ok((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, allowed)]).into_response())
            }
        };
    };
    if verb == Verb::Delete {
        may_delete(&identity, &parsed)?;
    }
    // Checked first, so that nobody sends a body that they may not write.
    change::check_right(cloud, &identity.caller, version, verb, &parsed)?;
    let form = match verb {
        Verb::Delete => no_body(),
        _ if release_asset::is_form(&parts.headers)
            && release_asset::is_addressed(version, &parsed) =>
        {
            release_asset::read(cloud, &identity.caller, &parts.headers, body).await?
        }
        _ => AssetForm {
            fields: body::object(&parts.headers, body, most).await?,
            file: None,
        },
    };
    let request = Write {
        version,
        verb,
        request: &parsed,
        body: &form.fields,
        file: form.file.as_ref(),
    };
    let origin = public_url(cloud, &parts.headers);
    let _share = server.share(&identity, &parts).await?;
    let answer = change(cloud, &identity.caller, request, &origin).await;
    if let Some(file) = &form.file {
        // Deletes the file if no row refers to it.
        cloud.database.drop_file(file.id).await?;
    }
    answer
}

/// Checks that users delete only themselves, by number, right after signing in (docs/spec/cloud.md#model-people).
fn may_delete(identity: &Identity, request: &odata::Request) -> Result<(), Refusal> {
    let Address::Resource(path) = &request.address else {
        return Ok(());
    };
    if path.resource.text != "user" {
        return Ok(());
    }
    if !matches!(path.key, Some(Key::Id(_))) {
        return Err(Refusal::Wrong(
            "a user is deleted by the number: `user(7)`".to_owned(),
        ));
    }
    match &identity.credential {
        Credential::Session(claims) if claims.fresh() => Ok(()),
        Credential::Session(_) => Err(Refusal::UnauthorizedSaying(STALE)),
        _ => Err(Refusal::Unauthorized),
    }
}

fn no_body() -> AssetForm {
    AssetForm {
        fields: Map::new(),
        file: None,
    }
}

/// Splits a path into its version and the rest, which starts with a slash.
fn versioned(path: &str) -> Option<(Version, &str)> {
    let (name, _) = path.strip_prefix('/')?.split_once('/')?;
    let rest = path.get(1 + name.len()..)?;
    Some((name.parse().ok()?, rest))
}

/// Returns what a method does with rows, if it changes them.
fn verb(method: &Method) -> Option<Verb> {
    match *method {
        Method::POST => Some(Verb::Post),
        Method::PATCH => Some(Verb::Patch),
        Method::PUT => Some(Verb::Put),
        Method::DELETE => Some(Verb::Delete),
        ref other => (other.as_str() == "MERGE").then_some(Verb::Patch),
    }
}

/// A request to read rows.
struct ReadRequest<'a> {
    version: Version,
    request: &'a odata::Request,
    /// The address of this cloud.
    origin: &'a str,
    /// The payer that it is counted for.
    payer: &'a RateLimitKey,
}

async fn get(
    server: &Server,
    caller: &Caller,
    read: ReadRequest<'_>,
    headers: &HeaderMap,
) -> Answer {
    let cloud = &server.cloud;
    let setting = QueryContext {
        origin: read.origin,
        ..cloud.setting_of(caller, read.version)
    };
    match query::read(&setting, read.request)? {
        ReadStatement::Records(select) => {
            let rows = cloud.database_of(caller).stream(&select);
            listing::listing(rows, headers, &server.long_answers, read.payer).await
        }
        ReadStatement::Count(select) => {
            let count = cloud.database_of(caller).id(&select).await?;
            let count = count.unwrap_or_default();
            let text = json!({ "d": count }).to_string();
            Ok(tagged(text.into_bytes(), headers))
        }
        ReadStatement::Metadata => {
            let text = read.version.metadata().as_bytes().to_vec();
            let mut response = tagged(text, headers);
            if response.status() == StatusCode::OK {
                let kind = header::HeaderValue::from_static("application/xml; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
            }
            Ok(response)
        }
    }
}
