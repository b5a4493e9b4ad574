//! Shows people on the site what is running, in a short form, and lets them restart it: the example of requests to the
//! device's own API. It has no rights of its own: it shows and does only what its caller's key may see and do.
use serde::{Deserialize, Serialize};
use serde_json::Value;
use supervisor_sdk::api::Request;
use supervisor_sdk::{Error, Json, Path, config, plugin};

plugin! {
    capabilities: { api => "reads the state of the services, and restarts an app" }
    routes: {
        GET "/v3/site-panel" => show,
        POST "/v3/site-panel/:app/restart" => restart,
    }
}

/// The table `[plugins.site-panel]` of the supervisor's configuration.
#[derive(Deserialize)]
struct Configuration {
    /// The route of the state, for devices whose vendor has a route of its own.
    #[serde(default = "state_route")]
    state: String,
}

fn state_route() -> String {
    "/v2/state/status".to_owned()
}

#[derive(Serialize)]
struct Panel {
    state: String,
    services: Vec<String>,
}

async fn show() -> Result<Json<Panel>, Error> {
    let Configuration { state } = config::read()?;
    let state: Value = Request::get(state).send().await?.json()?;
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let services = state["containers"].as_array().into_iter().flatten();
    Ok(Json(Panel {
        state: text(&state["appState"]),
        services: services
            .map(|service| {
                format!(
                    "{} {}",
                    text(&service["serviceName"]),
                    text(&service["status"])
                )
            })
            .collect(),
    }))
}

async fn restart(Path(app): Path<u64>) -> Result<String, Error> {
    let answer = Request::post("/v1/restart")
        .json(&serde_json::json!({ "appId": app }))?
        .send()
        .await?;
    match answer.status {
        200..=299 => Ok("restarted".to_owned()),
        401 => Err(Error::forbidden("your key is not for that app")),
        status => {
            let why = String::from_utf8_lossy(&answer.body);
            Err(Error::new(status, "refused", why))
        }
    }
}
