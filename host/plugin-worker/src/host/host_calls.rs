//! Calls to the host from instances in a worker.

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

/// How many instances of a worker can have made calls at a time: more than it has places.
const INSTANCES: usize = 8192;
/// How many answers can wait for a worker to read them.
const ANSWERS: usize = 64;
/// How many bits of an instance's number are chosen by the worker. The other bits are the worker's generation, so an
/// instance of one that ended is never mistaken for one of the next.
const NUMBER: u32 = 40;

/// Carries out calls from instances until the worker ends. A message that no proper worker would send is an error.
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

/// What a worker's instances hold of the host. All of it is released when this is dropped.
struct WorkerSession {
    generation: u64,
    registry: Arc<Registry>,
    instances: HashMap<(u64, InstanceId), InstanceCalls>,
    answers: Arc<Outbox>,
}

struct InstanceCalls {
    entry: Arc<PluginEntry>,
    /// Ends its calls.
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
                    // It was unloaded in the meantime.
                    return Ok(());
                };
                if self.instances.len() >= INSTANCES {
                    return Err(invalid(format!("more than {INSTANCES} instances")));
                }
                let Some(place) = entry.place() else {
                    let answer = Err("it has too many calls to the host at a time".to_owned());
                    // If there is no room for this answer either, the caller waits until its time is over.
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
                // Most answers are available at once, and need no task.
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

/// Returns the instance with this number in a worker of this generation.
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

/// Encodes an answer for sending.
fn answer_frames(id: u64, answer: std::result::Result<CapabilityAnswer, String>) -> Frames {
    let frames = Frames::message(&HostAnswer { id, answer });
    frames.unwrap_or_else(|error| {
        let answer = Err(format!("the host's answer cannot be sent: {error}"));
        // A short text can be sent.
        Frames::message(&HostAnswer { id, answer }).unwrap_or_default()
    })
}
