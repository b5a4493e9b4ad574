//! Whether the cloud can be reached at all: opens a connection every 10 s and closes it at once
//! (docs/spec/device.md#config-variables, `SUPERVISOR_CONNECTIVITY_CHECK`). It reports problems long before polls are
//! late.

use std::sync::Arc;
use std::time::Duration;

use model::error_chain;
use reqwest::Url;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::poll::Device;

/// The pause between two attempts.
const PERIOD: Duration = Duration::from_secs(10);
/// How long an attempt may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The check of one cloud. Clones share it.
#[derive(Clone)]
pub struct Connectivity {
    /// Why the last attempt failed; `None` if it succeeded, or the check is off.
    broken: Arc<watch::Sender<Option<String>>>,
}

impl Connectivity {
    /// Begins to check, until `stop`, while the device's settings enable it. Runs in a tokio runtime. `endpoint` is the
    /// address of the cloud.
    #[must_use]
    pub fn start(endpoint: &str, device: Arc<dyn Device>, stop: CancellationToken) -> Self {
        let watch = Connectivity {
            broken: Arc::default(),
        };
        let address = address_of(endpoint);
        let running = watch.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(running.run(address, device)).await;
        });
        watch
    }

    /// Returns the current problem.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.broken.borrow().clone()
    }

    /// Returns the current problem, with each change of it.
    #[must_use]
    pub fn problems(&self) -> watch::Receiver<Option<String>> {
        self.broken.subscribe()
    }

    async fn run(&self, address: Option<(String, u16)>, device: Arc<dyn Device>) {
        let Some((host, port)) = address else { return };
        loop {
            let problem = if device.settings().connectivity_check {
                reach(&host, port).await.err()
            } else {
                None
            };
            let before = self.broken.send_replace(problem.clone());
            match (before, problem) {
                (None, Some(why)) => tracing::warn!("{why}"),
                (Some(_), None) => tracing::info!("the cloud can be reached again"),
                _ => {}
            }
            tokio::time::sleep(PERIOD).await;
        }
    }
}

async fn reach(host: &str, port: u16) -> Result<(), String> {
    let failed = |why: String| format!("the cloud at `{host}:{port}` cannot be reached: {why}");
    match tokio::time::timeout(PATIENCE, names::connect(host, port)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(failed(error_chain(&error))),
        Err(_) => Err(failed(format!("no answer for {} s", PATIENCE.as_secs()))),
    }
}

fn address_of(endpoint: &str) -> Option<(String, u16)> {
    let url = Url::parse(endpoint).ok()?;
    // The brackets around an IPv6 address belong to the URL.
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    Some((host, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use serde_json::Value;
    use tokio::net::TcpListener;

    use super::*;
    use crate::{Settings, TargetRefusal};

    struct Asks(bool);

    impl Device for Asks {
        fn take(&self, _: Value, _: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
            async { Ok(()) }.boxed()
        }

        fn unchanged(&self) {}

        fn apply_again(&self, _: bool, _: bool) {}

        fn checking(&self, _: bool) {}

        fn settings(&self) -> Settings {
            Settings {
                interval: PERIOD,
                request_timeout: PATIENCE,
                instant_updates: true,
                connectivity_check: self.0,
            }
        }
    }

    #[test]
    fn the_address_is_that_of_the_endpoint() {
        for (endpoint, expected) in [
            ("https://api.example.com", Some(("api.example.com", 443))),
            ("http://127.0.0.1:8080/x", Some(("127.0.0.1", 8080))),
            ("http://[::1]:9", Some(("::1", 9))),
            ("nonsense", None),
        ] {
            let expected = expected.map(|(host, port): (&str, u16)| (host.to_owned(), port));
            assert_eq!(address_of(endpoint), expected, "{endpoint}");
        }
    }

    #[tokio::test]
    async fn a_cloud_that_does_not_listen_is_a_problem_for_who_asks() {
        // Nobody else listens on it after us.
        let held = held_port::HeldPort::new().unwrap();
        let port = held.address().port();
        let listener = TcpListener::bind(held.address()).await.unwrap();
        assert_eq!(reach("127.0.0.1", port).await, Ok(()));
        drop(listener);
        let endpoint = format!("http://127.0.0.1:{port}");
        let stop = CancellationToken::new();
        let watch = |asks| Connectivity::start(&endpoint, Arc::new(Asks(asks)), stop.clone());
        let (enabled, disabled) = (watch(true), watch(false));
        let problem = async {
            loop {
                if let Some(problem) = enabled.problem() {
                    return problem;
                }
                tokio::task::yield_now().await;
            }
        };
        let problem = tokio::time::timeout(PATIENCE, problem).await.unwrap();
        assert!(problem.contains(&port.to_string()), "{problem}");
        assert_eq!(disabled.problem(), None);
        stop.cancel();
    }
}
