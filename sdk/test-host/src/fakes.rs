//! Stand-ins, controlled by a test, for the parts of the supervisor that capabilities use.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugins::{
    ApiError, ApiResponse, AppLocks, DeviceApi, HeldLocks, HostName, HostNameError, HttpClient,
    HttpError, HttpResponse, LocksError, OutgoingRequest, PluginApiRequest,
};

/// The capability `http`: other hosts with prepared answers.
#[derive(Default)]
pub(crate) struct FakeHttp(BTreeMap<String, (u16, Vec<u8>)>);

impl FakeHttp {
    pub(crate) fn add(&mut self, request: &str, status: u16, body: Vec<u8>) {
        self.0.insert(request.to_owned(), (status, body));
    }
}

impl HttpClient for FakeHttp {
    fn send(&self, outgoing: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>> {
        let OutgoingRequest { request, .. } = outgoing;
        let request = format!("{} {}", request.method(), request.uri());
        let outcome = match self.0.get(&request) {
            Some((status, body)) => Ok(HttpResponse {
                status: *status,
                headers: Vec::new(),
                body: body.clone(),
            }),
            None => Err(HttpError::Unreachable(format!(
                "this device has no answer to `{request}`"
            ))),
        };
        async { outcome }.boxed()
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

/// The capability `api`: the answers that the test has prepared for requests.
#[derive(Default)]
pub(crate) struct FakeApi {
    answers: BTreeMap<String, (u16, Vec<u8>)>,
}

impl FakeApi {
    /// `request` is the method and the path.
    pub(crate) fn add(&mut self, request: &str, status: u16, body: Vec<u8>) {
        self.answers.insert(request.to_owned(), (status, body));
    }
}

impl DeviceApi for FakeApi {
    fn send(&self, call: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>> {
        let request = format!("{} {}", call.request.method(), call.request.uri().path());
        let not_found = || (404, b"{\"status\":\"failed\"}".to_vec());
        let (status, body) = self
            .answers
            .get(&request)
            .cloned()
            .unwrap_or_else(not_found);
        let answer = ApiResponse {
            status,
            content_type: Some("application/json".to_owned()),
            body,
        };
        async { Ok(answer) }.boxed()
    }
}
