//! What GET answers (docs/spec/device.md#host-config).

use serde::Serialize;
use supervisor_sdk::proxy_redirector::{Redirection, State};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct HostConfig {
    pub(crate) network: NetworkShown,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct NetworkShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proxy: Option<ProxyShown>,
    pub(crate) hostname: String,
    /// `ADDRESS:PORT`, here and in `proxy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dns: Option<String>,
}

/// Empty except for `noProxy` if the configuration names no usable proxy.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProxyShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    /// A string of digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    no_proxy: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dns: Option<String>,
}

impl ProxyShown {
    /// Creates the answer; `None` if connections are not redirected.
    pub(crate) fn from_state(state: State, no_proxy: Vec<String>) -> Option<Self> {
        let Redirection { proxy, dns } = match state {
            State::Direct => return None,
            State::Unusable(_) => {
                return Some(ProxyShown {
                    no_proxy,
                    ..ProxyShown::default()
                });
            }
            State::Redirected(redirection) => redirection,
        };
        Some(ProxyShown {
            ip: Some(proxy.address),
            port: Some(proxy.port.to_string()),
            kind: Some(proxy.kind.name()),
            login: proxy.login,
            password: proxy.password,
            no_proxy,
            dns: dns.map(|dns| dns.to_string()),
        })
    }
}
