//! The action `os-update` (`wit/os-update.wit`), which the host itself requests.
//!
//! A provider's answer is as hostile as anything from a plugin: texts are cut to what a person can read, and an invalid
//! version is an error.

use model::{IdError, OsVersion};
use plugin_protocol::text::cut;
use plugin_protocol::{ActionAnswer, ActionCall, CallerScope, Origin, OsAnswer};
pub use plugin_protocol::{OsCall, OsStatus};

use crate::actions::{ActionError, Actions};

/// The most characters of an invalid version that an error shows.
const LONGEST_EXCERPT: usize = 40;

/// Why the operating system could not be queried or updated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OsUpdateError {
    /// No plugin of this device provides the action.
    #[error("no plugin of this device updates its operating system")]
    Unavailable,
    /// The provider failed, or could not do it; the text is for people.
    #[error("{0}")]
    Failed(String),
}

pub(crate) async fn status(actions: &Actions) -> Result<OsStatus, OsUpdateError> {
    let OsAnswer::Status(status) = called(actions, OsCall::Status).await? else {
        return Err(another());
    };
    checked(status).map_err(OsUpdateError::Failed)
}

pub(crate) async fn perform(actions: &Actions, call: OsCall) -> Result<(), OsUpdateError> {
    called(actions, call).await.map(drop)
}

/// Returns the status if it is valid.
fn checked(status: OsStatus) -> Result<OsStatus, String> {
    let versions = [Some(&status.running), status.staged.as_ref()];
    for version in versions.into_iter().flatten() {
        if let Err(IdError { value, expected }) = version.parse::<OsVersion>() {
            let value: String = value.chars().take(LONGEST_EXCERPT).collect();
            let value = value.escape_debug();
            return Err(format!(
                "the provider of `os-update` says that a version is `{value}`, which is not {expected}"
            ));
        }
    }
    Ok(OsStatus {
        installing: status.installing.map(|percent| percent.min(100)),
        failure: status.failure.map(cut),
        ..status
    })
}

async fn called(actions: &Actions, call: OsCall) -> Result<OsAnswer, OsUpdateError> {
    let origin = Origin::outside(CallerScope::Device);
    match actions.call(origin, ActionCall::Os(call)).await {
        Ok(ActionAnswer::Os(answer)) => answer.map_err(|why| OsUpdateError::Failed(cut(why))),
        Ok(_) => Err(another()),
        Err(ActionError::NoProvider(_)) => Err(OsUpdateError::Unavailable),
        Err(failed) => Err(OsUpdateError::Failed(failed.to_string())),
    }
}

fn another() -> OsUpdateError {
    OsUpdateError::Failed("the provider answered another call".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(running: &str) -> OsStatus {
        OsStatus {
            running: running.to_owned(),
            ..OsStatus::default()
        }
    }

    #[test]
    fn results_of_a_provider_are_checked_and_cut() {
        let long = "x".repeat(100_000);
        let failed = OsStatus {
            installing: Some(255),
            failure: Some(long.clone()),
            ..status("2026.3.1")
        };
        let read = checked(failed).unwrap();
        assert_eq!(read.installing, Some(100));
        assert!(read.failure.unwrap().len() < 10_000);
        for version in ["", "a b", "1\n2", "\u{202e}1", &long] {
            let error = checked(status(version)).unwrap_err();
            assert!(error.contains("a version is `"), "{error}");
            assert!(error.len() < 10_000 && !error.contains('\n'));
            let staged = OsStatus {
                staged: Some(version.to_owned()),
                ..status("1")
            };
            assert!(checked(staged).is_err(), "{version}");
        }
    }
}
