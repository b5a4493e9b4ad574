//! `inspect`: shows the properties, imports and contents of a component, and the limits that a device gives it.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use plugin_manifest::WrittenLimits;
use plugin_test_host::protocol::text::{LONGEST, one_line};
use plugins::{SignaturePlace, embedded_signature, signature_place};
use serde_json::json;

use crate::arguments::ComponentArguments;
use crate::component::Component;
use crate::output::{Output, size};
use crate::plugin_artifact;
use crate::producers::{SDK, sdk_version};

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
    let sdk = sdk_version(&component.wasm);
    let mut text = format!(
        "{} {}  {}  sha256:{digest}\n",
        manifest.name,
        manifest.version,
        size(component.wasm.len() as u64)
    );
    let mut row = |title: &str, value: &str| text.push_str(&row(title, value));
    for (key, text) in about.texts() {
        row(key, text);
    }
    row("interface", &manifest.interface.to_string());
    row("sdk", &sdk_text(&sdk));
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
    for limit in limit_texts(&manifest.limits) {
        row("limit", &limit);
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
    let sdk = sdk.ok().flatten();
    let sdk = sdk.map(|version| json!({ "name": SDK, "version": version }));
    output.result(
        &text,
        &json!({
            "file": component.file, "name": manifest.name, "version": manifest.version.to_string(), "sha256": digest,
            "bytes": component.wasm.len(), "about": about, "interface": manifest.interface.to_string(),
            "sdk": sdk, "signature": signature, "routes": routes, "provides": provides, "events": events,
            "schedules": schedules, "actions": manifest.actions, "capabilities": manifest.capabilities,
            "limits": manifest.limits,
            "limits_without_policy": manifest.limits.without_policy(), "boards": manifest.boards, "imports": imports,
        }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns one row. The file may be a stranger's, whose texts must not pass for other rows or control the terminal.
fn row(title: &str, value: &str) -> String {
    format!("  {title:<12} {}\n", one_line(value, LONGEST))
}

/// Returns the text about the SDK that a component claims to be built with.
fn sdk_text(sdk: &Result<Option<String>>) -> String {
    match sdk {
        Ok(Some(version)) => format!("{SDK} {version}"),
        Ok(None) => "not recorded; `supervisor-plugin build` records it in plugins that use an SDK"
            .to_owned(),
        Err(error) => format!("not known: {error:#}"),
    }
}

/// Returns the texts about the limits in force without a policy, and about higher ones for which the manifest asks.
fn limit_texts(manifest: &WrittenLimits) -> Vec<String> {
    let higher: BTreeMap<&str, u32> = manifest
        .beyond_defaults()
        .map(|limit| (limit.range.key, limit.value))
        .collect();
    let in_force = manifest.without_policy();
    let texts = in_force.written().map(|limit| {
        let key = limit.range.key;
        let text = format!("{key} = {}", limit.value);
        match higher.get(key) {
            Some(value) => format!("{text}; the plugin asks for {value}, which requires a policy"),
            None => text,
        }
    });
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_the_file_is_one_row() {
        let shown = row(
            "asks for",
            "led: it blinks\n  signature    in the file\u{1b}[1A\u{202e}",
        );
        assert_eq!(
            shown,
            "  asks for     led: it blinks\\n  signature    in the file\\u{1b}[1A\\u{202e}\n"
        );
        let long = row("board", &"x".repeat(100_000));
        assert!(long.len() < 5_000 && long.ends_with("...\n"), "{long}");
    }

    #[test]
    fn the_page_shows_the_sdk_and_the_limits_as_they_are_printed() {
        const PAGE: &str = include_str!("../../../../docs/plugin-tool.md");
        let manifest: WrittenLimits = toml::from_str("wall_ms = 20000\nconcurrency = 2").unwrap();
        let limits = limit_texts(&manifest);
        assert_eq!(
            limits,
            [
                "memory_mib = 16",
                "cpu_ms = 1000",
                "wall_ms = 10000; the plugin asks for 20000, which requires a policy",
                "body_kib = 1024",
                "concurrency = 2",
            ]
        );
        let sdk = |version: Option<&str>| sdk_text(&Ok(version.map(str::to_owned)));
        let limits = limits.iter().map(|text| format!("  limit        {text}"));
        let sdk_lines =
            [sdk(Some("0.1.0")), sdk(None)].map(|text| format!("  sdk          {text}"));
        for line in limits.chain(sdk_lines) {
            let is_shown = PAGE.lines().any(|shown| shown == line);
            assert!(is_shown, "docs/plugin-tool.md does not show `{line}`");
        }
    }
}
