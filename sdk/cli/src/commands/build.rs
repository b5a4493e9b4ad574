//! `build`: builds a component from sources, and signs it if a key is given.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use crate::arguments::Build;
use crate::commands::sign::{secret_key, sign};
use crate::component::Component;
use crate::languages::{self, BuildMode};
use crate::output::{Output, size};
use crate::project::ProjectFolder;

pub(crate) fn run(arguments: Build, output: &Output) -> Result<ExitCode> {
    let Build {
        project,
        key,
        password,
        force,
    } = arguments;
    let project = ProjectFolder::open(&project.project)?;
    // Its password is asked for before the build, which may take minutes.
    let key = key.map(|file| secret_key(&file, password)).transpose()?;
    let started = Instant::now();
    let mode = if force {
        BuildMode::Always
    } else {
        BuildMode::IfChanged
    };
    let built = languages::build(&project, mode, output)?;
    let seconds = started.elapsed().as_secs_f64();
    if key.is_none() {
        built.note_lost_signature(output);
    }
    let is_unchanged = built.is_unchanged;
    let mut component = Component::read(built.file)?;
    let public_key = key.map(|key| sign(&component, &key, false)).transpose()?;
    let mut signed = String::new();
    if let Some(public_key) = &public_key {
        component = Component::read(component.file)?;
        signed = format!("\n  signed with the key {public_key}");
    }
    let manifest = &component.manifest;
    let needs: Vec<String> = manifest
        .capabilities
        .iter()
        .map(|need| need.name.to_string())
        .collect();
    let asks = if needs.is_empty() {
        "nothing".to_owned()
    } else {
        needs.join(", ")
    };
    let bytes = component.wasm.len() as u64;
    let result = if is_unchanged {
        "unchanged".to_owned()
    } else {
        format!("built in {seconds:.1} s")
    };
    output.result(
        &format!(
            "{}\n  {} {}  {}  {result}   asks for: {asks}{signed}",
            component.file.display(),
            manifest.name,
            manifest.version,
            size(bytes),
        ),
        &json!({
            "file": component.file, "name": manifest.name, "version": manifest.version.to_string(),
            "bytes": bytes, "seconds": seconds, "unchanged": is_unchanged, "capabilities": needs, "public_key": public_key,
        }),
    );
    Ok(ExitCode::SUCCESS)
}
