//! Helps a person find the device in a rack: has it show itself, and says how long that took.
//!
//! It has no LED of its own. Which plugin shows the device, and how, is the device's matter: led-blink, a
//! board's own, or none.

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
