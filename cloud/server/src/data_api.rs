//! `/v7/…`: the data API over HTTP (cloud behaviour 2; cloud API).
//!
//! The path is routed as it came, undecoded: a quoted key may have slashes in it.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use data::query::{self, Caller, Read};
use data::write::{Verb, Write, WriteError, Written, write};
use futures::{Stream, StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use odata::{Address, Tail};
use resources::Action;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::answer::{Refusal, json as json_answer};
use crate::body;
use crate::cloud::{Cloud, Shared};
use crate::credential::Identity;

/// Answers of up to so many bytes are put together before they are sent, and so have an ETag.
const WHOLE: usize = 4 << 20;

/// Any request of the data API.
pub(crate) async fn serve(State(cloud): State<Shared>, request: Request) -> Response {
    match answer(&cloud, request).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn answer(cloud: &Cloud, request: Request) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let Some(rest) = path
        .strip_prefix("/v7")
        .filter(|rest| rest.starts_with('/'))
    else {
        return Err(Refusal::Missing(format!("there is nothing at `{path}`")));
    };
    let query = parts.uri.query().filter(|query| !query.is_empty());
    let identity = cloud.identify(&parts.headers, query).await?;
    cloud.charge(&identity, &parts)?;
    if parts.method == Method::POST
        && let Some(of) = rest.strip_suffix("/canAccess")
    {
        let body = body::object(&parts.headers, body, cloud.configuration.limits.data_body).await?;
        return can_access(cloud, &identity, of, query, &body).await;
    }
    if rest == "/$batch" {
        return Err(Refusal::Missing("there is no `$batch`".to_owned()));
    }
    let parsed = odata::parse(rest, query)?;
    match parts.method {
        Method::GET | Method::HEAD => {
            get(
                cloud,
                &identity.caller,
                &parsed,
                rest,
                query,
                &parts.headers,
            )
            .await
        }
        Method::POST | Method::PATCH | Method::PUT | Method::DELETE => {
            let verb = match parts.method {
                Method::POST => Verb::Post,
                Method::PATCH => Verb::Patch,
                Method::PUT => Verb::Put,
                _ => Verb::Delete,
            };
            let body = match verb {
                Verb::Delete => Map::new(),
                _ => {
                    body::object(&parts.headers, body, cloud.configuration.limits.data_body).await?
                }
            };
            change(cloud, &identity.caller, verb, &parsed, rest, query, &body).await
        }
        ref method if method.as_str() == "MERGE" => {
            let body =
                body::object(&parts.headers, body, cloud.configuration.limits.data_body).await?;
            change(
                cloud,
                &identity.caller,
                Verb::Patch,
                &parsed,
                rest,
                query,
                &body,
            )
            .await
        }
        _ => {
            let allowed = [(
                header::ALLOW,
                "GET, HEAD, POST, PATCH, PUT, DELETE, OPTIONS",
            )];
            Ok((StatusCode::METHOD_NOT_ALLOWED, allowed).into_response())
        }
    }
}

async fn get(
    cloud: &Cloud,
    caller: &Caller,
    parsed: &odata::Request,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    match query::read(&cloud.setting(caller), parsed, path, query)? {
        Read::Records(select) => listing(cloud.database.stream(&select), headers).await,
        Read::Count(select) => {
            let row = cloud.database.row(&select).await?;
            let count = match row {
                Some(row) => row.id(0)?,
                None => 0,
            };
            Ok(tagged(
                json!({ "d": count }).to_string().into_bytes(),
                headers,
            ))
        }
        Read::Metadata => Err(Refusal::Missing(
            "the model has no description yet".to_owned(),
        )),
    }
}

/// `{"d":[…]}` of rows as they come.
async fn listing(
    rows: impl Stream<Item = Result<Option<String>, data::DataError>> + Send + Unpin + 'static,
    headers: &HeaderMap,
) -> Result<Response, Refusal> {
    let mut rows = rows;
    let mut text = Vec::from(&b"{\"d\":["[..]);
    let mut first = true;
    while let Some(row) = rows.next().await {
        let row = row?.unwrap_or_default();
        if !first {
            text.push(b',');
        }
        first = false;
        text.extend_from_slice(row.as_bytes());
        if text.len() > WHOLE {
            return Ok(streamed(text, rows));
        }
    }
    text.extend_from_slice(b"]}");
    Ok(tagged(text, headers))
}

/// The rest of a long answer, while few rows of it are in memory.
fn streamed(
    begun: Vec<u8>,
    rows: impl Stream<Item = Result<Option<String>, data::DataError>> + Send + 'static,
) -> Response {
    let begun = futures::stream::iter([Ok(Bytes::from(begun))]);
    let rest = rows.map_ok(|row| Bytes::from(format!(",{}", row.unwrap_or_default())));
    let end = futures::stream::iter([Ok(Bytes::from_static(b"]}"))]);
    json_answer(
        StatusCode::OK,
        Body::from_stream(begun.chain(rest).chain(end)),
    )
}

/// A whole answer with its ETag; 304 where the client has it.
pub(crate) fn tagged(text: Vec<u8>, headers: &HeaderMap) -> Response {
    let hash = Sha256::digest(&text);
    let tag = format!("W/\"{}\"", hex::encode(hash.get(..16).unwrap_or(&hash)));
    let known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim() == "*" || value.trim() == tag);
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => json_answer(StatusCode::OK, text),
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

async fn change(
    cloud: &Cloud,
    caller: &Caller,
    verb: Verb,
    parsed: &odata::Request,
    path: &str,
    query: Option<&str>,
    body: &Map<String, Value>,
) -> Result<Response, Refusal> {
    let asked = Write {
        verb,
        request: parsed,
        path,
        query,
        body,
    };
    let setting = cloud.setting(caller);
    match write(&cloud.database, &cloud.environment, setting, asked).await? {
        Written::Changed(_) => Ok(StatusCode::OK.into_response()),
        Written::Created { resource, id } => {
            created(cloud, caller, parsed.options.returns_id_alone, resource, id).await
        }
    }
}

/// 201 with the row as its maker sees it.
async fn created(
    cloud: &Cloud,
    caller: &Caller,
    id_alone: bool,
    resource: &str,
    id: i64,
) -> Result<Response, Refusal> {
    let row = match id_alone {
        true => None,
        // A row that its maker may not read is answered by its id.
        false => match query::record(&cloud.setting(caller), resource, id) {
            Ok(select) => cloud
                .database
                .texts(&select)
                .await?
                .into_iter()
                .next()
                .flatten(),
            Err(query::QueryError::NoRights(_)) => None,
            Err(error) => return Err(error.into()),
        },
    };
    let text = row.unwrap_or_else(|| json!({ "id": id }).to_string());
    let mut response = json_answer(StatusCode::CREATED, text);
    if let Ok(place) = HeaderValue::from_str(&format!("/v7/{resource}(@id)?@id={id}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}

/// `POST /v7/device(7)/canAccess` (2.8).
async fn can_access(
    cloud: &Cloud,
    identity: &Identity,
    of: &str,
    query: Option<&str>,
    body: &Map<String, Value>,
) -> Result<Response, Refusal> {
    let parsed = odata::parse(of, query)?;
    let Address::Resource(path) = &parsed.address else {
        return Err(Refusal::Wrong(
            "`canAccess` is asked of a record".to_owned(),
        ));
    };
    if path.key.is_none() || !path.links.is_empty() || path.tail != Tail::Records {
        return Err(Refusal::Wrong(
            "`canAccess` is asked of one record, by its key: `device(7)/canAccess`".to_owned(),
        ));
    }
    let asked = match (body.get("action"), body.get("method")) {
        (Some(Value::String(action)), None) => {
            Asked::Action(Action::named(action).ok_or(Refusal::Unauthorized)?)
        }
        (None, Some(Value::String(method))) => Asked::Method(match method.as_str() {
            "GET" => resources::Method::Read,
            "POST" | "PUT" => resources::Method::Create,
            "PATCH" | "MERGE" => resources::Method::Update,
            "DELETE" => resources::Method::Delete,
            other => {
                return Err(Refusal::Wrong(format!(
                    "`{}` is no method; `canAccess` knows GET, POST, PUT, PATCH and DELETE",
                    short(other)
                )));
            }
        }),
        _ => {
            return Err(Refusal::Wrong(
                "`canAccess` takes exactly one of `action` and `method`, as text".to_owned(),
            ));
        }
    };
    let setting = cloud.setting(&identity.caller);
    let reads = query::rows(&setting, &parsed, resources::Method::Read, of, query)?;
    let Some(row) = cloud.database.row(&reads.1).await? else {
        return Err(Refusal::Unauthorized);
    };
    let id = row.id(0)?;
    let permitted = match asked {
        Asked::Method(method) => query::permitted(&setting, reads.0, id, method)?,
        Asked::Action(action) => query::permitted_action(&setting, reads.0, id, action)?,
    };
    match cloud.database.row(&permitted).await? {
        Some(_) => Ok(json_answer(
            StatusCode::OK,
            json!({ "d": [{ "id": id }] }).to_string(),
        )),
        None => Err(Refusal::Unauthorized),
    }
}

enum Asked {
    Action(Action),
    Method(resources::Method),
}

/// For messages: the beginning of what somebody sent.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(why) => Refusal::Wrong(why),
            WriteError::NoRights => Refusal::Unauthorized,
            WriteError::Forbidden(why) => Refusal::Forbidden(why),
            WriteError::NotFound(why) => Refusal::Missing(why),
            WriteError::Conflict(why) => Refusal::Conflict(why),
            WriteError::Data(error) => error.into(),
            broken @ WriteError::Broken(_) => Refusal::Fault(broken.into()),
        }
    }
}
