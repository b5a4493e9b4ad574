//! Replaces those interfaces of WASI that a component imports, and that a device does not give to its plugin, by stubs.
//!
//! The interpreters of Python and JavaScript and the runtime of Go import clocks, files and, in Python and Go, sockets,
//! whether a plugin uses them or not. No device loads a component with an import that its manifest does not ask for. If a
//! plugin asks for no part of WASI, the tools of these languages replace all of it; this is for plugins that ask for a part.

mod composition;
mod stub_component;

use anyhow::{Context as _, Result, bail};
use plugin_manifest::{Capability, Manifest};
use wit_component::DecodedWasm;

/// What becomes of standard output and standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputStreams {
    /// Writing to them ends the call. An interpreter writes there that it has panicked; the SDK has logged the plugin's
    /// error by then, which says more, and a device would show the panic instead.
    Stub,
    /// The device writes them to its log.
    Import,
}

/// Returns the component with stubs in place of the interfaces of WASI that the manifest does not ask for.
///
/// # Errors
/// The component does not have the form that the tools write.
pub(super) fn replace_missing(
    wasm: &[u8],
    manifest: &Manifest,
    outputs: OutputStreams,
) -> Result<Vec<u8>> {
    let is_missing = |import: &str| !is_available(import, manifest, outputs);
    let decoded = wit_component::decode(wasm).context("failed to read the built component")?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        bail!("the language's tool has written interfaces instead of a component");
    };
    match stub_component::encode(resolve, world, is_missing)? {
        Some(stub) => composition::compose(wasm, &stub, is_missing),
        None => Ok(wasm.to_vec()),
    }
}

/// The interfaces of standard output and standard error.
const OUTPUTS: [&str; 2] = ["wasi:cli/stdout", "wasi:cli/stderr"];

/// Returns whether the component keeps this import: a device gives it to the plugin, and the plugin needs it. No plugin
/// gets sockets.
fn is_available(import: &str, manifest: &Manifest, outputs: OutputStreams) -> bool {
    let interface = import.split('@').next().unwrap_or(import);
    if interface.starts_with("wasi:sockets/") {
        return false;
    }
    if OUTPUTS.contains(&interface) {
        return outputs == OutputStreams::Import;
    }
    let has_interface = |capability: &Capability| capability.imports().contains(&interface);
    let needs_none = !Capability::all().iter().any(has_interface);
    needs_none
        || manifest
            .capabilities
            .iter()
            .any(|need| has_interface(&need.name))
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Project;

    use super::*;
    use crate::component_imports::imports;

    /// A component as the tools write it: an interface of WASI uses a resource of another one.
    const COMPONENT: &str = r#"(component
        (import "wasi:io/poll@0.2.0" (instance $poll
            (export "pollable" (type (sub resource)))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
            (export "now" (func (result u64)))
            (alias outer 1 $pollable (type $outer))
            (export "pollable" (type $inner (eq $outer)))
            (export "subscribe" (func (param "when" u64) (result (own $inner))))))
        (import "wasi:random/random@0.2.0" (instance $random
            (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
        (import "wasi:sockets/network@0.2.0" (instance $network
            (export "network" (type (sub resource)))
            (type $case (enum "unknown" "timeout"))
            (export "error-code" (type (eq $case)))))
        (alias export $network "network" (type $net))
        (alias export $network "error-code" (type $code))
        (import "wasi:sockets/tcp@0.2.0" (instance $tcp
            (alias outer 1 $net (type $outer_net))
            (export "network" (type $inner_net (eq $outer_net)))
            (alias outer 1 $code (type $outer_code))
            (export "error-code" (type $inner_code (eq $outer_code)))
            (alias outer 1 $pollable (type $outer_pollable))
            (export "pollable" (type $inner_pollable (eq $outer_pollable)))
            (export "tcp-socket" (type $socket (sub resource)))
            (export "[method]tcp-socket.bind" (func
                (param "self" (borrow $socket))
                (param "network" (borrow $inner_net))
                (result (result (error $inner_code)))))
            (export "[method]tcp-socket.subscribe" (func
                (param "self" (borrow $socket))
                (result (own $inner_pollable))))))
        (core module $main (func (export "answer") (result i32) i32.const 7))
        (core instance $instance (instantiate $main))
        (func $answer (result u32) (canon lift (core func $instance "answer")))
        (instance $exported (export "answer" (func $answer)))
        (export "begin" (func $answer))
        (export "local:test/answers@1.0.0" (instance $exported)))"#;

    fn manifest(capabilities: &str) -> Manifest {
        let text = format!(
            "name = \"a\"\nversion = \"0.1.0\"\n[capabilities]\n{capabilities}[routes]\n\"GET /v3/a\" = \"a\"\n"
        );
        Project::parse(&text).unwrap().manifest
    }

    #[test]
    fn a_component_keeps_the_imports_of_its_capabilities_and_loses_the_others() {
        let wasm = wat::parse_str(COMPONENT).unwrap();
        for (capabilities, expected) in [
            (
                "random = \"r\"\n",
                &["wasi:io/poll@0.2.0", "wasi:random/random@0.2.0"][..],
            ),
            (
                "clock = \"r\"\n",
                &["wasi:clocks/monotonic-clock@0.2.0", "wasi:io/poll@0.2.0"],
            ),
            (
                "clock = \"r\"\nrandom = \"r\"\n",
                &[
                    "wasi:clocks/monotonic-clock@0.2.0",
                    "wasi:io/poll@0.2.0",
                    "wasi:random/random@0.2.0",
                ],
            ),
            ("files = \"r\"\n", &["wasi:io/poll@0.2.0"]),
        ] {
            let replaced =
                replace_missing(&wasm, &manifest(capabilities), OutputStreams::Stub).unwrap();
            assert_eq!(imports(&replaced), expected, "{capabilities}");
            // The decoder validates what it reads.
            let decoded = wit_component::decode(&replaced).unwrap();
            let DecodedWasm::Component(resolve, world) = decoded else {
                panic!("it is a component");
            };
            let exports: Vec<String> = resolve.worlds[world]
                .exports
                .keys()
                .map(|key| resolve.name_world_key(key))
                .collect();
            assert_eq!(
                exports,
                ["begin", "local:test/answers@1.0.0"],
                "{capabilities}"
            );
        }
    }

    #[test]
    fn a_component_whose_imports_are_all_available_stays_as_it_is() {
        let wasm = wat::parse_str(
            r#"(component (import "wasi:random/random@0.2.0" (instance
                (export "get-random-u64" (func (result u64))))))"#,
        )
        .unwrap();
        assert_eq!(
            replace_missing(&wasm, &manifest("random = \"r\"\n"), OutputStreams::Stub).unwrap(),
            wasm
        );
    }

    #[test]
    fn only_a_component_that_writes_to_the_log_keeps_its_output() {
        let manifest = manifest("clock = \"r\"\n");
        for interface in ["wasi:cli/stdout@0.2.6", "wasi:cli/stderr@0.2.6"] {
            assert!(!is_available(interface, &manifest, OutputStreams::Stub));
            assert!(is_available(interface, &manifest, OutputStreams::Import));
        }
    }

    #[test]
    fn an_unsuitable_component_is_refused() {
        let late = wat::parse_str(
            r#"(component (import "wasi:sockets/tcp@0.2.0" (instance (export "f" (func))))
                (core module)
                (import "wasi:sockets/udp@0.2.0" (instance (export "f" (func)))))"#,
        );
        for (wasm, expected) in [
            (b"noise".to_vec(), "failed to read the built component"),
            (
                late.unwrap(),
                "an import after the first part of the component",
            ),
        ] {
            let error = replace_missing(&wasm, &manifest(""), OutputStreams::Stub).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
