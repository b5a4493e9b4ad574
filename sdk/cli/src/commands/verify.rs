//! `verify`: finds out who has signed a component, by the rules of a device.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow};
use plugin_manifest::FormError;
use plugins::{SignatureCheck, check_signatures};
use serde_json::json;
use signatures::PublicKeyText;

use crate::arguments::Verify;
use crate::component::Component;
use crate::output::Output;

pub(crate) fn run(arguments: &Verify, output: &Output) -> Result<ExitCode> {
    let component = Component::read(arguments.file.clone())?;
    let keys = match (&arguments.public_key, &arguments.policy) {
        (Some(key), _) => format!("[keys.given]\npublic = \"{}\"\n", public_key(key)?.base64),
        (None, Some(policy)) => std::fs::read_to_string(policy)
            .with_context(|| format!("cannot read `{}`", policy.display()))?,
        (None, None) => String::new(),
    };
    let manifest = &component.manifest;
    let SignatureCheck { signers, problems } =
        check_signatures(&component.file, &component.wasm, &manifest.name, &keys).map_err(
            |error| {
                anyhow!(
                    "the policy is invalid: {}",
                    FormError::new(&error).with_place(&keys)
                )
            },
        )?;
    let what = format!("{} {}", manifest.name, manifest.version);
    let text = if signers.is_empty() {
        let problems = if problems.is_empty() {
            "it has no signature with any of these keys".to_owned()
        } else {
            problems.join("; ")
        };
        format!("{what} is not signed as required: {problems}")
    } else {
        format!("{what} is signed by {}", signers.join(", "))
    };
    output.result(
        &text,
        &json!({ "name": manifest.name, "version": manifest.version.to_string(), "signed_by": signers, "problems": problems }),
    );
    Ok(if signers.is_empty() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the key itself, or the one in a file.
fn public_key(given: &str) -> Result<PublicKeyText> {
    let file = Path::new(given);
    if file.exists() {
        PublicKeyText::read(file).with_context(|| format!("`{given}` is not a key"))
    } else {
        PublicKeyText::parse(given)
            .with_context(|| format!("`{given}` is neither a file nor a key"))
    }
}
