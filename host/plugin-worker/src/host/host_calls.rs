//! What instances in a worker ask of the host.

use std::collections::HashMap;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use futures::FutureExt as _;
use parking_lot::Mutex;
use plugin_protocol::{CapabilityAnswer, InstanceId};
use tokio_util::sync::CancellationToken;

use super::entry::PluginEntry;
use crate::frames::{FrameReader, Frames, invalid};
use crate::outbox::Outbox;
use crate::socket::halves;
use crate::wire::{HostAnswer, HostCall, MOST_OF_WORKER};

/// The plugins of a worker, by their numbers.
pub(super) type Registry = Mutex<HashMap<u64, Weak<PluginEntry>>>;

/// How many instances of a worker can have called at a time: more than it has places.
const INSTANCES: usize = 8192;
/// How many answers wait for a worker to read them.
const ANSWERS: usize = 64;
/// Which part of an instance's number is the worker's own: the rest is the worker's generation, so that an instance of
/// one that ended is none of the next.
const NUMBER: u32 = 40;

/// Does what instances ask for, until the worker ends. What it says that no worker would is an error.
pub(super) async fn serve(generation: u64, registry: Arc<Registry>, socket: OwnedFd) -> Result<()> {
    let (read, write) = halves(socket)?;
    let mut reader = FrameReader::new(read, MOST_OF_WORKER);
    let mut served = WorkerSession {
        generation,
        registry,
        instances: HashMap::new(),
        answers: Outbox::start(write),
    };
    while let Some(call) = reader.message::<HostCall>().await? {
        served.take(call)?;
    }
    Ok(())
}

/// What a worker's instances have of the host. With this all of it goes.
struct WorkerSession {
    generation: u64,
    registry: Arc<Registry>,
    instances: HashMap<(u64, InstanceId), InstanceCalls>,
    answers: Arc<Outbox>,
}

struct InstanceCalls {
    entry: Arc<PluginEntry>,
    /// Ends what it asks for.
    ended: CancellationToken,
}

impl WorkerSession {
    fn take(&mut self, call: HostCall) -> Result<()> {
        match call {
            HostCall::Ask {
                id,
                plugin,
                instance,
                call,
                what,
            } => {
                let instance = self.id(instance);
                let Some(entry) = self.entry(plugin) else {
                    // It was unloaded meanwhile.
                    return Ok(());
                };
                if self.instances.len() >= INSTANCES {
                    return Err(invalid(format!("more than {INSTANCES} instances")));
                }
                let Some(place) = entry.place() else {
                    let answer = Err("it has too many calls to the host at a time".to_owned());
                    // Where no answer fits either, whoever asked waits until its time is over.
                    if self.answers.waiting() < ANSWERS {
                        self.answers.send(answer_frames(id, answer));
                    }
                    return Ok(());
                };
                entry.note(&what);
                let serving = entry.serving(call, instance);
                let calls = self.instances.entry((plugin, instance));
                let calls = calls.or_insert_with(|| InstanceCalls {
                    entry: Arc::clone(&entry),
                    ended: CancellationToken::new(),
                });
                let (answers, ended) = (self.answers.clone(), calls.ended.clone());
                let answer = entry.host.ask(instance, &serving, what);
                let mut answering = Box::pin(async move {
                    let _place = place;
                    let answer = answer.await;
                    answers.send_among(ANSWERS, answer_frames(id, answer)).await;
                });
                // Most of it is known, and needs no task.
                if answering.as_mut().now_or_never().is_none() {
                    tokio::spawn(async move {
                        ended.run_until_cancelled(answering).await;
                    });
                }
            }
            HostCall::Release {
                plugin,
                instance,
                handle,
            } => {
                if let Some(entry) = self.entry(plugin) {
                    entry.host.release(self.id(instance), handle);
                }
            }
            HostCall::End { plugin, instance } => {
                let instance = self.id(instance);
                if let Some(calls) = self.instances.remove(&(plugin, instance)) {
                    calls.ended.cancel();
                    calls.entry.host.end(instance);
                }
            }
            HostCall::Log { plugin, entry } => {
                if let Some(plugin) = self.entry(plugin) {
                    plugin.host.log(entry);
                }
            }
        }
        Ok(())
    }

    fn entry(&self, plugin: u64) -> Option<Arc<PluginEntry>> {
        self.registry.lock().get(&plugin)?.upgrade()
    }

    fn id(&self, instance: InstanceId) -> InstanceId {
        instance_of(self.generation, instance)
    }
}

/// The instance of this number in a worker of this generation.
pub(super) fn instance_of(generation: u64, InstanceId(number): InstanceId) -> InstanceId {
    InstanceId((generation << NUMBER) | (number & ((1 << NUMBER) - 1)))
}

impl Drop for WorkerSession {
    fn drop(&mut self) {
        self.answers.close();
        for ((_, instance), calls) in self.instances.drain() {
            calls.ended.cancel();
            calls.entry.host.end(instance);
        }
    }
}

/// An answer as it is sent.
fn answer_frames(id: u64, answer: std::result::Result<CapabilityAnswer, String>) -> Frames {
    let frames = Frames::message(&HostAnswer { id, answer });
    frames.unwrap_or_else(|error| {
        let answer = Err(format!("the host's answer cannot be sent: {error}"));
        // A short text can be.
        Frames::message(&HostAnswer { id, answer }).unwrap_or_default()
    })
}
