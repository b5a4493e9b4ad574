//! A WebAssembly component in a file, as an image: one layer, and a configuration that identifies it
//! (docs/wasm-services.md).

use std::path::Path;

use registry_client::WasmArtifact;
use serde_json::Map;
use wasmparser::{Parser, Payload};

use crate::failure::{Failure, Result};

/// The maximum size of a component on a device, in bytes.
const MOST: u64 = 64 << 20;
/// The first bytes of a component; a module has another version.
const MAGIC: &[u8] = b"\0asm\x0d\0\x01\0";
/// The packages of WASI 0.2 that services can import.
const PACKAGES: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// A component as an image.
pub(super) struct Component {
    pub(super) artifact: WasmArtifact,
}

impl Component {
    /// Reads a component.
    ///
    /// # Errors
    /// If the file is not a component.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::not_found(format!("there is no file {}", path.display()))
                    .hint("paths are relative to the compose file's folder")
            }
            _ => Failure::unreadable(path, error),
        };
        let length = std::fs::metadata(path).map_err(unreadable)?.len();
        if length > MOST {
            return Err(Failure::usage(format!(
                "{} has {} MiB, but a component may have at most {} MiB",
                path.display(),
                length >> 20,
                MOST >> 20
            )));
        }
        let layer = std::fs::read(path).map_err(unreadable)?;
        let interface = Interface::from_bytes(&layer).ok_or_else(|| {
            Failure::usage(format!("{} is not a WebAssembly component", path.display()))
                .hint("build it for WASI 0.2: `cargo build --release --target wasm32-wasip2`")
        })?;
        interface.check(path)?;
        Self::from_layer(layer)
    }

    fn from_layer(layer: Vec<u8>) -> Result<Self> {
        Ok(Component {
            artifact: WasmArtifact::new(layer, Map::new())?,
        })
    }
}

/// The imports and exports of a component, by name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Interface {
    imports: Vec<String>,
    exports: Vec<String>,
}

impl Interface {
    /// Reads those of the component itself, not of components nested in it. `None` if the bytes are not a component.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let mut interface = Interface::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.ok()? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        interface.imports.push(import.ok()?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        interface.exports.push(export.ok()?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Some(interface)
    }

    /// Checks that a device can run it as a service (docs/wasm-services.md).
    ///
    /// # Errors
    /// If the device would start it again and again.
    fn check(&self, path: &Path) -> Result<()> {
        let of = |name: &str, package: &str| {
            let rest = name
                .strip_prefix("wasi:")
                .and_then(|it| it.strip_prefix(package));
            rest.is_some_and(|it| it.starts_with('/')) && name.contains("@0.2.")
        };
        if !self
            .exports
            .iter()
            .any(|name| of(name, "cli") && name.starts_with("wasi:cli/run@"))
        {
            return Err(Failure::usage(format!(
                "{} is not a service: it does not export `wasi:cli/run@0.2`",
                path.display()
            ))
            .hint("build a program with a `main`; plugins and libraries are components of other kinds"));
        }
        let is_offered = |name: &&String| PACKAGES.iter().any(|package| of(name, package));
        if let Some(name) = self.imports.iter().find(|name| !is_offered(name)) {
            let name: String = name.chars().take(100).collect();
            return Err(Failure::usage(format!(
                "{} is not a service: it imports `{name}`, which devices do not offer to services",
                path.display()
            ))
            .hint("services have the packages cli, clocks, filesystem, io, random and sockets of WASI 0.2"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_that_no_device_can_run_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.wasm");
        let read = |text: &str| {
            std::fs::write(&path, wat::parse_str(text).expect("a component")).expect("a file");
            Component::read(&path)
                .map(|_| ())
                .map_err(|failure| failure.to_string())
        };
        let with = |more: &str| {
            format!(
                "(component (import \"wasi:io/poll@0.2.6\" (instance)) {more} \
                 (component (import \"platform:other/within\" (instance))) \
                 (instance $run) (export \"wasi:cli/run@0.2.6\" (instance $run)))"
            )
        };
        assert_eq!(read(&with("")), Ok(()));
        for (import, named) in [
            (
                "platform:supervisor/timer@1.0.0",
                "`platform:supervisor/timer@1.0.0`",
            ),
            ("wasi:http/types@0.2.6", "`wasi:http/types@0.2.6`"),
            ("wasi:io/streams@0.3.0", "`wasi:io/streams@0.3.0`"),
            ("wasi:iota/x@0.2.0", "`wasi:iota/x@0.2.0`"),
        ] {
            let why = read(&with(&format!("(import \"{import}\" (instance))"))).expect_err(import);
            assert!(
                why.contains("is not a service") && why.contains(named),
                "{why}"
            );
        }
        let why = read("(component (instance $a) (export \"a:b/c@0.2.0\" (instance $a)))");
        assert!(why.expect_err("a library").contains("wasi:cli/run@0.2"));
        std::fs::write(&path, [MAGIC, b"damaged"].concat()).expect("a file");
        let failure = Component::read(&path).err().expect("damaged");
        assert!(
            failure
                .to_string()
                .contains("is not a WebAssembly component")
        );
    }

    #[test]
    fn one_component_gives_one_image_and_a_module_none() {
        let digest = |more: &[u8]| {
            let component = Component::from_layer([MAGIC, more].concat()).expect("a component");
            component.artifact.manifest.digest
        };
        assert_eq!(digest(b"a"), digest(b"a"));
        assert_ne!(digest(b"a"), digest(b"b"));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.wasm");
        std::fs::write(&path, b"\0asm\x01\0\0\0").expect("a file");
        let failure = Component::read(&path).err().expect("a module");
        assert!(
            failure
                .to_string()
                .contains("is not a WebAssembly component")
        );
        assert!(Component::read(&folder.path().join("none.wasm")).is_err());
    }
}
