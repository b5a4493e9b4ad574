//! `push`: uploads a component to a registry of images.

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use registry_protocol::is_digest;
use serde_json::json;

use crate::arguments::Push;
use crate::component::Component;
use crate::output::{Output, size};
use crate::plugin_artifact;

pub(crate) async fn run(arguments: Push, output: &Output) -> Result<ExitCode> {
    let Push { file, reference } = arguments;
    let name = plugin_artifact::reference(&reference)?;
    ensure!(
        !is_digest(&name.reference),
        "`{reference}` has a digest, but the registry computes the digest: give a tag, for example the version"
    );
    let component = Component::read(file)?;
    let signature = plugin_artifact::signature_beside(&component.file)?;
    let pushed = plugin_artifact::push(&component, signature.as_deref(), &name).await;
    let digest = pushed.with_context(|| format!("cannot push to `{reference}`"))?;
    let manifest = &component.manifest;
    let with_signature = match signature {
        Some(_) => ", with its signature",
        None => "",
    };
    output.result(
        &format!(
            "pushed {} {} to {reference}  {}{with_signature}\n{digest}",
            manifest.name,
            manifest.version,
            size(component.wasm.len() as u64),
        ),
        &json!({
            "name": manifest.name, "version": manifest.version.to_string(), "reference": reference,
            "digest": digest, "detached_signature": signature.is_some(),
        }),
    );
    Ok(ExitCode::SUCCESS)
}
