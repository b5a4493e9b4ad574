//! Helps a person find the device in a rack: makes it identify itself, and returns the device's name
//! afterwards.
//!
//! It has no LED of its own. The device decides which plugin shows it, and how: led-blink, a board's own
//! plugin, or none.

use serde::Serialize;
use supervisor_sdk::{Error, Json, device, identify, log, plugin};

plugin! {
    capabilities: {
        device => "reports which device identifies itself",
        identify => "makes the device identify itself",
    }
    routes: { POST "/v3/find-me" => find_me }
    limits: { wall_ms: 20000 }
}

#[derive(Serialize)]
struct Answer {
    shown: String,
}

async fn find_me() -> Result<Json<Answer>, Error> {
    let name = device::identity().name;
    log::info(format_args!("somebody is looking for `{name}`"));
    identify::run().await?;
    Ok(Json(Answer { shown: name }))
}
