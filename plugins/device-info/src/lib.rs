//! The identity of the device: `GET /v2/local/device-info` and `GET /v2/device/name`.
//!
//! Both answer from what the supervisor knows; `unknown` and `local` stand for what it does not
//! know (docs/spec/device.md#v2-others).

use serde::Serialize;
use supervisor_sdk::{Json, device, plugin};

plugin! {
    capabilities: { device => "answers with the device's architecture, type and name" }
    routes: {
        GET "/v2/local/device-info" => info,
        GET "/v2/device/name" => name,
    }
    openapi: "openapi.json"
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InfoAnswer {
    status: &'static str,
    info: Info,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_the_schemas_of_what_is_answered() {
        let mut schemas = supervisor_testing::schemas();
        schemas.subschema_for::<InfoAnswer>();
        schemas.subschema_for::<NameAnswer>();
        supervisor_testing::assert_described(include_str!("../openapi.json"), schemas);
    }
}
