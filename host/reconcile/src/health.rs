//! Problems that keep the loop from working (docs/spec/device.md#health).

use std::collections::BTreeMap;
use std::time::Duration;

use model::EngineKind;
use parking_lot::Mutex;
use plan::Subject;
use tokio::time::Instant;

/// A step other than a pull that takes longer than this is a problem: two poll intervals.
const STUCK: Duration = Duration::from_secs(2 * 900);

/// The health that the loop reports.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    silent: BTreeMap<EngineKind, String>,
    oldest_step: Option<(Subject, Instant)>,
}

impl Health {
    pub(crate) fn set(
        &self,
        silent: BTreeMap<EngineKind, String>,
        oldest_step: Option<(Subject, Instant)>,
    ) {
        let mut state = self.0.lock();
        *state = State {
            silent,
            oldest_step,
        };
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let state = self.0.lock();
        let silent = state.silent.iter();
        let mut problems: Vec<String> = silent
            .map(|(engine, why)| format!("the {engine} engine does not answer: {why}"))
            .collect();
        if let Some((subject, since)) = &state.oldest_step
            && since.elapsed() > STUCK
        {
            let minutes = since.elapsed().as_secs() / 60;
            problems.push(format!("a step for {subject} has taken {minutes} minutes"));
        }
        problems
    }
}
