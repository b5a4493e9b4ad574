//! What instances in a worker ask of the host.

use std::collections::HashMap;
use std::io::Result;
use std::sync::{Arc, Mutex, Weak};

use plugin_protocol::InstanceId;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::entry::PluginEntry;
use super::lock;
use crate::frames::{FrameReader, Frames, invalid};
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
pub(super) async fn serve(
    generation: u64,
    registry: Arc<Registry>,
    socket: UnixStream,
) -> Result<()> {
    let (read, write) = socket.into_split();
    let mut reader = FrameReader::new(read, MOST_OF_WORKER);
    let (answers, waiting) = mpsc::channel(ANSWERS);
    let mut served = Served {
        generation,
        registry,
        instances: HashMap::new(),
        answers,
        writer: CancellationToken::new(),
    };
    tokio::spawn(write_answers(waiting, write, served.writer.clone()));
    while let Some(call) = reader.message::<HostCall>().await? {
        served.take(call)?;
    }
    Ok(())
}

/// What a worker's instances have of the host. With this all of it goes.
struct Served {
    generation: u64,
    registry: Arc<Registry>,
    instances: HashMap<(u64, InstanceId), InstanceCalls>,
    answers: mpsc::Sender<HostAnswer>,
    writer: CancellationToken,
}

struct InstanceCalls {
    entry: Arc<PluginEntry>,
    /// Ends what it asks for.
    ended: CancellationToken,
}

impl Served {
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
                    let answer = Err("it asks the host for too much at a time".to_owned());
                    // Where no answer fits either, whoever asked waits until its time is over.
                    let _ = self.answers.try_send(HostAnswer { id, answer });
                    return Ok(());
                };
                let serving = entry.serving(call, instance);
                let calls = self.instances.entry((plugin, instance));
                let calls = calls.or_insert_with(|| InstanceCalls {
                    entry: Arc::clone(&entry),
                    ended: CancellationToken::new(),
                });
                let (answers, ended) = (self.answers.clone(), calls.ended.clone());
                let asked = entry.host.ask(instance, &serving, what);
                tokio::spawn(async move {
                    let _place = place;
                    let answering = async {
                        let answer = asked.await;
                        // Where the worker is gone nobody waits for it.
                        let _ = answers.send(HostAnswer { id, answer }).await;
                    };
                    ended.run_until_cancelled(answering).await;
                });
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
        lock(&self.registry).get(&plugin)?.upgrade()
    }

    fn id(&self, instance: InstanceId) -> InstanceId {
        instance_of(self.generation, instance)
    }
}

/// The instance of this number in a worker of this generation.
pub(super) fn instance_of(generation: u64, InstanceId(number): InstanceId) -> InstanceId {
    InstanceId((generation << NUMBER) | (number & ((1 << NUMBER) - 1)))
}

impl Drop for Served {
    fn drop(&mut self) {
        self.writer.cancel();
        for ((_, instance), calls) in self.instances.drain() {
            calls.ended.cancel();
            calls.entry.host.end(instance);
        }
    }
}

async fn write_answers(
    mut answers: mpsc::Receiver<HostAnswer>,
    mut socket: OwnedWriteHalf,
    ended: CancellationToken,
) {
    let writing = async {
        while let Some(answer) = answers.recv().await {
            let Ok(frames) = Frames::message(&answer) else {
                continue;
            };
            if socket.write_all(frames.bytes()).await.is_err() {
                return;
            }
        }
    };
    ended.run_until_cancelled(writing).await;
}
