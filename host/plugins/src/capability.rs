//! Which import of a component stands for which capability.

pub use plugin_protocol::Capability;

/// What it takes for a component to get an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Import {
    /// Linked for every plugin.
    Always,
    /// Linked for those with one of these capabilities; the first is the one to ask for.
    With(&'static [Capability]),
    /// This host has no such interface for plugins.
    Unknown,
}

/// What the import called `name` (`package/interface@version`) takes.
pub(crate) fn of_import(name: &str) -> Import {
    use Capability::{
        Clock, Cloud, Device, Files, HostName, Identify, Journal, Led, ProxyRedirector, Random,
        Store, Units, UpdateLock,
    };
    let interface = name.split('@').next().unwrap_or(name);
    match interface {
        "platform:supervisor/types"
        | "platform:supervisor/log"
        | "platform:supervisor/config"
        | "platform:supervisor/timer"
        | "platform:supervisor/caller"
        | "platform:supervisor/identify-window"
        | "platform:supervisor/proxy-types"
        // Every guest with a standard library imports these; what they reach is empty.
        | "wasi:io/error"
        | "wasi:io/poll"
        | "wasi:io/streams"
        | "wasi:cli/environment"
        | "wasi:cli/exit"
        | "wasi:cli/stdin"
        | "wasi:cli/stdout"
        | "wasi:cli/stderr"
        | "wasi:cli/terminal-input"
        | "wasi:cli/terminal-output"
        | "wasi:cli/terminal-stdin"
        | "wasi:cli/terminal-stdout"
        | "wasi:cli/terminal-stderr"
        | "wasi:random/insecure-seed" => Import::Always,
        "platform:supervisor/device" => Import::With(&[Device]),
        "platform:supervisor/store" => Import::With(&[Store]),
        "platform:supervisor/cloud" => Import::With(&[Cloud]),
        "platform:supervisor/led" => Import::With(&[Led]),
        "platform:supervisor/units" => Import::With(&[Units]),
        "platform:supervisor/journal" => Import::With(&[Journal]),
        "platform:supervisor/identify" => Import::With(&[Identify]),
        "platform:supervisor/proxy-redirector" => Import::With(&[ProxyRedirector]),
        "platform:supervisor/update-lock" => Import::With(&[UpdateLock]),
        "platform:supervisor/host-name" => Import::With(&[HostName]),
        // Files have times, in the type of this interface.
        "wasi:clocks/wall-clock" => Import::With(&[Clock, Files]),
        "wasi:clocks/monotonic-clock" => Import::With(&[Clock]),
        "wasi:random/random" | "wasi:random/insecure" => Import::With(&[Random]),
        "wasi:filesystem/types" | "wasi:filesystem/preopens" => Import::With(&[Files]),
        _ => Import::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_an_import_do_not_matter() {
        assert_eq!(
            of_import("platform:supervisor/led@1.0.0"),
            Import::With(&[Capability::Led])
        );
        assert_eq!(
            of_import("platform:supervisor/led@1.7.0"),
            Import::With(&[Capability::Led])
        );
        assert_eq!(of_import("wasi:io/poll@0.2.6"), Import::Always);
        assert_eq!(of_import("wasi:sockets/tcp@0.2.6"), Import::Unknown);
        assert_eq!(
            of_import("platform:supervisor/ledger@1.0.0"),
            Import::Unknown
        );
    }
}
