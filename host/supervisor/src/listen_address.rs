//! `--listen`: the addresses of the API, and the access without a key at each of them.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use api::{KeylessAccess, LocalModeAuth, LocalModeProcesses};
use model::compose::is_of_supervisor_network;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;

/// Examples of an entry, for messages.
const FORM: &str = "such as `127.0.0.1:48484` or `127.0.0.1:48484=local-endpoints`";
/// Gives all processes of the host access that otherwise requires a key.
const ANY_PROCESS: &str = "any-process";

/// The names of [`LocalModeAuth`] on the command line.
pub(crate) const MODES: [&str; 3] = ["local-endpoints", "open", "strict"];

/// Returns the value for such a name.
pub(crate) fn local_mode_auth(name: &str) -> Result<LocalModeAuth, serde::de::value::Error> {
    LocalModeAuth::deserialize(name.into_deserializer())
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress {
    pub(crate) address: SocketAddr,
    /// What a device in local mode answers there without a key.
    pub(crate) keyless: KeylessAccess,
}

impl ListenAddress {
    /// Returns an address on which everything except the health checks requires a key.
    pub(crate) fn with_keys(address: SocketAddr) -> Self {
        ListenAddress {
            address,
            keyless: KeylessAccess::default(),
        }
    }

    /// Reads `ADDR:PORT`, `ADDR:PORT=AUTH` or `ADDR:PORT=AUTH+any-process`; the first form uses
    /// `otherwise`.
    ///
    /// # Errors
    /// If it is none of these, or if it opens the network of services.
    pub(crate) fn parse(text: &str, otherwise: LocalModeAuth) -> Result<Self> {
        let (address, setting) = match text.split_once('=') {
            Some((address, setting)) => (address, Some(setting)),
            None => (text, None),
        };
        let address: SocketAddr = address
            .parse()
            .with_context(|| format!("`{text}` is not an address to listen on, {FORM}"))?;
        let is_of_services = is_of_supervisor_network(address.ip());
        let Some(setting) = setting else {
            let auth = if is_of_services {
                LocalModeAuth::Strict
            } else {
                otherwise
            };
            return Ok(ListenAddress {
                address,
                keyless: KeylessAccess {
                    auth,
                    ..KeylessAccess::default()
                },
            });
        };
        let (auth, processes) = match setting.split_once('+') {
            None => (setting, LocalModeProcesses::Trusted),
            Some((auth, ANY_PROCESS)) => (auth, LocalModeProcesses::Any),
            Some((_, other)) => bail!("`{other}` in `{text}` is not `{ANY_PROCESS}`"),
        };
        let Ok(auth) = local_mode_auth(auth) else {
            bail!("`{auth}` in `{text}` is not one of `strict`, `local-endpoints` and `open`");
        };
        if is_of_services && auth != LocalModeAuth::Strict {
            bail!("`{text}` is on the network of services, which have keys: it must be `strict`");
        }
        Ok(ListenAddress {
            address,
            keyless: KeylessAccess { auth, processes },
        })
    }
}

/// Describes what is accessible without a key at an address; `None` if nothing is.
pub(crate) fn openness(address: SocketAddr, keyless: KeylessAccess) -> Option<String> {
    let what = match keyless.auth {
        LocalModeAuth::Strict => return None,
        LocalModeAuth::LocalEndpoints => "/v2/local/ and some reads",
        LocalModeAuth::Open => "everything",
    };
    let ip = address.ip();
    let processes = match keyless.processes {
        LocalModeProcesses::Trusted => "processes of root, of its own user and its own group",
        LocalModeProcesses::Any => "all processes of the host",
    };
    let who = if ip.is_loopback() {
        processes.to_owned()
    } else if ip.is_unspecified() {
        format!("{processes}, and anybody else who can reach it")
    } else {
        "anybody who can reach it".to_owned()
    };
    Some(format!(
        "in local mode http://{address} answers {what} without a key to {who}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_open_but_where_an_address_says_so() {
        use LocalModeAuth::{LocalEndpoints, Open, Strict};
        use LocalModeProcesses::{Any, Trusted};
        for (text, otherwise, auth, processes) in [
            ("127.0.0.1:1", Strict, Strict, Trusted),
            ("127.0.0.1:1", Open, Open, Trusted),
            ("127.0.0.1:1=strict", Open, Strict, Trusted),
            (
                "127.0.0.1:1=local-endpoints",
                Strict,
                LocalEndpoints,
                Trusted,
            ),
            ("[::]:1=open+any-process", Strict, Open, Any),
            // The gateway's, whatever is set for all.
            ("10.114.104.1:1", Open, Strict, Trusted),
            ("10.114.104.1:1=strict", Open, Strict, Trusted),
        ] {
            let keyless = ListenAddress::parse(text, otherwise).unwrap().keyless;
            assert_eq!(keyless, KeylessAccess { auth, processes }, "{text}");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_is_an_error_that_names_it() {
        for (text, named) in [
            ("localhost", "`localhost` is not an address"),
            ("localhost:1=open", "is not an address"),
            ("127.0.0.1:1=", "`` in `127.0.0.1:1=`"),
            ("127.0.0.1:1=Open", "`Open`"),
            ("127.0.0.1:1=open+all", "`all`"),
            ("127.0.0.1:1=open+any-process+x", "`any-process+x`"),
            ("10.114.104.1:1=open", "the network of services"),
        ] {
            let error = ListenAddress::parse(text, LocalModeAuth::Strict).unwrap_err();
            let chain = format!("{error:#}");
            assert!(chain.contains(named), "{text}: {chain}");
        }
    }
}
