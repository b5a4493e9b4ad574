//! A gate for updates that behaves as its configuration says.

use crate::Guest;
use crate::bindings::exports::platform::supervisor::events::{self, Answer, Event, Postponement};
use crate::bindings::platform::supervisor::{config, timer};

impl events::Guest for Guest {
    /// Fails, never answers or postpones an update if the configuration contains `gate-fails`, `gate-traps`,
    /// `gate-sleeps`, `gate-postpones` or `gate-refuses`; the reason looks like lines of the log. All other events fail
    /// if it contains `event-fails`, and are never answered if it contains `event-sleeps`. Everything else goes on.
    async fn handle(event: Event) -> Result<Answer, String> {
        let config = config::json();
        let is_update = matches!(event, Event::UpdateGate(_));
        let says = |word: &str| is_update && config.contains(word);
        let reason = || "the press\nFORGED INFO is running".to_owned();
        let fails = !is_update && config.contains("event-fails");
        if fails || says("gate-fails") {
            return Err(reason());
        }
        if says("gate-traps") {
            panic!("this gate panics\nin two lines");
        }
        let sleeps = !is_update && config.contains("event-sleeps");
        if sleeps || says("gate-sleeps") {
            timer::sleep(u32::MAX).await;
        }
        if says("gate-postpones") {
            let reason = reason();
            return Ok(Answer::Postpone(Postponement {
                reason,
                seconds: 30,
            }));
        }
        if says("gate-refuses") {
            return Ok(Answer::Refuse(reason()));
        }
        Ok(Answer::GoOn)
    }
}
