//! The work that results from a change and the present configuration: fields that a request leaves out
//! keep their present values.

use supervisor_sdk::proxy_redirector::{DnsRemote, Proxy, Redirection, State};

use crate::change::{Change, ProxyFields, Setting};

/// The work to do. Empty if the request has no effect.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) host_name: Option<String>,
    /// The new redirection; the inner `None` removes the present one.
    pub(crate) redirection: Option<Option<Redirection>>,
    pub(crate) no_proxy: Option<Vec<String>>,
}

impl Work {
    /// Returns the work that results from `change`, given the present `state` of the redirection.
    ///
    /// # Errors
    /// The missing field of a new proxy.
    pub(crate) fn new(
        change: &Change,
        state: &State,
        default_host_name: impl FnOnce() -> String,
    ) -> Result<Work, String> {
        let before = match state {
            State::Redirected(redirection) => Some(redirection),
            State::Direct | State::Unusable(_) => None,
        };
        let redirection = match (&change.proxy, &change.dns) {
            (Some(Setting::Reset), _) => Some(None),
            (Some(Setting::To(fields)), dns) => Some(Some(Redirection {
                proxy: merged(fields, before.map(|before| &before.proxy))?,
                dns: target_dns(dns.as_ref(), before),
            })),
            (None, Some(dns)) => before.map(|before| {
                Some(Redirection {
                    proxy: before.proxy.clone(),
                    dns: target_dns(Some(dns), Some(before)),
                })
            }),
            (None, None) => None,
        };
        Ok(Work {
            host_name: change.host_name.as_ref().map(|setting| match setting {
                Setting::To(name) => name.clone(),
                Setting::Reset => default_host_name(),
            }),
            redirection,
            no_proxy: change.no_proxy.clone(),
        })
    }

    pub(crate) fn is_nothing(&self) -> bool {
        *self == Work::default()
    }
}

fn target_dns(
    change: Option<&Setting<DnsRemote>>,
    before: Option<&Redirection>,
) -> Option<DnsRemote> {
    match change {
        Some(Setting::To(remote)) => Some(remote.clone()),
        Some(Setting::Reset) => None,
        None => before.and_then(|before| before.dns.clone()),
    }
}

fn merged(fields: &ProxyFields, before: Option<&Proxy>) -> Result<Proxy, String> {
    let missing =
        |name: &str| format!("`network.proxy.{name}` is missing, and no proxy is set that has one");
    let credential = |change: &Option<Setting<String>>, before: Option<&String>| match change {
        Some(Setting::To(text)) => Some(text.clone()),
        Some(Setting::Reset) => None,
        None => before.cloned(),
    };
    Ok(Proxy {
        kind: fields
            .kind
            .or(before.map(|before| before.kind))
            .ok_or_else(|| missing("type"))?,
        address: fields
            .address
            .clone()
            .or(before.map(|before| before.address.clone()))
            .ok_or_else(|| missing("ip"))?,
        port: fields
            .port
            .or(before.map(|before| before.port))
            .ok_or_else(|| missing("port"))?,
        login: credential(&fields.login, before.and_then(|b| b.login.as_ref())),
        password: credential(&fields.password, before.and_then(|b| b.password.as_ref())),
    })
}

#[cfg(test)]
mod tests;
