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
    CallRefusal, CapabilityAnswer, CapabilityCall, Handle, HostCalls, Identity, InstanceId,
    LogEntry, ServedCall,
};
use tokio::sync::oneshot;

use crate::budget::{BudgetPart, CallBudget, longest_answer};
use crate::frames::{FrameReader, Frames};
use crate::outbox::Outbox;
use crate::socket::{ReadHalf, halves};
use crate::wire::{HostAnswer, HostCall, MOST_OF_HOST, MOST_OF_WORKER};

type Answer = std::result::Result<CapabilityAnswer, CallRefusal>;

/// The connection to the host.
pub(super) struct HostLink {
    to_host: Arc<Outbox>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    /// The device's identity, if the host has sent it with a call.
    identities: Mutex<HashMap<u64, Identity>>,
    /// The instances that have asked for something.
    callers: Mutex<HashSet<InstanceId>>,
    latest: AtomicU64,
    /// What the calls of all plugins may hold.
    budget: CallBudget,
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
            budget: CallBudget::for_worker(),
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
    pub(super) fn for_plugin(self: &Arc<Self>, plugin: u64) -> Arc<dyn HostCalls> {
        Arc::new(RemoteHost {
            link: Arc::clone(self),
            plugin,
            budget: CallBudget::for_plugin(),
        })
    }

    /// Sends something to the host that is not urgent.
    fn send_later(&self, call: &HostCall) {
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
    /// What its calls may hold.
    budget: CallBudget,
}

impl RemoteHost {
    /// Encodes a call, and takes its part of the plugin's budget. A call that finds no room is refused instead of
    /// waiting, since it would wait with its arguments.
    fn message(&self, call: &HostCall) -> std::result::Result<(Frames, BudgetPart), CallRefusal> {
        let frames = Frames::message(call).map_err(|error| error.to_string())?;
        let length = frames.bytes().len();
        let too_long =
            || format!("its call to the host has {length} bytes, more than {MOST_OF_WORKER}");
        let bytes = u32::try_from(length).ok();
        let bytes = bytes.filter(|_| length <= MOST_OF_WORKER);
        let bytes = bytes.ok_or_else(too_long)?;
        let part = self.budget.for_arguments(&self.link.budget, bytes);
        Ok((frames, part.map_err(CallRefusal::Busy)?))
    }
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
        let longest = longest_answer(&what);
        let id = self.link.latest.fetch_add(1, Relaxed) + 1;
        let call = HostCall::Ask {
            id,
            plugin: self.plugin,
            instance,
            call: serving.call,
            what,
        };
        // Encoded before anything waits: of the call itself nothing is kept.
        let (frames, part) = match self.message(&call) {
            Ok(message) => message,
            Err(refusal) => return ready(Err(refusal)).boxed(),
        };
        let link = Arc::clone(&self.link);
        let room = self.budget.for_answer(&link.budget, longest);
        async move {
            let ended = || "the host is gone".to_owned();
            let _room = room.await.ok_or_else(ended)?;
            let (sender, answer) = oneshot::channel();
            link.waiting.lock().insert(id, sender);
            let _waiting = PendingAnswer { link: &link, id };
            // A call that is cancelled counts until the host has read it.
            link.to_host.send(frames, Some(Arc::clone(&part)));
            if link.to_host.is_closed() {
                return Err(ended().into());
            }
            let answer = answer.await.map_err(|_| ended())?;
            drop(part);
            answer
        }
        .boxed()
    }

    fn release(&self, instance: InstanceId, handle: Handle) {
        let plugin = self.plugin;
        self.link.send_later(&HostCall::Release {
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
        self.link.send_later(&HostCall::End { plugin, instance });
    }

    fn log(&self, entry: LogEntry) {
        let plugin = self.plugin;
        self.link.send_later(&HostCall::Log { plugin, entry });
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

#[cfg(test)]
mod tests {
    use plugin_protocol::{ALL_HOST_CALL_BYTES, Bound, HOST_CALL_BYTES, StoreKeys, StoreSet};

    use super::*;
    use crate::socket::pair;

    /// The number of calls with a megabyte of arguments that one plugin can have at a time.
    const LARGE: usize = 4;
    /// The number of calls with the longest answers.
    const LONG_ANSWERS: usize = 10;

    fn connected() -> (Arc<HostLink>, FrameReader<ReadHalf>, Arc<Outbox>) {
        let (own, others) = pair().unwrap();
        let (read, write) = halves(others).unwrap();
        let reader = FrameReader::new(read, MOST_OF_WORKER);
        (HostLink::start(own).unwrap(), reader, Outbox::start(write))
    }

    fn set(host: &Arc<dyn HostCalls>, value: usize) -> BoxFuture<'static, Answer> {
        let set = StoreSet {
            key: "key".to_owned(),
            value: vec![7; value],
        };
        host.ask(InstanceId(1), &ServedCall::placeholder(), set.into())
    }

    fn keys(host: &Arc<dyn HostCalls>) -> BoxFuture<'static, Answer> {
        let prefix = String::new();
        host.ask(
            InstanceId(1),
            &ServedCall::placeholder(),
            StoreKeys { prefix }.into(),
        )
    }

    /// Almost the longest message.
    const MEGABYTE: usize = MOST_OF_WORKER - 1000;
    const REFUSED: Option<Answer> = Some(Err(CallRefusal::Busy(Bound::HostCalls(HOST_CALL_BYTES))));

    #[tokio::test]
    async fn a_call_whose_arguments_find_no_room_is_refused_at_once_and_others_are_not() {
        let (link, _host, _answers) = connected();
        let (plugin, other) = (link.for_plugin(1), link.for_plugin(2));
        let mut begun: Vec<_> = (0..LARGE).map(|_| set(&plugin, MEGABYTE)).collect();
        for _ in 0..10 {
            assert_eq!(set(&plugin, MEGABYTE).now_or_never(), REFUSED);
        }
        assert_eq!(set(&other, MEGABYTE).now_or_never(), None);
        // Small ones still fit.
        assert_eq!(keys(&plugin).now_or_never(), None);
        begun.pop();
        assert_eq!(set(&plugin, MEGABYTE).now_or_never(), None);
    }

    #[tokio::test]
    async fn two_plugins_with_many_arguments_leave_no_room_for_a_third_and_give_it_back() {
        let (link, mut host, _answers) = connected();
        let plugins = [1, 2].map(|number| link.for_plugin(number));
        let begin = |plugin| {
            (0..LARGE)
                .map(|_| set(plugin, MEGABYTE))
                .collect::<Vec<_>>()
        };
        let begun = plugins.each_ref().map(begin);
        let third = link.for_plugin(3);
        let refused = CallRefusal::Busy(Bound::AllHostCalls(ALL_HOST_CALL_BYTES));
        assert_eq!(set(&third, MEGABYTE).now_or_never(), Some(Err(refused)));
        drop(begun);
        assert_eq!(set(&third, MEGABYTE).now_or_never(), None);
        let read = host.message::<HostCall>().await.unwrap();
        assert!(
            matches!(read, Some(HostCall::Ask { plugin: 3, .. })),
            "{read:?}"
        );
    }

    /// Otherwise a plugin that begins and cancels calls would fill the queue.
    #[tokio::test]
    async fn the_arguments_of_a_cancelled_call_count_until_they_are_sent() {
        let (link, mut host, _answers) = connected();
        let plugin = link.for_plugin(1);
        for _ in 0..LARGE {
            // Cancelled as soon as it has begun.
            assert_eq!(set(&plugin, MEGABYTE).now_or_never(), None);
        }
        assert_eq!(set(&plugin, MEGABYTE).now_or_never(), REFUSED);
        for _ in 0..LARGE {
            let read = host.message::<HostCall>().await.unwrap();
            assert!(matches!(read, Some(HostCall::Ask { .. })), "{read:?}");
        }
        // All are written, though their task may not have noticed yet.
        while link.to_host.waiting() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(set(&plugin, MEGABYTE).now_or_never(), None);
    }

    #[tokio::test]
    async fn a_call_is_sent_once_there_is_room_for_its_answer() {
        let (link, mut host, answers) = connected();
        let plugin = link.for_plugin(1);
        let begun = (0..2 * LONG_ANSWERS).map(|_| tokio::spawn(keys(&plugin)));
        let begun: Vec<_> = begun.collect();
        for number in 0..2 * LONG_ANSWERS {
            let read = host.message::<HostCall>().await.unwrap();
            let Some(HostCall::Ask { id, .. }) = read else {
                panic!("{read:?}");
            };
            let under_way = link.waiting.lock().len();
            assert!(under_way <= LONG_ANSWERS, "{number}: {under_way}");
            let keys = vec!["a".repeat(1000); 1000];
            let answer = Ok(CapabilityAnswer::StoreKeys(Ok(keys)));
            answers.send(Frames::message(&HostAnswer { id, answer }).unwrap(), None);
        }
        for call in begun {
            assert!(call.await.unwrap().is_ok());
        }
    }
}
