//! Proxies in the file of a test or of a device, as a call of `proxy-redirector` passes them and its answer contains them.

use anyhow::{Result, ensure};
use plugin_test_host::protocol::{DnsRemote, Proxy, ProxyKind, ProxyState, Redirection};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Without a proxy, the configuration is removed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetToml {
    proxy: Option<ProxyToml>,
    dns: Option<DnsToml>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProxyToml {
    kind: KindToml,
    address: String,
    port: u16,
    login: Option<String>,
    password: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum KindToml {
    Socks4,
    Socks5,
    HttpConnect,
    HttpRelay,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DnsToml {
    address: String,
    port: u16,
}

/// Returns a configuration as the file of a test writes it.
pub(crate) fn state_json(state: ProxyState) -> Value {
    match state {
        ProxyState::Direct => json!("direct"),
        ProxyState::Unusable(why) => json!({ "unusable": why }),
        ProxyState::Redirected(Redirection { proxy, dns }) => {
            let proxy = ProxyToml {
                kind: proxy.kind.into(),
                address: proxy.address,
                port: proxy.port,
                login: proxy.login,
                password: proxy.password,
            };
            let dns = dns.map(|DnsRemote { address, port }| DnsToml { address, port });
            json!({ "proxy": proxy, "dns": dns })
        }
    }
}

impl TargetToml {
    pub(crate) fn into_redirection(self) -> Result<Option<Redirection>> {
        let TargetToml { proxy, dns } = self;
        let Some(proxy) = proxy else {
            ensure!(dns.is_none(), "its `set` has `dns` without `proxy`");
            return Ok(None);
        };
        Ok(Some(proxy.into_redirection(dns)))
    }
}

impl ProxyToml {
    pub(crate) fn into_redirection(self, dns: Option<DnsToml>) -> Redirection {
        let dns = dns.map(|DnsToml { address, port }| DnsRemote { address, port });
        let proxy = Proxy {
            kind: self.kind.into(),
            address: self.address,
            port: self.port,
            login: self.login,
            password: self.password,
        };
        Redirection { proxy, dns }
    }
}

impl From<KindToml> for ProxyKind {
    fn from(kind: KindToml) -> ProxyKind {
        match kind {
            KindToml::Socks4 => ProxyKind::Socks4,
            KindToml::Socks5 => ProxyKind::Socks5,
            KindToml::HttpConnect => ProxyKind::HttpConnect,
            KindToml::HttpRelay => ProxyKind::HttpRelay,
        }
    }
}

impl From<ProxyKind> for KindToml {
    fn from(kind: ProxyKind) -> KindToml {
        match kind {
            ProxyKind::Socks4 => KindToml::Socks4,
            ProxyKind::Socks5 => KindToml::Socks5,
            ProxyKind::HttpConnect => KindToml::HttpConnect,
            ProxyKind::HttpRelay => KindToml::HttpRelay,
        }
    }
}
