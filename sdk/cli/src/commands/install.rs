//! `install`: installs a plugin on devices in developer mode.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::arguments::Install;
use crate::component::Component;
use crate::device::{DeviceAddress, DeviceClient, printable};
use crate::output::Output;
use crate::plugin_artifact;

pub(crate) async fn run(arguments: &Install, output: &Output) -> Result<ExitCode> {
    let file = arguments.component.file.as_deref();
    let component = match file.and_then(plugin_artifact::name_in_registry) {
        Some(name) => {
            let pulled = plugin_artifact::pull(&name).await;
            pulled.context("cannot get it from the registry")?.component
        }
        None => Component::load(&arguments.component, output)?,
    };
    let client = DeviceClient::new(arguments.devices.key.as_deref())?;
    let name = &component.manifest.name;
    let wasm = Bytes::from(component.wasm);
    let mut texts = Vec::new();
    let mut documents = Vec::new();
    let mut all_serve = true;
    for device in &arguments.devices.devices {
        let installed = client.install(device, name, wasm.clone()).await;
        let (serves, text, document) = match installed {
            Ok(answer) => (serves(&answer), sentence(device, name, &answer), answer),
            Err(error) => (
                false,
                format!("{device}: {name} is not installed: {error:#}"),
                json!({ "error": format!("{error:#}") }),
            ),
        };
        all_serve &= serves;
        texts.push(text);
        let mut document = document;
        document["device"] = device.to_string().into();
        documents.push(document);
    }
    output.result(
        &texts.join("\n"),
        &json!({ "name": name, "devices": documents }),
    );
    Ok(if all_serve {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns whether the file that was sent is in use, or is for other boards than the device.
fn serves(answer: &Value) -> bool {
    let state = answer["state"].as_str().unwrap_or_default();
    matches!(state, "running" | "other-board") && answer["refused"].is_null()
}

/// Describes the result of the installation on a device.
fn sentence(device: &DeviceAddress, name: &str, answer: &Value) -> String {
    let word = |key: &str| answer[key].as_str().map(printable);
    let version = word("version").unwrap_or_default();
    let previous = word("previous");
    let change = match &previous {
        Some(previous) => format!("{device}: {name} {previous} -> {version}"),
        None => format!("{device}: {name} {version} (new)"),
    };
    let state = word("state").unwrap_or_default();
    let Some(refused) = word("refused") else {
        return match state.as_str() {
            "running" => change,
            "other-board" => format!("{change}, which is for other boards"),
            _ => format!(
                "{change}, which is still being loaded: `supervisor plugins list` shows the result"
            ),
        };
    };
    let before = match (state.as_str(), &previous) {
        ("running", Some(previous)) => format!("; {previous} stays in use"),
        _ => String::new(),
    };
    let mut text = format!("{change}, which the device refuses{before}: {refused}");
    if let Some(lines) = word("policyLines") {
        text.push_str(&format!(
            "\n\nThese lines in its policy grant what the plugin asks for:\n\n{}",
            lines.trim_end()
        ));
    }
    text
}
