//! The manifest in a component: a custom section of its file.
//!
//! The section may be at any depth: tools for Rust leave it in the module inside the component, others append it at
//! the top.

use wasmparser::{Parser, Payload};

use crate::manifest::{Manifest, ManifestError, SIZE};

/// The name of the section.
pub const SECTION: &str = "platform:manifest";
/// The name of the section in which a plugin may describe its routes, as a part of an OpenAPI document.
pub const DESCRIPTION: &str = "platform:openapi";

/// The first bytes of a component's file: the magic bytes, and the format's version and layer.
pub const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
/// The first bytes of a core module.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

impl Manifest {
    /// Reads the manifest of the component `wasm`.
    ///
    /// # Errors
    /// If there is no usable one.
    pub fn from_wasm(wasm: &[u8]) -> Result<Manifest, ManifestError> {
        check_beginning(wasm)?;
        let Some(section) = section(wasm, SECTION)? else {
            return Err(ManifestError::Invalid(format!(
                "it has no section `{SECTION}`; a plugin's manifest is part of its file: `plugin!` of the SDK writes it, or \
                 `supervisor-plugin build` for other languages"
            )));
        };
        if section.len() > SIZE {
            let length = section.len();
            let what = format!("its manifest has {length} bytes, more than {SIZE}");
            return Err(ManifestError::Invalid(what));
        }
        let text = std::str::from_utf8(section)
            .map_err(|_| ManifestError::Invalid("its manifest is not UTF-8".to_owned()))?;
        let mut manifest = Manifest::parse(text)?;
        manifest.openapi = section_description(wasm)?;
        Ok(manifest)
    }
}

/// Checks by the first eight bytes of a file whether it is a component at all.
///
/// # Errors
/// What it is instead.
pub fn check_beginning(wasm: &[u8]) -> Result<(), ManifestError> {
    let what = if wasm.starts_with(COMPONENT) {
        return Ok(());
    } else if wasm.starts_with(MODULE) {
        "it is a core module and not a component: build it for the target `wasm32-wasip2`, or make a component of it \
         with `wasm-tools component new`"
    } else if wasm.is_empty() {
        "it is empty; copy or build it again"
    } else if COMPONENT.starts_with(wasm) || MODULE.starts_with(wasm) {
        "it ends within its first 8 bytes; copy or build it again"
    } else if wasm.starts_with(b"\0asm") {
        "it is WebAssembly of another version, but must be a component; build it for the target `wasm32-wasip2`"
    } else {
        "it is not WebAssembly: a component begins with the bytes `\\0asm`; use the file `NAME.wasm` that `supervisor-plugin \
         build` writes"
    };
    Err(ManifestError::Invalid(what.to_owned()))
}

/// Reads the component's description of its routes, if it has one.
fn section_description(wasm: &[u8]) -> Result<Option<Box<str>>, ManifestError> {
    let Some(section) = section(wasm, DESCRIPTION)? else {
        return Ok(None);
    };
    let invalid = |why: String| {
        let what = format!("its section `{DESCRIPTION}` is invalid: {why}");
        Err(ManifestError::Invalid(what))
    };
    if section.len() > SIZE {
        return invalid(format!("it has {} bytes, more than {SIZE}", section.len()));
    }
    match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(section) {
        // JSON is UTF-8.
        Ok(_) => Ok(Some(String::from_utf8_lossy(section).into())),
        Err(error) => invalid(format!("not a JSON object: {error}")),
    }
}

/// Finds the section with this name in the file, if there is one.
///
/// # Errors
/// If the file is damaged, or has several.
pub fn section<'a>(wasm: &'a [u8], name: &'static str) -> Result<Option<&'a [u8]>, ManifestError> {
    let mut data = None;
    let mut count = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::CustomSection(section) = payload.map_err(|error| damaged(&error))?
            && section.name() == name
        {
            count += 1;
            data = Some(section.data());
        }
    }
    if count > 1 {
        return Err(ManifestError::Invalid(format!(
            "it has {count} sections `{name}`, but must have exactly one: two crates in it call `plugin!`, or a tool has \
             added a second section"
        )));
    }
    Ok(data)
}

fn damaged(error: &wasmparser::BinaryReaderError) -> ManifestError {
    let (offset, reason) = (error.offset(), error.message());
    ManifestError::Invalid(format!(
        "it is cut off or damaged at byte {offset}: {reason}; copy or build it again"
    ))
}

/// Appends a custom section to the component `wasm`.
pub fn append_section(wasm: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut body = Vec::new();
    leb128(&mut body, name.len());
    body.extend(name.as_bytes());
    body.extend(content);
    wasm.push(0);
    leb128(wasm, body.len());
    wasm.extend(body);
}

/// Writes a number in WebAssembly's encoding.
fn leb128(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        // Seven bits fit.
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests;
