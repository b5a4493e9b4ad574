//! What a plugin says of itself: the custom section `platform:manifest` of its component, in TOML.
//!
//! The section may stand at any depth: tools for Rust leave it in the module inside the component,
//! others append it at the top. It is as hostile as the rest of the file, so that its size and the
//! number and length of all that is in it are bounded before anyone looks at it.

use std::fmt;

use http::Method;
pub use plugin_protocol::Action;
use semver::Version;
use serde::Deserialize;
use wasmparser::{Parser, Payload};

use crate::boards::glob;
use crate::capability::Capability;
use crate::limits::WrittenLimits;
use crate::pattern::{Pattern, PatternError};

/// The name of the section.
pub const SECTION: &str = "platform:manifest";
/// The name of the section in which a plugin may describe its routes, as a part of an OpenAPI document.
pub(crate) const DESCRIPTION: &str = "platform:openapi";
/// The version of `platform:supervisor` that this host has.
pub const INTERFACE: Version = Version::new(1, 3, 0);

/// The largest manifest, in bytes.
const SIZE: usize = 64 << 10;
/// The most routes, capabilities and boards.
const COUNT: usize = 64;
/// The longest reason, version or board, in bytes.
const TEXT: usize = 512;
/// The longest name, in bytes.
const NAME: usize = 63;

/// A checked manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// invariant: letters in lower case, digits and `-`, beginning with a letter or digit, at most 63.
    pub name: String,
    /// The plugin's own version.
    pub version: Version,
    /// The version of `platform:supervisor` that it was built for.
    pub interface: Version,
    /// The routes that it answers.
    pub routes: Vec<Route>,
    /// The typed actions that it provides.
    pub provides: Vec<Action>,
    /// What it needs, and why, as shown to people.
    pub capabilities: Vec<Need>,
    /// Patterns of device types that it is for, with `*` for any text; none is for all.
    pub boards: Vec<String>,
    pub(crate) limits: WrittenLimits,
    /// What it says of its routes: a JSON object, which is looked at when somebody asks for it.
    pub(crate) description: Option<Box<str>>,
}

/// A route: a method and a pattern.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{method} {pattern}")]
pub struct Route {
    /// GET, POST, PUT, PATCH or DELETE.
    pub method: Method,
    /// The path.
    pub pattern: Pattern,
}

/// A capability that a plugin needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    /// Which.
    pub name: Capability,
    /// What for, in words for the person who grants it.
    pub reason: String,
}

/// Why a file has no manifest that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The file is no component that could hold one.
    #[error("not a WebAssembly component")]
    NotWasm(#[source] wasmparser::BinaryReaderError),
    /// It is not the TOML that it should be.
    #[error("its manifest is invalid")]
    Parse(#[source] Box<toml::de::Error>),
    /// A route is no route.
    #[error(transparent)]
    Route(#[from] PatternError),
    /// Something in it is not as it should be, or it is not there; a sentence says what.
    #[error("{0}")]
    Invalid(String),
}

/// Where a manifest was read that says what it must not.
fn invalid(what: impl fmt::Display) -> ManifestError {
    ManifestError::Invalid(format!("its manifest is invalid: {what}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestJson {
    name: String,
    version: Version,
    interface: Version,
    #[serde(default)]
    routes: Vec<WrittenRoute>,
    #[serde(default)]
    provides: Vec<Action>,
    #[serde(default)]
    capabilities: Vec<Need>,
    #[serde(default)]
    boards: Vec<String>,
    #[serde(default)]
    limits: WrittenLimits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRoute {
    method: String,
    path: String,
}

impl Manifest {
    /// Reads the manifest of the component `wasm`.
    ///
    /// # Errors
    /// When there is none that can be used.
    pub fn of(wasm: &[u8]) -> Result<Manifest, ManifestError> {
        let missing =
            || format!("it has no section `{SECTION}`; a plugin's manifest is part of its file");
        let section = section(wasm, SECTION)?;
        let section = section.ok_or_else(|| ManifestError::Invalid(missing()))?;
        if section.len() > SIZE {
            let length = section.len();
            let what = format!("its manifest has {length} bytes, more than {SIZE}");
            return Err(ManifestError::Invalid(what));
        }
        let text = std::str::from_utf8(section)
            .map_err(|_| ManifestError::Invalid("its manifest is not UTF-8".to_owned()))?;
        let mut manifest = Manifest::parse(text)?;
        manifest.description = section_description(wasm)?;
        Ok(manifest)
    }

    /// Parses and checks the text of a manifest.
    ///
    /// # Errors
    /// When it says what it must not, or not what it must.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        let parse = |error| ManifestError::Parse(Box::new(error));
        // The version first, and alone: what a newer manifest has beside it is not known here.
        let table: toml::Table = toml::from_str(text).map_err(parse)?;
        if let Some(Ok(interface)) = table
            .get("interface")
            .and_then(toml::Value::as_str)
            .map(Version::parse)
        {
            check_interface(&interface)?;
        }
        let written: ManifestJson = toml::from_str(text).map_err(parse)?;
        let mut routes: Vec<Route> = Vec::new();
        check_counts(&written)?;
        for route in &written.routes {
            let pattern = Pattern::parse(&route.path)?;
            let method = method(&route.method, &route.path)?;
            if routes.iter().any(|other| {
                other.method == method
                    && other.pattern.overlaps(&pattern)
                    && other.pattern.rank() == pattern.rank()
            }) {
                return Err(invalid(format_args!(
                    "duplicate route `{method} {pattern}`"
                )));
            }
            routes.push(Route { method, pattern });
        }
        if routes.is_empty() && written.provides.is_empty() {
            return Err(invalid("it has no routes and provides nothing"));
        }
        written.limits.check().map_err(|error| {
            let what = format!("its manifest asks for limits that no plugin gets: {error}");
            ManifestError::Invalid(what)
        })?;
        Ok(Manifest {
            name: written.name,
            version: written.version,
            interface: written.interface,
            routes,
            provides: written.provides,
            capabilities: written.capabilities,
            boards: written.boards,
            limits: written.limits,
            description: None,
        })
    }

    /// Whether it is for devices of this type.
    #[must_use]
    pub fn is_for(&self, device_type: &str) -> bool {
        self.boards.is_empty() || self.boards.iter().any(|pattern| glob(pattern, device_type))
    }
}

/// What the component says of its routes, where it does.
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

/// The one section of that name in the file, where there is one.
fn section<'a>(wasm: &'a [u8], name: &'static str) -> Result<Option<&'a [u8]>, ManifestError> {
    let mut data = None;
    let mut count = 0;
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::CustomSection(section) = payload.map_err(ManifestError::NotWasm)?
            && section.name() == name
        {
            count += 1;
            data = Some(section.data());
        }
    }
    if count > 1 {
        let what = format!("it has {count} sections `{name}`, and must have one");
        return Err(ManifestError::Invalid(what));
    }
    Ok(data)
}

fn check_interface(interface: &Version) -> Result<(), ManifestError> {
    if interface.major != INTERFACE.major {
        return Err(ManifestError::Invalid(format!(
            "it was built for version {interface} of `platform:supervisor`, which this supervisor ({INTERFACE}) does not serve"
        )));
    }
    if interface.minor > INTERFACE.minor {
        return Err(ManifestError::Invalid(format!(
            "it needs version {interface} of `platform:supervisor`, and this supervisor has {INTERFACE}: update the supervisor"
        )));
    }
    Ok(())
}

fn check_counts(written: &ManifestJson) -> Result<(), ManifestError> {
    let invalid = |text: String| Err(invalid(text));
    let name = &written.name;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME || name.starts_with('-') || !name.bytes().all(fits) {
        return invalid("`name` must be at most 63 lower-case letters, digits and `-`".to_owned());
    }
    for (what, count) in [
        ("routes", written.routes.len()),
        ("capabilities", written.capabilities.len()),
        ("boards", written.boards.len()),
        ("provides", written.provides.len()),
    ] {
        if count > COUNT {
            return invalid(format!("`{what}` has {count} entries, more than {COUNT}"));
        }
    }
    for (index, need) in written.capabilities.iter().enumerate() {
        if need.reason.trim().is_empty() || need.reason.len() > TEXT {
            return invalid(format!(
                "the reason for the capability `{}` must have 1 to {TEXT} bytes",
                need.name
            ));
        }
        let mut before = written.capabilities.iter().take(index);
        if before.any(|other| other.name == need.name) {
            return invalid(format!("duplicate capability `{}`", need.name));
        }
    }
    let mut boards = written.boards.iter();
    if let Some(board) = boards.find(|board| board.is_empty() || board.len() > TEXT) {
        return invalid(format!(
            "the name of a board must have 1 to {TEXT} bytes, and one has {}",
            board.len()
        ));
    }
    if written.version.to_string().len() > TEXT {
        return invalid(format!("`version` has more than {TEXT} bytes"));
    }
    Ok(())
}

fn method(text: &str, path: &str) -> Result<Method, ManifestError> {
    match text {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "PATCH" => Ok(Method::PATCH),
        "DELETE" => Ok(Method::DELETE),
        _ => {
            let text: String = text.chars().take(20).collect();
            Err(invalid(format_args!(
                "the method of the route `{path}` is `{text}`, and must be GET, POST, PUT, PATCH or DELETE"
            )))
        }
    }
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
