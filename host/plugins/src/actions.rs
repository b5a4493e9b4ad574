//! Typed actions: provided by one plugin, and requested by other plugins or the host itself.
//!
//! Each call runs in a new instance of the provider, in a separate task: its CPU time counts against the provider and
//! not its caller, and it finishes what it has begun even if its caller is gone. A call that still waits for a place
//! ends with its caller. Providers change with the plugins; a call goes to the provider at the time when it begins.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use plugin_manifest::Action;
use plugin_protocol::text::{LONGEST, cut, one_line};
use plugin_protocol::{
    ACTION_BYTES, ActionAnswer, ActionCall, Failure, Origin, OwnActionError, OwnCall,
};
use tokio::time::{Instant, timeout_at};

use crate::loaded::LoadedPlugin;

/// How many plugins can wait for each other. Each occupies a place in the pool, and a circle of them would occupy all
/// places.
pub(crate) const DEPTH: u32 = 4;

/// The providers of actions. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Actions(Arc<RwLock<Providers>>);

#[derive(Default)]
struct Providers {
    /// Providers of the actions that only one plugin of a device provides.
    by_action: BTreeMap<Action, Weak<LoadedPlugin>>,
    /// Providers of their own actions, by the plugin's name.
    by_name: BTreeMap<String, Weak<LoadedPlugin>>,
}

/// Why an action was not performed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("no plugin of this device provides `{0}`")]
    NoProvider(&'static str),
    /// The provider broke the rules or exceeded its limits, or was not called; the text is for the reader of the
    /// answer.
    #[error("{0}")]
    Failed(String),
}

impl Actions {
    /// Sets the providers that are called from now on. Calls that are under way continue.
    pub(crate) fn set_providers<'a>(
        &self,
        providers: &BTreeMap<Action, Arc<LoadedPlugin>>,
        plugins: impl Iterator<Item = &'a Arc<LoadedPlugin>>,
    ) {
        let by_action = providers
            .iter()
            .map(|(action, plugin)| (*action, Arc::downgrade(plugin)));
        let by_name = plugins
            .filter(|plugin| !plugin.manifest.actions.is_empty())
            .map(|plugin| (plugin.manifest.name.clone(), Arc::downgrade(plugin)));
        *self.0.write() = Providers {
            by_action: by_action.collect(),
            by_name: by_name.collect(),
        };
    }

    /// Returns the plugin of this name if it currently provides this action of its own.
    fn own_provider(&self, plugin: &str, action: &str) -> Option<Arc<LoadedPlugin>> {
        let providers = self.0.read();
        let provider = providers.by_name.get(plugin)?.upgrade()?;
        provider
            .manifest
            .actions
            .contains(action)
            .then_some(provider)
    }

    /// Returns the current provider of `action`.
    pub(crate) fn provider(&self, action: Action) -> Option<Arc<LoadedPlugin>> {
        let providers = self.0.read();
        providers.by_action.get(&action)?.upgrade()
    }

    /// Calls the provider of the action, within the provider's limits.
    pub(crate) async fn call(
        &self,
        origin: Origin,
        call: ActionCall,
    ) -> Result<ActionAnswer, ActionError> {
        let action = call.action();
        let none = ActionError::NoProvider(action.into());
        let provider = self.provider(action).ok_or(none)?;
        perform(&provider, origin, call).await
    }

    /// Calls an action of a plugin's own by its full name, such as `acme-rails/set`, within that plugin's limits. Any
    /// name and input are accepted, and the texts of the answer are bounded.
    pub(crate) async fn call_own(
        &self,
        origin: Origin,
        action: &str,
        input: Vec<u8>,
    ) -> Result<Vec<u8>, OwnActionError> {
        if input.len() > ACTION_BYTES {
            let why = format!("the input has more than {} KiB", ACTION_BYTES >> 10);
            return Err(OwnActionError::Invalid(why));
        }
        let provider = action.split_once('/').and_then(|(plugin, name)| {
            let provider = self.own_provider(plugin, name)?;
            Some((provider, name))
        });
        let Some((provider, name)) = provider else {
            return Err(OwnActionError::Unavailable(format!(
                "no plugin of this device provides `{}`",
                one_line(action, LONGEST)
            )));
        };
        let call = ActionCall::Own(OwnCall {
            name: name.to_owned(),
            input,
        });
        match perform(&provider, origin, call).await {
            Ok(ActionAnswer::Own(Ok(output))) if output.len() <= ACTION_BYTES => Ok(output),
            Ok(ActionAnswer::Own(Err(why))) => Err(OwnActionError::Refused(cut(why))),
            Ok(_) => Err(OwnActionError::Failed(
                "it answered another call".to_owned(),
            )),
            Err(error) => Err(OwnActionError::Failed(error.to_string())),
        }
    }
}

/// Calls the plugin to perform an action, within its limits, in a separate task once there is a place for the call.
pub(crate) async fn perform(
    plugin: &Arc<LoadedPlugin>,
    origin: Origin,
    call: ActionCall,
) -> Result<ActionAnswer, ActionError> {
    if origin.depth > DEPTH {
        let what = format!("plugins wait for each other {DEPTH} deep");
        return Err(ActionError::Failed(what));
    }
    let timed = plugin.counters.called();
    let end = Instant::now() + plugin.limits.wall;
    // The task begins after that: one that waits would keep the call's input after its caller has left, and a caller
    // that leaves again and again would fill the memory. So there are no more tasks than the plugin has places.
    let permit = within_limit(plugin, end, plugin.permit()).await?;
    let plugin = Arc::clone(plugin);
    let task = tokio::spawn(async move {
        let _call = (timed, permit);
        within_limit(&plugin, end, plugin.act(origin, call)).await
    });
    task.await
        .unwrap_or_else(|_| Err(ActionError::Failed("the supervisor is stopping".to_owned())))
}

/// Returns the result of a part of a call that must end by `end`, and records its failure.
async fn within_limit<R>(
    plugin: &LoadedPlugin,
    end: Instant,
    part: impl Future<Output = Result<R, Failure>>,
) -> Result<R, ActionError> {
    let limit = plugin.limits.wall;
    let outcome = timeout_at(end, part).await;
    outcome
        .unwrap_or(Err(Failure::Wall { limit }))
        .map_err(|failure| {
            plugin.failed(&failure);
            ActionError::Failed(failure.message(&plugin.manifest.name))
        })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use futures::FutureExt as _;
    use plugin_protocol::CallerScope;
    use tokio::runtime::Handle;

    use super::*;
    use crate::loaded::tests::{FakeGuest, loaded_plugin};
    use crate::provision::tests::Fixture;

    /// A plugin with one place.
    #[tokio::test(start_paused = true)]
    async fn a_caller_that_leaves_while_it_waits_for_a_place_leaves_nothing_behind() {
        let guest = Arc::<FakeGuest>::default();
        let plugin = loaded_plugin(Fixture::new(""), Arc::clone(&guest));
        let call = || {
            let origin = Origin::outside(CallerScope::DeviceKey);
            let own = OwnCall {
                name: "set".to_owned(),
                input: vec![b' '; ACTION_BYTES],
            };
            perform(&plugin, origin, ActionCall::Own(own))
        };
        let until_ended = async |count: usize| {
            while guest.ended.load(SeqCst) < count {
                tokio::task::yield_now().await;
            }
        };
        // The first call has the place, and continues without its caller.
        assert!(call().now_or_never().is_none());
        for _ in 0..100 {
            assert!(call().now_or_never().is_none());
        }
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
        let busy = call().await.unwrap_err().to_string();
        assert!(
            busy.starts_with("there is no room for plugin `acme` now"),
            "{busy}"
        );

        guest.ends.add_permits(1);
        until_ended(1).await;
        // The others do not take their turn now.
        guest.ends.add_permits(1);
        assert_eq!(call().await, Ok(ActionAnswer::Own(Ok(Vec::new()))));
        assert_eq!(guest.ended.load(SeqCst), 2);
        assert_eq!(plugin.counters.read(), (103, 0, None));
    }
}
