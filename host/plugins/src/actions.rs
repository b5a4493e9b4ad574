//! Typed actions: what one plugin provides and others, or the host itself, have done.
//!
//! Each call runs in a fresh instance of the provider's, in a task of its own: its CPU time is the
//! provider's and not its caller's, and it ends what it has begun though its caller be gone. Providers
//! change with the plugins; a call goes to who provides the action when it begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use plugin_protocol::{ActionAnswer, ActionCall, Failure, Origin};

use crate::loaded::LoadedPlugin;
use plugin_manifest::Action;

/// How many plugins can wait for each other. Each holds a place of the pool, and a circle of them would
/// take all.
pub(crate) const DEPTH: u32 = 4;

/// Who provides what. Cloning shares it.
#[derive(Clone, Default)]
pub(crate) struct Actions(Arc<RwLock<Providers>>);

#[derive(Default)]
struct Providers {
    /// Of the actions that one plugin of a device does.
    by_action: BTreeMap<Action, Weak<LoadedPlugin>>,
    /// Of actions of their own, by the plugin's name.
    by_name: BTreeMap<String, Weak<LoadedPlugin>>,
}

/// Why an action was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ActionError {
    #[error("no plugin of this device provides `{0}`")]
    NoProvider(&'static str),
    /// The provider broke the rules or its limits, or was not called; the text is for whoever reads the answer.
    #[error("{0}")]
    Failed(String),
}

impl Actions {
    /// From now on these are called. Calls that are under way go on.
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

    /// The plugin of this name, if it does this action of its own now.
    pub(crate) fn own_provider(&self, plugin: &str, action: &str) -> Option<Arc<LoadedPlugin>> {
        let providers = self.0.read();
        let provider = providers.by_name.get(plugin)?.upgrade()?;
        provider
            .manifest
            .actions
            .contains(action)
            .then_some(provider)
    }

    /// Who provides `action` now.
    pub(crate) fn provider(&self, action: Action) -> Option<Arc<LoadedPlugin>> {
        let providers = self.0.read();
        providers.by_action.get(&action)?.upgrade()
    }

    /// Has the provider of the action do what `call` says, within the provider's limits.
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
}

/// Has the plugin do what `call` says, within its limits, in a task of its own.
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
