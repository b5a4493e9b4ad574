//! The record of a plugin against which its worker's claims are checked.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use futures::FutureExt as _;
use parking_lot::Mutex;
use plugin_protocol::{
    Call as _, CapabilityCall, DeviceIdentity, HostCalls, Identity, InstanceId, ServedCall,
};

use crate::budget::{BudgetPart, CallBudget};

/// How many questions of one plugin can be under way at a time: twice as many as a worker asks, since those that it has
/// cancelled end a little later here.
const ASKS: usize = 256;
/// How many instances of a plugin are distinguished that have called the host while serving the same call. There should
/// be one.
const INSTANCES_OF_CALL: usize = 8;

/// The number for queries whose results are sent with a call; it holds nothing. No instance has this number.
const NOBODY: InstanceId = InstanceId(u64::MAX);

/// A plugin in a worker.
pub(super) struct PluginEntry {
    pub(super) host: Arc<dyn HostCalls>,
    calls: Mutex<HashMap<u64, CallRecord>>,
    asks: AtomicUsize,
    /// What its calls may hold.
    pub(super) budget: CallBudget,
    /// Whether it has asked for the device's identity.
    asks_identity: AtomicBool,
}

/// A call that is under way.
struct CallRecord {
    serving: ServedCall,
    /// The instances that have called the host and claimed to serve it.
    instances: Vec<InstanceId>,
}

impl PluginEntry {
    pub(super) fn new(host: Arc<dyn HostCalls>) -> Arc<PluginEntry> {
        Arc::new(PluginEntry {
            host,
            calls: Mutex::default(),
            asks: AtomicUsize::new(0),
            budget: CallBudget::for_plugin().for_host(),
            asks_identity: AtomicBool::new(false),
        })
    }

    /// Notes what an instance of the plugin has asked for.
    pub(super) fn note(&self, call: &CapabilityCall) {
        if matches!(call, CapabilityCall::DeviceIdentity(_)) {
            self.asks_identity.store(true, SeqCst);
        }
    }

    /// Returns the device's identity if the plugin has asked for it and may have it: it is sent with the next call,
    /// which then need not wait for it. Each call gets the current one.
    pub(super) fn identity(&self, serving: &ServedCall) -> Option<Identity> {
        if !self.asks_identity.load(SeqCst) {
            return None;
        }
        let answer = self.host.ask(NOBODY, serving, DeviceIdentity {}.into());
        let answer = answer.now_or_never();
        self.host.end(NOBODY);
        DeviceIdentity::answer(answer?.ok()?)
    }

    /// Records that a call begins.
    pub(super) fn begin(&self, serving: ServedCall) {
        let record = CallRecord {
            serving: serving.clone(),
            instances: Vec::new(),
        };
        self.calls.lock().insert(serving.call, record);
    }

    /// Records that a call is over: everything that its instances hold is released, whether their worker reports it or
    /// not.
    pub(super) fn end(&self, call: u64) {
        let ended = self.calls.lock().remove(&call);
        for instance in ended.into_iter().flat_map(|record| record.instances) {
            self.host.end(instance);
        }
    }

    /// Returns the call that an instance claims to serve if it is under way; otherwise no call.
    pub(super) fn serving(&self, call: u64, instance: InstanceId) -> ServedCall {
        let mut calls = self.calls.lock();
        let Some(record) = calls.get_mut(&call) else {
            return ServedCall::placeholder();
        };
        if !record.instances.contains(&instance) && record.instances.len() < INSTANCES_OF_CALL {
            record.instances.push(instance);
        }
        record.serving.clone()
    }

    /// Takes a place for a question of this many bytes, which also count in the budget of all plugins; returns `None` if
    /// there is none.
    pub(super) fn place(self: &Arc<Self>, all: &CallBudget, bytes: usize) -> Option<QuestionSlot> {
        let part = self
            .budget
            .for_arguments(all, u32::try_from(bytes).ok()?)
            .ok()?;
        let count = self.asks.fetch_add(1, SeqCst);
        let place = QuestionSlot {
            entry: Arc::clone(self),
            _part: part,
        };
        (count < ASKS).then_some(place)
    }
}

/// A question's place.
pub(super) struct QuestionSlot {
    entry: Arc<PluginEntry>,
    _part: BudgetPart,
}

impl Drop for QuestionSlot {
    fn drop(&mut self) {
        self.entry.asks.fetch_sub(1, SeqCst);
    }
}
