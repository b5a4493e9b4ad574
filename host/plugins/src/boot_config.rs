//! The action `boot-config` (`wit/boot-config.wit`), which the host itself requests.
//!
//! A provider's answer is as hostile as anything from a plugin: it is cut to what a person can read.

use plugin_protocol::text::cut;
use plugin_protocol::{ActionAnswer, ActionCall, BootAnswer, BootCall, CallerScope, Origin};
pub use plugin_protocol::{BootComparison, BootSetting};

use crate::actions::{ActionError, Actions};

/// The most settings that are read of a comparison or a configuration.
const COUNT: usize = 1024;

/// Why the boot configuration could not be read or written.
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
    match called(actions, BootCall::Get).await? {
        BootAnswer::Settings(settings) => {
            let settings = settings.into_iter().take(COUNT);
            Ok(settings
                .map(|BootSetting { name, value }| BootSetting {
                    name: cut(name),
                    value: cut(value),
                })
                .collect())
        }
        BootAnswer::Comparison(_) => Err(another()),
    }
}

/// Compares or writes the boot configuration, and returns the comparison, cut to the settings that are read.
pub(crate) async fn compare_or_set(
    actions: &Actions,
    call: BootCall,
) -> Result<BootComparison, BootConfigError> {
    let BootAnswer::Comparison(comparison) = called(actions, call).await? else {
        return Err(another());
    };
    let names = |names: Vec<String>| names.into_iter().take(COUNT).map(cut).collect();
    let refused = comparison.refused.into_iter().take(COUNT);
    Ok(BootComparison {
        changes: names(comparison.changes),
        refused: refused
            .map(|(name, reason)| (cut(name), cut(reason)))
            .collect(),
        foreign: names(comparison.foreign),
        needs_reboot: comparison.needs_reboot,
    })
}

async fn called(actions: &Actions, call: BootCall) -> Result<BootAnswer, BootConfigError> {
    let origin = Origin::outside(CallerScope::Device);
    match actions.call(origin, ActionCall::BootConfig(call)).await {
        Ok(ActionAnswer::BootConfig(answer)) => {
            answer.map_err(|why| BootConfigError::Failed(cut(why)))
        }
        Ok(_) => Err(another()),
        Err(ActionError::NoProvider(_)) => Err(BootConfigError::Unavailable),
        Err(failed) => Err(BootConfigError::Failed(failed.to_string())),
    }
}

fn another() -> BootConfigError {
    BootConfigError::Failed("the provider answered another call".to_owned())
}
