//! The action `boot-config` (`wit/boot-config.wit`), which the host itself has done.
//!
//! What a provider answers is as hostile as any plugin's word: it is cut to what a person can read.

use futures::future::BoxFuture;
use wasmtime::component::Accessor;

use crate::actions::{ActionError, Actions, not_exported};
use crate::bindings::exports::platform::supervisor::boot_config as wit;
use crate::guest::Guest;
use crate::manifest::Action;
use crate::text::cut;

/// The most settings of a comparison or of a configuration that are looked at.
const COUNT: usize = 1024;

/// A variable of the target state without the cloud's prefix, such as `HOST_CONFIG_gpu_mem`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootSetting {
    /// Its key.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// How a boot configuration stands to what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootComparison {
    /// The settings that differ, by name.
    pub changes: Vec<String>,
    /// Settings that cannot be written, and why. While there is one, nothing is written.
    pub refused: Vec<(String, String)>,
    /// Settings that mean nothing on this board.
    pub foreign: Vec<String>,
    /// The changes take effect with the next boot.
    pub needs_reboot: bool,
}

/// Why the boot configuration could not be looked at or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootConfigError {
    /// No plugin of this device provides the action.
    #[error("no plugin of this device writes the boot configuration of its board")]
    Unavailable,
    /// The provider failed, or could not read or write; the text is for people.
    #[error("{0}")]
    Failed(String),
}

pub(crate) async fn get(actions: &Actions) -> Result<Vec<BootSetting>, BootConfigError> {
    let settings = called(actions, |provider, inside| {
        Box::pin(provider.call_get(inside))
    });
    let settings = settings.await?.into_iter().take(COUNT);
    Ok(settings
        .map(|wit::Setting { name, value }| BootSetting {
            name: cut(name),
            value: cut(value),
        })
        .collect())
}

pub(crate) async fn compare(
    actions: &Actions,
    wanted: Vec<BootSetting>,
) -> Result<BootComparison, BootConfigError> {
    let wanted = to_wit(wanted);
    let comparison = called(actions, |provider, inside| {
        Box::pin(provider.call_compare(inside, wanted))
    });
    Ok(from_wit(comparison.await?))
}

pub(crate) async fn set(
    actions: &Actions,
    wanted: Vec<BootSetting>,
) -> Result<BootComparison, BootConfigError> {
    let wanted = to_wit(wanted);
    let comparison = called(actions, |provider, inside| {
        Box::pin(provider.call_set(inside, wanted))
    });
    Ok(from_wit(comparison.await?))
}

async fn called<R: Send + 'static>(
    actions: &Actions,
    call: impl for<'a> FnOnce(
        &'a wit::Guest,
        &'a Accessor<Guest>,
    ) -> BoxFuture<'a, wasmtime::Result<Result<R, String>>>
    + Send
    + 'static,
) -> Result<R, BootConfigError> {
    const ACTION: Action = Action::BootConfig;
    let called = actions.call(ACTION, 0, |exports, inside| {
        let Some(provider) = &exports.boot_config else {
            return Box::pin(std::future::ready(Err(not_exported(ACTION))));
        };
        call(provider, inside)
    });
    match called.await {
        Ok(answer) => answer.map_err(|why| BootConfigError::Failed(cut(why))),
        Err(ActionError::NoProvider(_)) => Err(BootConfigError::Unavailable),
        Err(failed) => Err(BootConfigError::Failed(failed.to_string())),
    }
}

fn to_wit(settings: Vec<BootSetting>) -> Vec<wit::Setting> {
    settings
        .into_iter()
        .map(|BootSetting { name, value }| wit::Setting { name, value })
        .collect()
}

fn from_wit(comparison: wit::Comparison) -> BootComparison {
    let names = |names: Vec<String>| names.into_iter().take(COUNT).map(cut).collect();
    let refused = comparison.refused.into_iter().take(COUNT);
    BootComparison {
        changes: names(comparison.changes),
        refused: refused
            .map(|wit::Refusal { name, reason }| (cut(name), cut(reason)))
            .collect(),
        foreign: names(comparison.foreign),
        needs_reboot: comparison.needs_reboot,
    }
}
