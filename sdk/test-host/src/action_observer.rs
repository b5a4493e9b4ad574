//! Lets a tool see when the device has called a plugin for an event or an action, and what the call has used.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{
    ActionAnswer, ActionCall, Blueprint, CallUsage, Failure, GuestCode, GuestPlugin, GuestRequest,
    HostCalls, Outcome, ServedCall, UsedResources,
};

use crate::wrapped_runtime::PluginWrapper;

/// Sees the calls of plugins for events and actions.
pub trait ActionObserver: Send + Sync + 'static {
    /// Sees that a call has ended.
    fn ended(&self, call: &EndedAction);
}

/// A call for an event or an action that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedAction {
    /// The event or action with its function, for example `event schedule` or `action set`.
    pub name: String,
    /// The result.
    pub end: ActionEnd,
    /// The time since the call.
    pub time: Duration,
    /// What the call has used; `None` if no instance has served it.
    pub used: Option<UsedResources>,
}

/// The result of a call for an event or an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionEnd {
    /// The plugin has answered; the answer may be an error of its own.
    Answered,
    /// The plugin has failed: it crashed, or exceeded a limit.
    Failed,
    /// The device has ended the call, for example because it took too long.
    Cancelled,
}

/// Has an observer see the calls of each plugin.
pub(crate) struct ObserveActions(pub(crate) Arc<dyn ActionObserver>);

impl PluginWrapper for ObserveActions {
    fn plugin(
        &self,
        code: &dyn GuestCode,
        blueprint: Blueprint,
        host: Arc<dyn HostCalls>,
    ) -> Arc<dyn GuestPlugin> {
        Arc::new(ObservedPlugin {
            plugin: code.plugin(blueprint, host),
            observer: Arc::clone(&self.0),
        })
    }
}

struct ObservedPlugin {
    plugin: Arc<dyn GuestPlugin>,
    observer: Arc<dyn ActionObserver>,
}

impl GuestPlugin for ObservedPlugin {
    fn call(
        &self,
        serving: ServedCall,
        request: GuestRequest,
    ) -> BoxFuture<'_, Result<Outcome, Failure>> {
        self.plugin.call(serving, request)
    }

    fn act(
        &self,
        serving: ServedCall,
        call: ActionCall,
    ) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
        let usage = Arc::<CallUsage>::default();
        let mut observed = ObservedCall {
            observer: Arc::clone(&self.observer),
            name: name_of(&call),
            started: Instant::now(),
            usage: Arc::clone(&usage),
            end: ActionEnd::Cancelled,
        };
        let serving = ServedCall {
            usage: Some(usage),
            ..serving
        };
        let acting = self.plugin.act(serving, call);
        async move {
            let result = acting.await;
            observed.end_with(&result);
            result
        }
        .boxed()
    }
}

/// A call under way. The device ends a call by dropping it.
struct ObservedCall {
    observer: Arc<dyn ActionObserver>,
    name: String,
    started: Instant,
    usage: Arc<CallUsage>,
    end: ActionEnd,
}

impl ObservedCall {
    /// Records the result. In a method, because a closure that only assigned the field would have a copy of it.
    fn end_with(&mut self, result: &Result<ActionAnswer, Failure>) {
        self.end = match result {
            Ok(_) => ActionEnd::Answered,
            Err(_) => ActionEnd::Failed,
        };
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        self.observer.ended(&EndedAction {
            name: std::mem::take(&mut self.name),
            end: self.end,
            time: self.started.elapsed(),
            used: self.usage.read(),
        });
    }
}

/// Returns the name of what a plugin is called for, as it is written in `plugin.toml`.
fn name_of(call: &ActionCall) -> String {
    match call {
        ActionCall::Event(event) => format!("event {}", event.kind()),
        ActionCall::Own(own) => format!("action {}", own.name),
        ActionCall::Identify
        | ActionCall::Proxy(_)
        | ActionCall::BootConfig(_)
        | ActionCall::Os(_) => format!("action {}", call.action()),
    }
}

#[cfg(test)]
mod tests {
    use futures::future::{pending, ready};
    use parking_lot::Mutex;
    use plugin_protocol::{CallerScope, EventCall, Limits, Origin, OwnCall, PluginEvent};

    use super::*;

    /// A plugin that uses memory, fails in the action `fail` and never ends the action `wait`.
    struct FakePlugin;

    impl GuestPlugin for FakePlugin {
        fn call(&self, _: ServedCall, _: GuestRequest) -> BoxFuture<'_, Result<Outcome, Failure>> {
            pending().boxed()
        }

        fn act(
            &self,
            serving: ServedCall,
            call: ActionCall,
        ) -> BoxFuture<'_, Result<ActionAnswer, Failure>> {
            let usage = serving.usage.unwrap();
            usage.begin(&limits());
            usage.record_memory(3);
            match call {
                ActionCall::Own(own) if own.name == "wait" => pending().boxed(),
                ActionCall::Own(own) if own.name == "fail" => ready(Err(Failure::Lost)).boxed(),
                _ => ready(Ok(ActionAnswer::Own(Err("no such rail".to_owned())))).boxed(),
            }
        }
    }

    #[derive(Default)]
    struct EndedActions(Mutex<Vec<EndedAction>>);

    impl ActionObserver for EndedActions {
        fn ended(&self, call: &EndedAction) {
            self.0.lock().push(call.clone());
        }
    }

    fn limits() -> Limits {
        Limits {
            memory: 16,
            cpu: Duration::from_secs(1),
            wall: Duration::from_secs(10),
            body: 1,
            concurrency: 1,
        }
    }

    #[test]
    fn each_call_for_an_event_or_an_action_is_seen_once_with_its_result_and_what_it_used() {
        let ended = Arc::<EndedActions>::default();
        let plugin = ObservedPlugin {
            plugin: Arc::new(FakePlugin),
            observer: Arc::clone(&ended) as Arc<dyn ActionObserver>,
        };
        let own = |name: &str| {
            ActionCall::Own(OwnCall {
                name: name.to_owned(),
                input: Vec::new(),
            })
        };
        let start = EventCall::Notice(PluginEvent::Start(true));
        for (call, name, end) in [
            (own("set"), "action set", ActionEnd::Answered),
            (own("fail"), "action fail", ActionEnd::Failed),
            (own("wait"), "action wait", ActionEnd::Cancelled),
            (ActionCall::Identify, "action identify", ActionEnd::Answered),
            (ActionCall::Event(start), "event start", ActionEnd::Answered),
        ] {
            let serving = ServedCall::next(Origin::outside(CallerScope::DeviceKey));
            // A call that waits is dropped.
            let _ = plugin.act(serving, call).now_or_never();
            let seen = std::mem::take(&mut *ended.0.lock());
            assert_eq!(seen.len(), 1, "{seen:?}");
            assert_eq!((&*seen[0].name, seen[0].end), (name, end));
            let used = seen[0].used.clone().unwrap();
            assert_eq!((used.memory, used.limits), (3, limits()));
        }
    }
}
