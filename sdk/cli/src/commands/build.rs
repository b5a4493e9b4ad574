//! `build`: builds a component from sources.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use crate::arguments::ProjectArguments;
use crate::component::Component;
use crate::languages;
use crate::output::{Output, size};
use crate::project::ProjectFolder;

pub(crate) fn run(arguments: &ProjectArguments, output: &Output) -> Result<ExitCode> {
    let project = ProjectFolder::open(&arguments.project)?;
    let started = Instant::now();
    let component = Component::read(languages::build(&project, output)?)?;
    let seconds = started.elapsed().as_secs_f64();
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
    output.result(
        &format!(
            "{}\n  {} {}  {}  built in {seconds:.1} s   asks for: {asks}",
            component.file.display(),
            manifest.name,
            manifest.version,
            size(bytes),
        ),
        &json!({
            "file": component.file, "name": manifest.name, "version": manifest.version.to_string(),
            "bytes": bytes, "seconds": seconds, "capabilities": needs,
        }),
    );
    Ok(ExitCode::SUCCESS)
}
