//! Calls to the host from instances in a worker.

use std::collections::HashMap;
use std::io::Result;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use futures::FutureExt as _;
use parking_lot::Mutex;
use plugin_protocol::{CallRefusal, CapabilityAnswer, InstanceId};
use tokio_util::sync::CancellationToken;

use super::entry::PluginEntry;
use crate::budget::{CallBudget, longest_answer};
use crate::frames::{Frame, FrameKind, FrameReader, Frames, decode, invalid};
use crate::outbox::Outbox;
use crate::socket::halves;
use crate::wire::{HostAnswer, HostCall, MOST_OF_WORKER};

type Answer = std::result::Result<CapabilityAnswer, CallRefusal>;

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
        budget: CallBudget::for_worker().for_host(),
    };
    while let Some(Frame(kind, content)) = reader.next().await? {
        if kind != FrameKind::Message {
            return Err(invalid(format!("{kind:?} in place of a message")));
        }
        served.take(decode(&content)?, content.len())?;
    }
    Ok(())
}

/// What a worker's instances hold of the host. All of it is released when this is dropped.
struct WorkerSession {
    generation: u64,
    registry: Arc<Registry>,
    instances: HashMap<(u64, InstanceId), InstanceCalls>,
    answers: Arc<Outbox>,
    /// What the calls of all plugins may hold.
    budget: CallBudget,
}

struct InstanceCalls {
    entry: Arc<PluginEntry>,
    /// Ends its calls.
    ended: CancellationToken,
}

impl WorkerSession {
    /// Carries out a call that came in this many bytes.
    fn take(&mut self, call: HostCall, bytes: usize) -> Result<()> {
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
                let Some(place) = entry.place(&self.budget, bytes) else {
                    let why = "it has too many calls to the host at a time, or too large ones";
                    let answer = Err(CallRefusal::NotAllowed(why.to_owned()));
                    // If there is no room for this answer either, the caller waits until its time is over.
                    if self.answers.waiting() < ANSWERS {
                        self.answers.send(answer_frames(id, answer), None);
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
                let longest = longest_answer(&what);
                let room = entry.budget.for_answer(&self.budget, longest);
                let mut answering = Box::pin(async move {
                    let _place = place;
                    // The call begins when there is room for its answer, so that no answer waits for room.
                    let Some(room) = room.await else { return };
                    let answer = entry.host.ask(instance, &serving, what).await;
                    let frames = bounded_answer(id, answer, longest);
                    answers.send_among(ANSWERS, frames, room).await;
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

/// Encodes an answer of at most `most` bytes, or an error if it is longer.
fn bounded_answer(id: u64, answer: Answer, most: u32) -> Frames {
    let frames = answer_frames(id, answer);
    let length = frames.bytes().len();
    if u32::try_from(length).is_ok_and(|length| length <= most) {
        return frames;
    }
    let why = format!("the host's answer has {length} bytes, more than {most}");
    answer_frames(id, Err(CallRefusal::NotAllowed(why)))
}

/// Encodes an answer for sending.
fn answer_frames(id: u64, answer: Answer) -> Frames {
    let frames = Frames::message(&HostAnswer { id, answer });
    frames.unwrap_or_else(|error| {
        let why = format!("the host's answer cannot be sent: {error}");
        let answer = Err(CallRefusal::NotAllowed(why));
        // A short text can be sent.
        Frames::message(&HostAnswer { id, answer }).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use futures::future::BoxFuture;
    use plugin_protocol::{
        CapabilityCall, Handle, HostCalls, LogEntry, ServedCall, StoreKeys, StoreSet,
    };

    use super::*;
    use crate::socket::{ReadHalf, pair};

    const PLUGIN: u64 = 7;
    const PLUGINS: [u64; 3] = [PLUGIN, 8, 9];

    /// A host whose writes never end, and whose lists of keys have a megabyte.
    #[derive(Default)]
    struct SlowHost {
        lists: AtomicUsize,
    }

    impl HostCalls for SlowHost {
        fn ask(
            &self,
            _: InstanceId,
            _: &ServedCall,
            call: CapabilityCall,
        ) -> BoxFuture<'static, Answer> {
            match call {
                CapabilityCall::StoreKeys(_) => {
                    self.lists.fetch_add(1, SeqCst);
                    let keys = vec!["k".repeat(250); 4000];
                    async { Ok(CapabilityAnswer::StoreKeys(Ok(keys))) }.boxed()
                }
                _ => std::future::pending().boxed(),
            }
        }

        fn release(&self, _: InstanceId, _: Handle) {}
        fn end(&self, _: InstanceId) {}
        fn log(&self, _: LogEntry) {}
    }

    struct Fixture {
        host: Arc<SlowHost>,
        session: WorkerSession,
        _entries: Vec<Arc<PluginEntry>>,
        answers: FrameReader<ReadHalf>,
    }

    fn fixture() -> Fixture {
        let host = Arc::<SlowHost>::default();
        let entries = PLUGINS.map(|_| PluginEntry::new(Arc::clone(&host) as _));
        let registry = PLUGINS.into_iter().zip(entries.iter().map(Arc::downgrade));
        let registry: HashMap<_, _> = registry.collect();
        let (own, others) = pair().unwrap();
        let (_, write) = halves(own).unwrap();
        let (read, _) = halves(others).unwrap();
        Fixture {
            host,
            session: WorkerSession {
                generation: 1,
                registry: Arc::new(Mutex::new(registry)),
                instances: HashMap::new(),
                answers: Outbox::start(write),
                budget: CallBudget::for_worker().for_host(),
            },
            _entries: entries.to_vec(),
            answers: FrameReader::new(read, MOST_OF_WORKER * 2),
        }
    }

    fn ask(id: u64, plugin: u64, what: CapabilityCall) -> HostCall {
        HostCall::Ask {
            id,
            plugin,
            instance: InstanceId(1),
            call: 1,
            what,
        }
    }

    /// A call that comes in as many bytes as one may have.
    fn largest(id: u64, plugin: u64) -> HostCall {
        let set = StoreSet {
            key: "key".to_owned(),
            value: vec![7; MOST_OF_WORKER - 1000],
        };
        ask(id, plugin, set.into())
    }

    impl Fixture {
        /// Returns the number of the first call that is refused because of its arguments.
        async fn first_refused(&mut self) -> u64 {
            let refused = self.answers.message::<HostAnswer>().await.unwrap();
            let refused = refused.unwrap();
            let why = refused.answer.unwrap_err().to_string();
            assert!(why.contains("too large"), "{why}");
            refused.id
        }
    }

    #[tokio::test]
    async fn a_worker_that_sends_more_arguments_than_it_may_is_refused() {
        let mut fixture = fixture();
        for id in 1..=9 {
            let call = largest(id, PLUGIN);
            fixture.session.take(call, MOST_OF_WORKER).unwrap();
        }
        assert_eq!(fixture.first_refused().await, 9);
    }

    #[tokio::test]
    async fn plugins_whose_arguments_are_too_large_together_are_refused() {
        let mut fixture = fixture();
        // None of them has more than a plugin may have by itself, which is 8.
        let plugins = PLUGINS.into_iter().cycle();
        for (id, plugin) in (1..=17).zip(plugins) {
            let call = largest(id, plugin);
            fixture.session.take(call, MOST_OF_WORKER).unwrap();
        }
        assert_eq!(fixture.first_refused().await, 17);
    }

    #[tokio::test]
    async fn no_more_long_answers_are_made_than_there_is_room_for() {
        let mut fixture = fixture();
        for id in 1..=30 {
            let keys = StoreKeys {
                prefix: String::new(),
            };
            fixture
                .session
                .take(ask(id, PLUGIN, keys.into()), 10)
                .unwrap();
        }
        assert_eq!(fixture.host.lists.load(SeqCst), 10);
        for read in 1..=30 {
            let answer = fixture.answers.message::<HostAnswer>().await.unwrap();
            assert!(answer.unwrap().answer.is_ok());
            // One is in the reader's hands, and one is on its way.
            assert!(fixture.host.lists.load(SeqCst) <= read + 11);
        }
    }
}
