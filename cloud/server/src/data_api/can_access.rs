//! Whether the caller may do something with a record (docs/spec/cloud.md#odata-actions).

use cloud_core::answer::{Answer, Refusal, ok};
use cloud_core::cloud::Cloud;
use cloud_core::credential::Identity;
use data::query;
use odata::{Address, Tail};
use resources::{Action, Version};
use serde_json::{Map, Value, json};

/// `POST /v7/device(7)/canAccess` (docs/spec/cloud.md#odata-actions).
pub(super) async fn can_access(
    cloud: &Cloud,
    identity: &Identity,
    version: Version,
    of: &str,
    query: Option<&str>,
    body: &Map<String, Value>,
) -> Answer {
    let base = version.path();
    let parsed = odata::parse_behind(base, of, query)?;
    let Address::Resource(path) = &parsed.address else {
        return Err(Refusal::Wrong("`canAccess` applies to a record".to_owned()));
    };
    if path.key.is_none() || !path.links.is_empty() || path.tail != Tail::Records {
        return Err(Refusal::Wrong(
            "`canAccess` applies to one record, by its key: `device(7)/canAccess`".to_owned(),
        ));
    }
    let requested = match (body.get("action"), body.get("method")) {
        (Some(Value::String(action)), None) => {
            RequestedRight::Action(action.parse().map_err(|_| Refusal::Unauthorized)?)
        }
        (None, Some(Value::String(method))) => RequestedRight::Method(match method.as_str() {
            "GET" => resources::Method::Read,
            "POST" | "PUT" => resources::Method::Create,
            "PATCH" | "MERGE" => resources::Method::Update,
            "DELETE" => resources::Method::Delete,
            other => {
                return Err(Refusal::Wrong(format!(
                    "`{}` is not a method; `canAccess` accepts GET, POST, PUT, PATCH and DELETE",
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
    let setting = cloud.setting_of(&identity.caller, version);
    let reads = query::rows(&setting, &parsed, resources::Method::Read)?;
    let database = cloud.database_of(&identity.caller);
    let Some(row) = database.row(&reads.1).await? else {
        return Err(Refusal::Unauthorized);
    };
    let id = row.id(0)?;
    let permitted = match requested {
        RequestedRight::Method(method) => query::permitted(&setting, reads.0, id, method)?,
        RequestedRight::Action(action) => query::permitted(&setting, reads.0, id, action)?,
    };
    match database.row(&permitted).await? {
        Some(_) => Ok(ok(&json!({ "d": [{ "id": id }] }))),
        None => Err(Refusal::Unauthorized),
    }
}

enum RequestedRight {
    Action(Action),
    Method(resources::Method),
}

/// Returns the beginning of the input, for messages.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
