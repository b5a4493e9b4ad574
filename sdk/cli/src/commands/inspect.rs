//! `inspect`: shows the properties, imports and contents of a component.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use plugins::{SignaturePlace, embedded_signature, signature_place};
use serde_json::json;

use crate::arguments::ComponentArguments;
use crate::component::Component;
use crate::output::{Output, size};
use crate::plugin_artifact;

pub(crate) async fn run(arguments: &ComponentArguments, output: &Output) -> Result<ExitCode> {
    let in_registry = arguments.file.as_deref();
    let in_registry = in_registry.and_then(plugin_artifact::name_in_registry);
    let (component, signature) = match in_registry {
        Some(name) => {
            let pulled = plugin_artifact::pull(&name).await;
            let pulled = pulled.with_context(|| "cannot get it from the registry")?;
            let beside = pulled.signature.map(|_| SignaturePlace::Beside);
            let wasm = &pulled.component.wasm;
            let place = embedded_signature(wasm).map(|_| SignaturePlace::InFile);
            (pulled.component, place.or(beside))
        }
        None => {
            let component = Component::as_it_is(arguments, output)?;
            let place = signature_place(&component.file, &component.wasm);
            (component, place)
        }
    };
    let manifest = &component.manifest;
    let about = &manifest.about;
    let digest = compiled_code::digest(&component.wasm);
    let signature = signature.map(|place| place.to_string());
    let imports = component.imports();
    let mut text = format!(
        "{} {}  {}  sha256:{digest}\n",
        manifest.name,
        manifest.version,
        size(component.wasm.len() as u64)
    );
    let mut row = |title: &str, value: &str| {
        let _ = writeln!(text, "  {title:<12} {value}");
    };
    for (key, text) in about.texts() {
        row(key, text);
    }
    row("interface", &manifest.interface.to_string());
    row("signature", signature.as_deref().unwrap_or("none"));
    for route in &manifest.routes {
        row("route", &route.to_string());
    }
    // The others are shown by what they consist of.
    let provides = manifest.provides.iter();
    for action in provides.filter(|action| action.has_one_provider()) {
        row("provides", &action.to_string());
    }
    for kind in &manifest.events {
        row("event", &kind.to_string());
    }
    for (name, schedule) in &manifest.schedules {
        row("schedule", &format!("{name}: {schedule}"));
    }
    for action in &manifest.actions {
        row("action", action);
    }
    for need in &manifest.capabilities {
        row("asks for", &format!("{}: {}", need.name, need.reason));
    }
    for limit in manifest.limits.written() {
        row("limit", &format!("{} = {}", limit.range.key, limit.value));
    }
    if !manifest.boards.is_empty() {
        row("boards", &manifest.boards.join(", "));
    }
    for import in &imports {
        row("imports", import);
    }
    let routes: Vec<String> = manifest.routes.iter().map(ToString::to_string).collect();
    let provides: Vec<String> = manifest.provides.iter().map(ToString::to_string).collect();
    let events: Vec<String> = manifest
        .event_kinds()
        .iter()
        .map(ToString::to_string)
        .collect();
    let schedules: BTreeMap<&String, String> = manifest
        .schedules
        .iter()
        .map(|(name, schedule)| (name, schedule.to_string()))
        .collect();
    output.result(
        &text,
        &json!({
            "file": component.file, "name": manifest.name, "version": manifest.version.to_string(), "sha256": digest,
            "bytes": component.wasm.len(), "about": about, "interface": manifest.interface.to_string(),
            "signature": signature, "routes": routes, "provides": provides, "events": events, "schedules": schedules,
            "actions": manifest.actions, "capabilities": manifest.capabilities, "limits": manifest.limits,
            "boards": manifest.boards, "imports": imports,
        }),
    );
    Ok(ExitCode::SUCCESS)
}
