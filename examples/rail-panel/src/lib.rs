//! Shows and switches the power rails over HTTP, with the actions of `acme-rails`: the example of the capability
//! `actions`.
use serde_json::{Value, json};
use supervisor_sdk::{Error, Json, Path, actions, plugin};

plugin! {
    description: "Shows and switches the power rails of the board"
    capabilities: { actions => "has acme-rails switch the rails" }
    routes: {
        GET "/v3/rail-panel" => show,
        POST "/v3/rail-panel/:rail/:state" => switch,
    }
}

async fn show() -> Result<Json<Value>, Error> {
    Ok(Json(actions::call_json("acme-rails/list", &"").await?))
}

async fn switch(Path((rail, state)): Path<(String, String)>) -> Result<Json<Value>, Error> {
    let on = match state.as_str() {
        "on" => true,
        "off" => false,
        _ => return Err(Error::bad_request("a rail is switched `on` or `off`")),
    };
    let rail = json!({ "name": rail, "on": on });
    let by: Option<String> = actions::call_json("acme-rails/set", &rail).await?;
    Ok(Json(json!({ "switchedBy": by })))
}
