//! Which import of a component requires which capability.

use strum::VariantArray;

use plugin_manifest::Capability;

/// What a component needs to get an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Import {
    /// Linked for every plugin.
    Always,
    /// Linked for plugins with one of these capabilities; the first is the one to ask for.
    With(Capability, Vec<Capability>),
    /// This host has no such interface.
    Unknown,
}

/// Returns what the import called `name` (`package/interface@version`) requires.
pub(crate) fn classify_import(name: &str) -> Import {
    let interface = name.split('@').next().unwrap_or(name);
    if ALWAYS.contains(&interface) {
        return Import::Always;
    }
    let mut standing = Capability::VARIANTS
        .iter()
        .copied()
        .filter(|capability| capability.imports().contains(&interface));
    match standing.next() {
        Some(first) => Import::With(first, standing.collect()),
        None => Import::Unknown,
    }
}

/// The interfaces that are linked for every plugin.
const ALWAYS: &[&str] = &[
    "platform:supervisor/types",
    "platform:supervisor/log",
    "platform:supervisor/config",
    "platform:supervisor/timer",
    "platform:supervisor/caller",
    "platform:supervisor/identify-window",
    "platform:supervisor/proxy-types",
    // Requests and answers as values. Sending a request requires `wasi:http/outgoing-handler`.
    "wasi:http/types",
    // Every guest with a standard library imports these; nothing can be reached through them.
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:random/insecure-seed",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_an_import_do_not_matter() {
        assert_eq!(
            classify_import("platform:supervisor/led@1.0.0"),
            Import::With(Capability::Led, Vec::new())
        );
        assert_eq!(
            classify_import("platform:supervisor/led@1.7.0"),
            Import::With(Capability::Led, Vec::new())
        );
        assert_eq!(
            classify_import("wasi:clocks/wall-clock@0.2.6"),
            Import::With(Capability::Clock, vec![Capability::Files])
        );
        assert_eq!(classify_import("wasi:io/poll@0.2.6"), Import::Always);
        assert_eq!(classify_import("wasi:http/types@0.2.3"), Import::Always);
        assert_eq!(
            classify_import("wasi:http/outgoing-handler@0.2.3"),
            Import::With(Capability::Http, Vec::new())
        );
        assert_eq!(classify_import("wasi:sockets/tcp@0.2.6"), Import::Unknown);
        assert_eq!(
            classify_import("platform:supervisor/ledger@1.0.0"),
            Import::Unknown
        );
    }
}
