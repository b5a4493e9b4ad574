//! `uninstall`: removes a plugin from devices in developer mode.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::arguments::Uninstall;
use crate::device::DeviceClient;
use crate::output::Output;

pub(crate) async fn run(arguments: &Uninstall, output: &Output) -> Result<ExitCode> {
    let Uninstall { name, devices } = arguments;
    let client = DeviceClient::new(devices.key.as_deref())?;
    let mut texts = Vec::new();
    let mut documents = Vec::new();
    let mut code = ExitCode::SUCCESS;
    for device in &devices.devices {
        let mut document = json!({ "device": device.to_string() });
        match client.uninstall(device, name).await {
            Ok(()) => texts.push(format!("{device}: {name} is removed")),
            Err(error) => {
                code = ExitCode::FAILURE;
                document["error"] = format!("{error:#}").into();
                texts.push(format!("{device}: {name} is not removed: {error:#}"));
            }
        }
        documents.push(document);
    }
    output.result(
        &texts.join("\n"),
        &json!({ "name": name, "devices": documents }),
    );
    Ok(code)
}
