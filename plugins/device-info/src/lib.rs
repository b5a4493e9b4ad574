//! What the device is: `GET /v2/local/device-info` and `GET /v2/device/name`.
//!
//! Both answer from what the supervisor knows; `unknown` and `local` stand for what it does not
//! (device behaviour, 1.4).

use serde::Serialize;
use supervisor_sdk::{Json, device, plugin};

plugin! {
    capabilities: { device => "answers with the device's architecture, type and name" }
    routes: {
        GET "/v2/local/device-info" => info,
        GET "/v2/device/name" => name,
    }
}

#[derive(Serialize)]
struct InfoAnswer {
    status: &'static str,
    info: Info,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    arch: String,
    device_type: String,
}

async fn info() -> Json<InfoAnswer> {
    let device = device::identity();
    Json(InfoAnswer {
        status: "success",
        info: Info {
            arch: device.arch,
            device_type: device.device_type,
        },
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NameAnswer {
    status: &'static str,
    device_name: String,
}

async fn name() -> Json<NameAnswer> {
    Json(NameAnswer {
        status: "success",
        device_name: device::identity().name,
    })
}
