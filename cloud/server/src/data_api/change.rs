//! Requests that change rows, and their answers (docs/spec/cloud.md#odata-writes).

use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal, json as json_answer};
use cloud_core::cloud::Cloud;
use data::query::{self, Caller, QueryContext};
use data::write::{Verb, Write, WriteError, WriteOutcome, write};
use http::{HeaderValue, StatusCode, header};
use resources::{Method, Version};
use serde_json::json;

/// Checks that the caller may do this with some rows of the resource, as far as is known before the body is read.
///
/// # Errors
/// 401.
pub(super) fn check_right(
    cloud: &Cloud,
    caller: &Caller,
    version: Version,
    verb: Verb,
    request: &odata::Request,
) -> Result<(), Refusal> {
    let odata::Address::Resource(path) = &request.address else {
        return Ok(());
    };
    let methods: &[Method] = match verb {
        Verb::Post => &[Method::Create],
        Verb::Patch => &[Method::Update],
        Verb::Put => &[Method::Create, Method::Update],
        Verb::Delete => &[Method::Delete],
    };
    let setting = cloud.setting_of(caller, version);
    for method in methods {
        if !query::any_right(&setting, &path.resource.text, *method)? {
            return Err(Refusal::Unauthorized);
        }
    }
    Ok(())
}

/// Changes rows; the version determines the form of the answer. A new row is answered with addresses at `origin`, the
/// address of this cloud.
pub(super) async fn change(
    cloud: &Cloud,
    caller: &Caller,
    request: Write<'_>,
    origin: &str,
) -> Answer {
    let shape = request.version.shape();
    let setting = cloud.setting(caller);
    let database = cloud.database_of(caller);
    match write(&database, &cloud.environment, setting, request).await {
        Ok(WriteOutcome::Changed(_)) if shape.says_ok => Ok(json_answer(StatusCode::OK, "\"OK\"")),
        Ok(WriteOutcome::Changed(_)) => Ok(StatusCode::OK.into_response()),
        Ok(WriteOutcome::Created { resource, id }) => {
            created(cloud, caller, &request, origin, resource, id).await
        }
        Err(WriteError::Conflict(why)) if shape.conflict == 400 => Err(Refusal::Wrong(why)),
        Err(error) => Err(error.into()),
    }
}

/// Answers 201 with the row as its creator may see it.
async fn created(
    cloud: &Cloud,
    caller: &Caller,
    request: &Write<'_>,
    origin: &str,
    resource: &str,
    id: i64,
) -> Answer {
    let setting = QueryContext {
        origin,
        ..cloud.setting_of(caller, request.version)
    };
    let row = if request.request.options.returns_id_alone {
        None
    } else {
        // If its creator may not read the row, the answer contains only its id.
        match query::record(&setting, resource, id) {
            Ok(select) => {
                let rows = cloud.database_of(caller).texts(&select).await?;
                rows.into_iter().next().flatten()
            }
            Err(query::QueryError::NoRights(_)) => None,
            Err(error) => return Err(error.into()),
        }
    };
    let text = row.unwrap_or_else(|| json!({ "id": id }).to_string());
    let mut response = json_answer(StatusCode::CREATED, text);
    let place = format!("{}/{resource}(@id)?@id={id}", request.version.path());
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    Ok(response)
}
