//! A plugin, as what its worker says is held against it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use futures::FutureExt as _;
use parking_lot::Mutex;
use plugin_protocol::{
    Call as _, CapabilityCall, DeviceIdentity, HostCalls, Identity, InstanceId, ServedCall,
};

/// How many questions of one plugin are under way at a time: twice as many as a worker asks, since those that it has given
/// up end a little later here.
const ASKS: usize = 256;
/// How many instances of a plugin are told apart that have called the host while they served one call. There is one.
const INSTANCES_OF_CALL: usize = 8;

/// Asks for what comes with a call, and holds nothing. No instance has this number.
const NOBODY: InstanceId = InstanceId(u64::MAX);

/// A plugin of a worker's.
pub(super) struct PluginEntry {
    pub(super) host: Arc<dyn HostCalls>,
    calls: Mutex<HashMap<u64, CallRecord>>,
    asks: AtomicUsize,
    /// Whether it has asked who the device is.
    asks_identity: AtomicBool,
}

/// A call that is under way.
struct CallRecord {
    serving: ServedCall,
    /// The instances that have called the host and said that they serve it.
    instances: Vec<InstanceId>,
}

impl PluginEntry {
    pub(super) fn new(host: Arc<dyn HostCalls>) -> Arc<PluginEntry> {
        Arc::new(PluginEntry {
            host,
            calls: Mutex::default(),
            asks: AtomicUsize::new(0),
            asks_identity: AtomicBool::new(false),
        })
    }

    /// An instance of it asks for this.
    pub(super) fn note(&self, call: &CapabilityCall) {
        if matches!(call, CapabilityCall::DeviceIdentity(_)) {
            self.asks_identity.store(true, SeqCst);
        }
    }

    /// Who the device is, where the plugin has asked for that and may have it: it comes with the next call, which then
    /// need not wait for it. Each call is told anew.
    pub(super) fn identity(&self, serving: &ServedCall) -> Option<Identity> {
        if !self.asks_identity.load(SeqCst) {
            return None;
        }
        let answer = self.host.ask(NOBODY, serving, DeviceIdentity {}.into());
        let answer = answer.now_or_never();
        self.host.end(NOBODY);
        DeviceIdentity::answer(answer?.ok()?)
    }

    /// A call begins.
    pub(super) fn begin(&self, serving: ServedCall) {
        let record = CallRecord {
            serving: serving.clone(),
            instances: Vec::new(),
        };
        self.calls.lock().insert(serving.call, record);
    }

    /// A call is over: what its instances hold goes, whether their worker says so or not.
    pub(super) fn end(&self, call: u64) {
        let ended = self.calls.lock().remove(&call);
        for instance in ended.into_iter().flat_map(|record| record.instances) {
            self.host.end(instance);
        }
    }

    /// The call that an instance says it serves, where it is under way; else none.
    pub(super) fn serving(&self, call: u64, instance: InstanceId) -> ServedCall {
        let mut calls = self.calls.lock();
        let Some(record) = calls.get_mut(&call) else {
            return ServedCall::nothing();
        };
        if !record.instances.contains(&instance) && record.instances.len() < INSTANCES_OF_CALL {
            record.instances.push(instance);
        }
        record.serving.clone()
    }

    /// Takes a place for a question; none where all are taken.
    pub(super) fn place(self: &Arc<Self>) -> Option<QuestionSlot> {
        let count = self.asks.fetch_add(1, SeqCst);
        let place = QuestionSlot(Arc::clone(self));
        (count < ASKS).then_some(place)
    }
}

/// A question's place.
pub(super) struct QuestionSlot(Arc<PluginEntry>);

impl Drop for QuestionSlot {
    fn drop(&mut self) {
        self.0.asks.fetch_sub(1, SeqCst);
    }
}
