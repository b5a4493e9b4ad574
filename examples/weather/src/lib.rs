//! Relays the weather from a server to the services of the device: the example of the capability `http`.
//!
//! The supervisor's configuration names the server: `[plugins.weather] server = "https://api.weather.example"`.
use serde::{Deserialize, Serialize};
use supervisor_sdk::http::Request;
use supervisor_sdk::{Error, Json, Path, config, plugin};

plugin! {
    description: "Relays the weather from a server to the services of the device"
    capabilities: { http => "asks the server of the configuration" }
    routes: { GET "/v3/weather/:place" => weather }
}

#[derive(Deserialize)]
struct Config {
    server: String,
}

#[derive(Deserialize, Serialize)]
struct Weather {
    celsius: f64,
}

async fn weather(Path(place): Path<String>) -> Result<Json<Weather>, Error> {
    let Config { server } = config::read()?;
    if !place
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        return Err(Error::bad_request("a place is of letters, digits and `-`"));
    }
    let answer = Request::get(format!("{server}/now/{place}"))
        .header("accept", "application/json")
        .send()
        .await?;
    Ok(Json(answer.json()?))
}
