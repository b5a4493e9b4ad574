//! The host as the plugins of the worker have it: questions on one socket, answers by their numbers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    CapabilityAnswer, CapabilityCall, Handle, HostCalls, InstanceId, LogEntry, Serving,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::lock;
use crate::frames::{FrameReader, Frames};
use crate::wire::{HostAnswer, HostCall, MOST_OF_HOST, MOST_OF_WORKER};

/// How many questions of one plugin are under way at a time; the host takes no more.
pub(crate) const ASKS: usize = 128;

type Answer = Result<CapabilityAnswer, String>;

/// The socket.
pub(super) struct HostLink {
    to_host: mpsc::UnboundedSender<Frames>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    latest: AtomicU64,
}

impl HostLink {
    /// Runs in a tokio runtime.
    pub(super) fn start(socket: UnixStream) -> Arc<HostLink> {
        let (read, write) = socket.into_split();
        let (to_host, frames) = mpsc::unbounded_channel();
        let link = Arc::new(HostLink {
            to_host,
            waiting: Mutex::default(),
            latest: AtomicU64::new(0),
        });
        tokio::spawn(write_all(frames, write));
        tokio::spawn(read_all(Arc::clone(&link), read));
        link
    }

    /// The host of one plugin.
    pub(super) fn of_plugin(self: &Arc<Self>, plugin: u64) -> Arc<dyn HostCalls> {
        Arc::new(RemoteHost {
            link: Arc::clone(self),
            plugin,
            places: Arc::new(Semaphore::new(ASKS)),
        })
    }

    fn send(&self, call: &HostCall) {
        // Without a host there is nobody to tell, and the worker ends.
        if let Ok(frames) = Frames::message(call) {
            let _ = self.to_host.send(frames);
        }
    }
}

async fn write_all(mut frames: mpsc::UnboundedReceiver<Frames>, mut socket: OwnedWriteHalf) {
    while let Some(frames) = frames.recv().await {
        if socket.write_all(frames.bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_all(link: Arc<HostLink>, socket: OwnedReadHalf) {
    let mut reader = FrameReader::new(socket, MOST_OF_HOST);
    while let Ok(Some(HostAnswer { id, answer })) = reader.message().await {
        if let Some(waiting) = lock(&link.waiting).remove(&id) {
            // Whoever asked may be gone.
            let _ = waiting.send(answer);
        }
    }
    lock(&link.waiting).clear();
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
        serving: &Serving,
        what: CapabilityCall,
    ) -> BoxFuture<'static, Answer> {
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
                    "it asks the host for something in {length} bytes, more than {MOST_OF_WORKER}"
                ));
            }
            let (sender, answer) = oneshot::channel();
            lock(&link.waiting).insert(id, sender);
            let _waiting = Waiting { link: &link, id };
            link.to_host.send(frames).map_err(|_| ended())?;
            answer.await.map_err(|_| ended())?
        }
        .boxed()
    }

    fn release(&self, instance: InstanceId, handle: Handle) {
        let plugin = self.plugin;
        self.link.send(&HostCall::Release {
            plugin,
            instance,
            handle,
        });
    }

    fn end(&self, instance: InstanceId) {
        let plugin = self.plugin;
        self.link.send(&HostCall::End { plugin, instance });
    }

    fn log(&self, entry: LogEntry) {
        let plugin = self.plugin;
        self.link.send(&HostCall::Log { plugin, entry });
    }
}

/// An answer that is waited for: with whoever waits, the place for it goes.
struct Waiting<'a> {
    link: &'a HostLink,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.link.waiting).remove(&self.id);
    }
}
