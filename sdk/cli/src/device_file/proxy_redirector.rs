//! The table `[proxy_redirector]` of a device file: the plugin that configures the device's proxy, for plugins that call it.
//!
//! ```toml
//! [proxy_redirector]
//! proxy = { kind = "socks5", address = "10.0.0.9", port = 1080 }   # without it, connections are not redirected
//! dns = { address = "10.0.0.53", port = 53 }
//! no_proxy = ["10.0.0.0/8"]
//! unusable = "it has no port"                 # instead of `proxy` and `dns`
//! refused = "`dns` is not supported"          # the error for new values; without it, they are stored
//! failed = "the boot partition is missing"    # the error of every call
//! ```

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::ready;
use parking_lot::Mutex;
use plugin_test_host::AnswerChange;
use plugin_test_host::protocol::text::LONGEST;
use plugin_test_host::protocol::{
    CapabilityAnswer as Answer, ProxyAnswer, ProxyCall, ProxyError, ProxyState,
};
use serde::Deserialize;

use super::hints::Hints;
use crate::proxy_toml::{DnsToml, ProxyToml};

/// The configuration of the device's proxy, and how calls of its provider fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "ProviderToml")]
pub(super) struct FakeRedirector {
    state: ProxyState,
    no_proxy: Vec<String>,
    error: Option<RedirectorError>,
}

#[derive(Debug, Clone)]
enum RedirectorError {
    /// New values are refused with this reason.
    Refused(String),
    /// Every call fails with this reason.
    Failed(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderToml {
    proxy: Option<ProxyToml>,
    dns: Option<DnsToml>,
    #[serde(default)]
    no_proxy: Vec<String>,
    unusable: Option<String>,
    refused: Option<String>,
    failed: Option<String>,
}

impl TryFrom<ProviderToml> for FakeRedirector {
    type Error = String;

    fn try_from(written: ProviderToml) -> Result<FakeRedirector, String> {
        let ProviderToml {
            proxy,
            dns,
            no_proxy,
            unusable,
            refused,
            failed,
        } = written;
        for (key, text) in [
            ("unusable", &unusable),
            ("refused", &refused),
            ("failed", &failed),
        ] {
            let length = text.as_ref().map_or(0, String::len);
            if length > LONGEST {
                return Err(format!(
                    "`{key}` of `proxy_redirector` has {length} bytes, but a plugin receives at most {LONGEST} of it"
                ));
            }
        }
        let state = match (proxy, dns, unusable) {
            (None, None, None) => ProxyState::Direct,
            (None, None, Some(why)) => ProxyState::Unusable(why),
            (Some(proxy), dns, None) => ProxyState::Redirected(proxy.into_redirection(dns)),
            (None, Some(_), None) => {
                return Err("`proxy_redirector` has `dns` without `proxy`".to_owned());
            }
            (_, _, Some(_)) => {
                return Err(
                    "`proxy_redirector` has `unusable`, and can then have neither `proxy` nor `dns`"
                        .to_owned(),
                );
            }
        };
        let error = match (refused, failed) {
            (None, None) => None,
            (Some(reason), None) => Some(RedirectorError::Refused(reason)),
            (None, Some(reason)) => Some(RedirectorError::Failed(reason)),
            (Some(_), Some(_)) => {
                return Err(
                    "`proxy_redirector` has `refused` and `failed`, and can have one of them"
                        .to_owned(),
                );
            }
        };
        Ok(FakeRedirector {
            state,
            no_proxy,
            error,
        })
    }
}

impl FakeRedirector {
    /// Performs a call as the file says: what a plugin sets is what it gets afterwards.
    fn perform(&mut self, call: ProxyCall) -> Result<ProxyAnswer, ProxyError> {
        // A configuration can be removed even if no other is accepted.
        let has_values = matches!(call, ProxyCall::Set(Some(_)) | ProxyCall::SetNoProxy(_));
        match &self.error {
            Some(RedirectorError::Failed(reason)) => return Err(ProxyError::Other(reason.clone())),
            Some(RedirectorError::Refused(reason)) if has_values => {
                return Err(ProxyError::Invalid(reason.clone()));
            }
            _ => {}
        }
        Ok(match call {
            ProxyCall::Get => ProxyAnswer::State(self.state.clone()),
            ProxyCall::Set(target) => {
                self.state = target.map_or(ProxyState::Direct, ProxyState::Redirected);
                ProxyAnswer::Done
            }
            ProxyCall::NoProxy => ProxyAnswer::Addresses(self.no_proxy.clone()),
            ProxyCall::SetNoProxy(addresses) => {
                self.no_proxy = addresses;
                ProxyAnswer::Done
            }
            ProxyCall::Apply => ProxyAnswer::Done,
        })
    }
}

/// The provider of `proxy-redirector` on a device whose plugin does not provide it.
#[derive(Clone)]
pub(super) struct RedirectorProvider {
    /// Without it, the device has no such plugin.
    fake: Option<Arc<Mutex<FakeRedirector>>>,
    /// The device file, for people.
    file: String,
    hints: Arc<Hints>,
}

impl RedirectorProvider {
    /// Creates the provider that the file of this name describes.
    pub(super) fn new(
        fake: Option<FakeRedirector>,
        file: String,
        hints: Arc<Hints>,
    ) -> RedirectorProvider {
        RedirectorProvider {
            fake: fake.map(|fake| Arc::new(Mutex::new(fake))),
            file,
            hints,
        }
    }

    /// Returns what replaces the answer of a device without a provider to this call.
    pub(super) fn answer(&self, call: &ProxyCall) -> AnswerChange {
        let provider = self.clone();
        let call = call.clone();
        Box::new(move |_| ready(Answer::ProxyRequest(provider.perform(call))).boxed())
    }

    /// Performs a call.
    ///
    /// # Errors
    /// The reason in the device file; without a provider, what to write into the file.
    fn perform(&self, call: ProxyCall) -> Result<ProxyAnswer, ProxyError> {
        match &self.fake {
            Some(fake) => fake.lock().perform(call),
            None => {
                let hint = format!(
                    "no plugin of this device provides `proxy-redirector`, and `{}` has no answer in its place: add a table \
                     [proxy_redirector] to it",
                    self.file
                );
                self.hints.show(&hint);
                Err(ProxyError::Unavailable(hint))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plugin_test_host::protocol::{DnsRemote, Proxy, ProxyKind, Redirection};

    use super::*;

    fn provider(text: Option<&str>) -> RedirectorProvider {
        let fake = text.map(|text| toml::from_str(text).unwrap());
        RedirectorProvider::new(fake, "device.toml".to_owned(), Arc::default())
    }

    /// Calls the provider as a plugin does.
    fn call(provider: &RedirectorProvider, call: &ProxyCall) -> Result<ProxyAnswer, ProxyError> {
        let none = ProxyError::Unavailable("there is no provider".to_owned());
        let change = provider.answer(call);
        let answer = change(Answer::ProxyRequest(Err(none))).now_or_never();
        let Some(Answer::ProxyRequest(outcome)) = answer else {
            panic!("it is an answer to another call");
        };
        outcome
    }

    fn redirection() -> Redirection {
        Redirection {
            proxy: Proxy {
                kind: ProxyKind::Socks5,
                address: "10.0.0.9".to_owned(),
                port: 1080,
                login: None,
                password: None,
            },
            dns: Some(DnsRemote {
                address: "10.0.0.53".to_owned(),
                port: 53,
            }),
        }
    }

    const PROXY: &str = "proxy = { kind = \"socks5\", address = \"10.0.0.9\", port = 1080 }\n\
                         dns = { address = \"10.0.0.53\", port = 53 }\n";

    #[test]
    fn the_configuration_is_that_of_the_file_until_the_plugin_sets_another() {
        for (text, expected) in [
            ("", ProxyState::Direct),
            (PROXY, ProxyState::Redirected(redirection())),
            (
                "unusable = \"it has no port\"",
                ProxyState::Unusable("it has no port".to_owned()),
            ),
        ] {
            let provider = provider(Some(text));
            let get = || call(&provider, &ProxyCall::Get);
            assert_eq!(get(), Ok(ProxyAnswer::State(expected)), "{text}");
            let set = ProxyCall::Set(Some(redirection()));
            assert_eq!(call(&provider, &set), Ok(ProxyAnswer::Done));
            let state = ProxyState::Redirected(redirection());
            assert_eq!(get(), Ok(ProxyAnswer::State(state)), "{text}");
            let remove = ProxyCall::Set(None);
            assert_eq!(call(&provider, &remove), Ok(ProxyAnswer::Done));
            assert_eq!(get(), Ok(ProxyAnswer::State(ProxyState::Direct)), "{text}");
            assert!(provider.hints.take().is_empty(), "{text}");
        }
        let provider = provider(Some("no_proxy = [\"10.0.0.0/8\"]"));
        let addresses = |address: &str| vec![address.to_owned()];
        let expected = ProxyAnswer::Addresses(addresses("10.0.0.0/8"));
        assert_eq!(call(&provider, &ProxyCall::NoProxy), Ok(expected));
        let set = ProxyCall::SetNoProxy(addresses("192.0.2.7"));
        assert_eq!(call(&provider, &set), Ok(ProxyAnswer::Done));
        let expected = ProxyAnswer::Addresses(addresses("192.0.2.7"));
        assert_eq!(call(&provider, &ProxyCall::NoProxy), Ok(expected));
        assert_eq!(call(&provider, &ProxyCall::Apply), Ok(ProxyAnswer::Done));
    }

    #[test]
    fn new_values_are_refused_or_every_call_fails_if_the_file_says_so() {
        let calls = [
            (ProxyCall::Get, false),
            (ProxyCall::Set(Some(redirection())), true),
            (ProxyCall::Set(None), false),
            (ProxyCall::NoProxy, false),
            (ProxyCall::SetNoProxy(Vec::new()), true),
            (ProxyCall::Apply, false),
        ];
        let refuses = provider(Some("refused = \"it is odd\""));
        let fails = provider(Some("failed = \"it is broken\""));
        for (request, has_values) in calls {
            let outcome = call(&refuses, &request);
            let refusal = Err(ProxyError::Invalid("it is odd".to_owned()));
            assert_eq!(outcome == refusal, has_values, "{request:?}: {outcome:?}");
            assert_eq!(outcome.is_ok(), !has_values, "{request:?}: {outcome:?}");
            let failure = Err(ProxyError::Other("it is broken".to_owned()));
            assert_eq!(call(&fails, &request), failure, "{request:?}");
        }
        let state = ProxyAnswer::State(ProxyState::Direct);
        assert_eq!(call(&refuses, &ProxyCall::Get), Ok(state));
    }

    #[test]
    fn without_the_table_the_error_says_to_add_it() {
        let provider = provider(None);
        let error = call(&provider, &ProxyCall::Get).unwrap_err();
        assert!(matches!(error, ProxyError::Unavailable(_)), "{error:?}");
        let error = error.to_string();
        let expected = "`device.toml` has no answer in its place: add a table [proxy_redirector]";
        assert!(error.contains(expected), "{error}");
        assert_eq!(provider.hints.take(), [error]);
    }

    #[test]
    fn an_invalid_provider_is_refused() {
        let long = format!("failed = \"{}\"", "x".repeat(LONGEST + 1));
        let both = format!("unusable = \"a\"\n{PROXY}");
        for (text, expected) in [
            (
                "dns = { address = \"10.0.0.53\", port = 53 }",
                "`proxy_redirector` has `dns` without `proxy`",
            ),
            (
                "proxy = { kind = \"http\", address = \"a\", port = 1 }",
                "unknown variant `http`",
            ),
            (&*both, "can then have neither `proxy` nor `dns`"),
            (
                "refused = \"a\"\nfailed = \"b\"",
                "`refused` and `failed`, and can have one of them",
            ),
            ("state = \"direct\"", "unknown field `state`"),
            (&*long, "a plugin receives at most 4096 of it"),
        ] {
            let error = toml::from_str::<FakeRedirector>(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
