//! Stand-ins, controlled by a test, for the parts of the supervisor that capabilities use.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugins::{
    ApiError, ApiResponse, AppLocks, Device, DeviceApi, HeldLocks, HostName, HostNameError,
    HttpClient, HttpError, HttpResponse, Identity, LocksError, OutgoingRequest, PluginApiRequest,
};
use serde_json::Value;
use supervisor_testing::HttpError as TestHttpError;
use supervisor_testing::protocol::HttpExchange;

/// The device itself.
pub(crate) struct FakeDevice {
    pub(crate) identity: Identity,
    pub(crate) state: Value,
}

impl Device for FakeDevice {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    fn state(&self) -> Value {
        self.state.clone()
    }
}

/// How long a device waits for the whole answer of another host.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// The capability `http`: other hosts with prepared answers.
pub(crate) struct FakeHttp(BTreeMap<String, FakeExchange>);

/// What becomes of a request, after this time.
struct FakeExchange {
    delay: Duration,
    outcome: Result<HttpResponse, HttpError>,
}

impl FakeHttp {
    pub(crate) fn new(exchanges: Vec<HttpExchange>) -> FakeHttp {
        let exchanges = exchanges.into_iter().map(|exchange| {
            let outcome = match exchange.outcome {
                Ok((status, body)) => Ok(HttpResponse {
                    status,
                    headers: Vec::new(),
                    body,
                }),
                Err(TestHttpError::Unreachable(why)) => Err(HttpError::Unreachable(why)),
                Err(TestHttpError::TooLarge(why)) => Err(HttpError::TooLarge(why)),
            };
            let delay = exchange.delay;
            (exchange.request, FakeExchange { delay, outcome })
        });
        FakeHttp(exchanges.collect())
    }
}

impl HttpClient for FakeHttp {
    fn send(&self, outgoing: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        let OutgoingRequest { request, .. } = outgoing;
        let request = format!("{} {}", request.method(), request.uri());
        let Some(FakeExchange { delay, outcome }) = self.0.get(&request) else {
            let why = format!("this device has no answer to `{request}`");
            return async { Err(HttpError::Unreachable(why)) }.boxed();
        };
        async move {
            tokio::time::sleep((*delay).min(ANSWER_WITHIN)).await;
            if *delay > ANSWER_WITHIN {
                return Err(HttpError::Unreachable(format!(
                    "there was no answer within {} s",
                    ANSWER_WITHIN.as_secs()
                )));
            }
            outcome.clone()
        }
        .boxed()
    }
}

/// The capability `update-lock`: one lock, which the test may hold as an app would.
#[derive(Default)]
pub(crate) struct FakeLocks {
    /// The message for a caller without force.
    pub(crate) held_by_an_app: Mutex<Option<String>>,
    /// How often the locks were taken.
    times: AtomicUsize,
    forced: AtomicUsize,
    is_held: Arc<AtomicBool>,
}

struct LockRelease(Arc<AtomicBool>);

impl Drop for LockRelease {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

impl FakeLocks {
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.times.load(SeqCst), self.forced.load(SeqCst))
    }

    pub(crate) fn are_held(&self) -> bool {
        self.is_held.load(SeqCst)
    }
}

impl AppLocks for FakeLocks {
    fn acquire_all(&self, force: bool) -> BoxFuture<'_, Result<HeldLocks, LocksError>> {
        let app = self.held_by_an_app.lock();
        let outcome = match &*app {
            Some(message) if !force => Err(LocksError::Locked(message.clone())),
            _ => {
                self.times.fetch_add(1, SeqCst);
                self.forced.fetch_add(usize::from(force), SeqCst);
                self.is_held.store(true, SeqCst);
                Ok(Box::new(LockRelease(Arc::clone(&self.is_held))) as HeldLocks)
            }
        };
        async { outcome }.boxed()
    }
}

/// The capability `host-name`: only the file `etc/hostname` of the test's device.
pub(crate) struct FakeHostName {
    pub(crate) file: PathBuf,
}

impl HostName for FakeHostName {
    fn get(&self) -> BoxFuture<'_, Result<Option<String>, HostNameError>> {
        let name = fs::read_to_string(&self.file).ok();
        async { Ok(name.map(|name| name.trim().to_owned())) }.boxed()
    }

    fn set(&self, name: String) -> BoxFuture<'_, Result<(), HostNameError>> {
        let written = self
            .file
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&self.file, name + "\n"));
        async { written.map_err(|error| HostNameError::Other(error.to_string())) }.boxed()
    }
}

/// The capability `api`: the answers (status and body) that the test has prepared for requests (method and path).
pub(crate) struct FakeApi(pub(crate) BTreeMap<String, (u16, Vec<u8>)>);

impl DeviceApi for FakeApi {
    fn send(&self, call: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>> {
        let request = format!("{} {}", call.request.method(), call.request.uri().path());
        let not_found = || (404, b"{\"status\":\"failed\"}".to_vec());
        let (status, body) = self.0.get(&request).cloned().unwrap_or_else(not_found);
        let answer = ApiResponse {
            status,
            content_type: Some("application/json".to_owned()),
            body,
        };
        async { Ok(answer) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use plugins::AddressScope;
    use tokio::time::Instant;

    use super::*;

    fn request(url: &str) -> OutgoingRequest {
        let mut request = http::Request::new(Vec::new());
        *request.uri_mut() = url.parse().unwrap();
        OutgoingRequest {
            plugin: Arc::from("a"),
            request,
            reachable: AddressScope::OtherMachines,
            longest_answer: 1 << 20,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_host_answers_after_its_time_and_a_device_waits_for_a_minute() {
        let why = || "it is down".to_owned();
        let down = HttpError::Unreachable(why());
        let large = HttpError::TooLarge(why());
        let late = HttpError::Unreachable("there was no answer within 60 s".to_owned());
        for (seconds, outcome, expected, waited) in [
            (0, Ok(()), Ok(200), 0),
            (60, Ok(()), Ok(200), 60),
            (61, Ok(()), Err(late.clone()), 60),
            (u64::MAX, Ok(()), Err(late), 60),
            (5, Err(TestHttpError::Unreachable(why())), Err(down), 5),
            (5, Err(TestHttpError::TooLarge(why())), Err(large), 5),
        ] {
            let url = "https://api.acme.example/now";
            let http = FakeHttp::new(vec![HttpExchange {
                request: format!("GET {url}"),
                delay: Duration::from_secs(seconds),
                outcome: outcome.map(|()| (200, Vec::new())),
            }]);
            let begun = Instant::now();
            let answer = http.send(request(url)).await;
            assert_eq!(answer.map(|answer| answer.status), expected, "{seconds}");
            assert_eq!(begun.elapsed().as_secs(), waited, "{seconds}");
            let other = http.send(request("https://other.example/")).await;
            assert!(matches!(other, Err(HttpError::Unreachable(_))));
        }
    }
}
