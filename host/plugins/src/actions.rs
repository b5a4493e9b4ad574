//! Typed actions: provided by one plugin, and requested by other plugins or the host itself.
//!
//! Each call runs in a new instance of the provider, in a separate task: its CPU time counts against the provider and
//! not its caller, and it finishes what it has begun even if its caller is gone. Providers change with the plugins; a
//! call goes to the provider at the time when it begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use plugin_manifest::Action;
use plugin_protocol::{
    ACTION_BYTES, ActionAnswer, ActionCall, Failure, Origin, OwnActionError, OwnCall,
};

use crate::loaded::LoadedPlugin;
use crate::text::{LONGEST, cut, one_line};

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

/// Calls the plugin to perform an action, within its limits, in a separate task.
pub(crate) async fn perform(
    plugin: &Arc<LoadedPlugin>,
    origin: Origin,
    call: ActionCall,
) -> Result<ActionAnswer, ActionError> {
    if origin.depth > DEPTH {
        let what = format!("plugins wait for each other {DEPTH} deep");
        return Err(ActionError::Failed(what));
    }
    let plugin = Arc::clone(plugin);
    let task = tokio::spawn(async move {
        let _timed = plugin.counters.called();
        let limit = plugin.limits.wall;
        let work = async {
            let _permit = plugin.permit().await?;
            plugin.act(origin, call).await
        };
        let outcome = tokio::time::timeout(limit, work)
            .await
            .unwrap_or(Err(Failure::Wall { limit }));
        outcome.map_err(|failure| {
            let name = plugin.manifest.name.as_str();
            plugin.failed(&failure);
            ActionError::Failed(failure.message(name))
        })
    });
    task.await
        .unwrap_or_else(|_| Err(ActionError::Failed("the supervisor is stopping".to_owned())))
}
