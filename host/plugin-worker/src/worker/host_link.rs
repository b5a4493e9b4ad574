//! The host as seen by the worker's plugins: questions on one socket, answers matched by number.

use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugin_protocol::{
    CapabilityAnswer, CapabilityCall, Handle, HostCalls, Identity, InstanceId, LogEntry, ServedCall,
};
use tokio::sync::{Semaphore, oneshot};

use crate::frames::{FrameReader, Frames};
use crate::outbox::Outbox;
use crate::socket::{ReadHalf, halves};
use crate::wire::{HostAnswer, HostCall, MOST_OF_HOST, MOST_OF_WORKER};

/// How many questions of one plugin can be under way at a time; the host accepts no more.
pub(crate) const ASKS: usize = 128;

type Answer = std::result::Result<CapabilityAnswer, String>;

/// The connection to the host.
pub(super) struct HostLink {
    to_host: Arc<Outbox>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    /// The device's identity, if the host has sent it with a call.
    identities: Mutex<HashMap<u64, Identity>>,
    /// The instances that have asked for something.
    callers: Mutex<HashSet<InstanceId>>,
    latest: AtomicU64,
}

impl HostLink {
    /// Starts the connection. Must be called in a tokio runtime.
    pub(super) fn start(socket: OwnedFd) -> Result<Arc<HostLink>> {
        let (read, write) = halves(socket)?;
        let link = Arc::new(HostLink {
            to_host: Outbox::start(write),
            waiting: Mutex::default(),
            identities: Mutex::default(),
            callers: Mutex::default(),
            latest: AtomicU64::new(0),
        });
        tokio::spawn(read_all(Arc::clone(&link), read));
        Ok(link)
    }

    /// Keeps the device's identity for this call until the returned guard is dropped.
    pub(super) fn keep_identity(self: &Arc<Self>, call: u64, identity: Identity) -> IdentityGuard {
        self.identities.lock().insert(call, identity);
        IdentityGuard {
            link: Arc::clone(self),
            call,
        }
    }

    /// Returns an answer that the host has already sent.
    fn known(&self, call: u64, what: &CapabilityCall) -> Option<CapabilityAnswer> {
        match what {
            CapabilityCall::DeviceIdentity(_) => {
                let identity = self.identities.lock().get(&call).cloned();
                identity.map(CapabilityAnswer::DeviceIdentity)
            }
            _ => None,
        }
    }

    /// Returns the host for one plugin.
    pub(super) fn of_plugin(self: &Arc<Self>, plugin: u64) -> Arc<dyn HostCalls> {
        Arc::new(RemoteHost {
            link: Arc::clone(self),
            plugin,
            places: Arc::new(Semaphore::new(ASKS)),
        })
    }

    /// Sends something to the host that is not urgent.
    fn tell(&self, call: &HostCall) {
        if let Ok(frames) = Frames::message(call) {
            self.to_host.send_later(frames);
        }
    }
}

async fn read_all(link: Arc<HostLink>, socket: ReadHalf) {
    let mut reader = FrameReader::new(socket, MOST_OF_HOST);
    while let Ok(Some(HostAnswer { id, answer })) = reader.message().await {
        if let Some(waiting) = link.waiting.lock().remove(&id) {
            // The caller may be gone.
            let _ = waiting.send(answer);
        }
    }
    link.to_host.close();
    link.waiting.lock().clear();
}

struct RemoteHost {
    link: Arc<HostLink>,
    plugin: u64,
    places: Arc<Semaphore>,
}

impl HostCalls for RemoteHost {
    fn ask(
        &self,
        instance: InstanceId,
        serving: &ServedCall,
        what: CapabilityCall,
    ) -> BoxFuture<'static, Answer> {
        if let Some(answer) = self.link.known(serving.call, &what) {
            return ready(Ok(answer)).boxed();
        }
        self.link.callers.lock().insert(instance);
        let (link, places) = (Arc::clone(&self.link), Arc::clone(&self.places));
        let id = link.latest.fetch_add(1, Relaxed) + 1;
        let call = HostCall::Ask {
            id,
            plugin: self.plugin,
            instance,
            call: serving.call,
            what,
        };
        async move {
            let ended = || "the host is gone".to_owned();
            let _place = places.acquire().await.map_err(|_| ended())?;
            let frames = Frames::message(&call).map_err(|error| error.to_string())?;
            let length = frames.bytes().len();
            if length > MOST_OF_WORKER {
                return Err(format!(
                    "its call to the host has {length} bytes, more than {MOST_OF_WORKER}"
                ));
            }
            let (sender, answer) = oneshot::channel();
            link.waiting.lock().insert(id, sender);
            let _waiting = PendingAnswer { link: &link, id };
            link.to_host.send(frames);
            if link.to_host.is_closed() {
                return Err(ended());
            }
            answer.await.map_err(|_| ended())?
        }
        .boxed()
    }

    fn release(&self, instance: InstanceId, handle: Handle) {
        let plugin = self.plugin;
        self.link.tell(&HostCall::Release {
            plugin,
            instance,
            handle,
        });
    }

    fn end(&self, instance: InstanceId) {
        // The host does not know any other instances.
        if !self.link.callers.lock().remove(&instance) {
            return;
        }
        let plugin = self.plugin;
        self.link.tell(&HostCall::End { plugin, instance });
    }

    fn log(&self, entry: LogEntry) {
        let plugin = self.plugin;
        self.link.tell(&HostCall::Log { plugin, entry });
    }
}

/// Keeps the device's identity for a call, as long as the call lasts.
pub(super) struct IdentityGuard {
    link: Arc<HostLink>,
    call: u64,
}

impl Drop for IdentityGuard {
    fn drop(&mut self) {
        self.link.identities.lock().remove(&self.call);
    }
}

/// An answer that is being waited for: its place is removed together with the waiting caller.
struct PendingAnswer<'a> {
    link: &'a HostLink,
    id: u64,
}

impl Drop for PendingAnswer<'_> {
    fn drop(&mut self) {
        self.link.waiting.lock().remove(&self.id);
    }
}
