//! Events on the device, for plugins that ask for them.
//!
//! `events` and `schedules` of [`crate::plugin!`] say what the plugin asks for, and `on_event` names the `async fn`
//! that is called for it. The device's policy grants each kind. Each call runs in a fresh instance, one after the
//! other; events that occur while the plugin is busy are combined.
//!
//! ```
//! use std::time::Duration;
//! use supervisor_sdk::events::{Answer, Event};
//! use supervisor_sdk::{Error, log, plugin};
//!
//! plugin! {
//!     events: ["start", "services", "update-gate"]
//!     schedules: { nightly => "daily 03:30", poll => "every 5m" }
//!     on_event => watch
//! }
//!
//! async fn watch(event: Event) -> Result<Answer, Error> {
//!     match event {
//!         Event::Schedule(name) => log::info(format!("{name} is due")),
//!         Event::UpdateGate(update) if update.services.contains(&"press".to_owned()) => {
//!             return Ok(Answer::postpone("the press is running", Duration::from_secs(60)));
//!         }
//!         _ => {}
//!     }
//!     Ok(Answer::GoOn)
//! }
//! ```

use std::time::Duration;

pub use plugin_values::{InstalledRelease, PendingUpdate as Update, ServiceChange, TargetProgress};

use crate::bindings::watcher::exports::platform::supervisor::events as wit;

/// Something that has happened, or a question.
///
/// Later versions of the interface add events, and then this enum gets more variants.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The supervisor has started, or this version of the plugin was installed.
    Start {
        /// Whether this is the supervisor's first start since the device booted.
        is_first_of_boot: bool,
    },
    /// The schedule with this name is due.
    Schedule(String),
    /// The states of services have changed.
    Services(Vec<ServiceChange>),
    /// How far the device is with applying its target.
    Target(TargetProgress),
    /// Whether the device can reach its cloud.
    Connection(bool),
    /// May this app be disturbed now? The answer is taken into account. An `Err` postpones the update by a minute.
    UpdateGate(Update),
    /// Is this release healthy? The answer is taken into account: [`Answer::GoOn`] means yes, [`Answer::refuse`] makes
    /// the device go back to the last healthy release, and [`Answer::postpone`] makes the device ask again as long as
    /// the release has time. An `Err` postpones by a minute.
    HealthGate(InstalledRelease),
    /// An event that this version of the SDK does not know.
    Later {
        /// The name of its kind.
        name: String,
        /// Its data, as JSON.
        data: String,
    },
}

/// The answer to a gate. For all other events it is [`Answer::GoOn`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The app may be disturbed, or the release is healthy.
    GoOn,
    /// Not now, or not yet.
    Postpone {
        /// The reason, for people.
        reason: String,
        /// The delay until the device asks again: 10 s to 15 min.
        delay: Duration,
    },
    /// The release is not healthy and will not be. Only an answer to [`Event::HealthGate`].
    Refuse {
        /// The reason, for people.
        reason: String,
    },
}

impl Answer {
    /// Answers that the release is not healthy and will not be: the device goes back to the last healthy one, and shows
    /// people the reason.
    pub fn refuse(reason: impl Into<String>) -> Answer {
        Answer::Refuse {
            reason: reason.into(),
        }
    }

    /// Answers "not now": the device asks again after `delay`, which is 10 s to 15 min, and shows people the reason.
    pub fn postpone(reason: impl Into<String>, delay: Duration) -> Answer {
        Answer::Postpone {
            reason: reason.into(),
            delay,
        }
    }
}

mirror! { one way struct wit::ServiceChange, ServiceChange { app_id, service, status, before } }
mirror! { one way enum wit::TargetProgress, TargetProgress { Applying, Reached, Stopped } }
mirror! { one way struct wit::Update, Update { app_id, app_uuid, services, running_commit, target_commit } }
mirror! { one way struct wit::InstalledRelease, InstalledRelease { app_id, app_uuid, services, commit } }

impl From<wit::Event> for Event {
    fn from(event: wit::Event) -> Self {
        match event {
            wit::Event::Start(is_first_of_boot) => Event::Start { is_first_of_boot },
            wit::Event::Schedule(name) => Event::Schedule(name),
            wit::Event::Services(changes) => {
                Event::Services(changes.into_iter().map(Into::into).collect())
            }
            wit::Event::Target(progress) => Event::Target(progress.into()),
            wit::Event::Connection(is_there) => Event::Connection(is_there),
            wit::Event::UpdateGate(update) => Event::UpdateGate(update.into()),
            wit::Event::HealthGate(release) => Event::HealthGate(release.into()),
            wit::Event::Later(wit::LaterEvent { name, data }) => Event::Later { name, data },
        }
    }
}

impl From<Answer> for wit::Answer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::GoOn => wit::Answer::GoOn,
            Answer::Postpone { reason, delay } => wit::Answer::Postpone(wit::Postponement {
                reason,
                seconds: u32::try_from(delay.as_secs()).unwrap_or(u32::MAX),
            }),
            Answer::Refuse { reason } => wit::Answer::Refuse(reason),
        }
    }
}

/// What an `on_event` function may return.
#[doc(hidden)]
pub trait EventOutcome {
    fn into_result(self) -> Result<Answer, String>;
}

impl EventOutcome for () {
    fn into_result(self) -> Result<Answer, String> {
        Ok(Answer::GoOn)
    }
}

impl EventOutcome for Answer {
    fn into_result(self) -> Result<Answer, String> {
        Ok(self)
    }
}

impl<T: EventOutcome, E: std::fmt::Display> EventOutcome for Result<T, E> {
    fn into_result(self) -> Result<Answer, String> {
        self.map_or_else(|error| Err(error.to_string()), T::into_result)
    }
}

/// Calls the function that [`crate::plugin!`] names as `on_event`.
#[doc(hidden)]
pub async fn handle<F, T>(function: F, event: wit::Event) -> Result<wit::Answer, String>
where
    F: AsyncFnOnce(Event) -> T,
    T: EventOutcome,
{
    let outcome = function(event.into()).await;
    outcome.into_result().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_returns_an_answer_or_nothing_or_fails() {
        let later = || Answer::postpone("busy", Duration::from_secs(60));
        let failed: Result<Answer, &str> = Err("the sensor is silent");
        assert_eq!(().into_result(), Ok(Answer::GoOn));
        assert_eq!(later().into_result(), Ok(later()));
        assert_eq!(Ok::<_, String>(later()).into_result(), Ok(later()));
        assert_eq!(failed.into_result(), Err("the sensor is silent".to_owned()));
    }
}
