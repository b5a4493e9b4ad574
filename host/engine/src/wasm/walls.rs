//! Which walls the processes of services are behind.

use confinement::Report;

use super::{Shared, Wasm};
use crate::{ConfinedService, EngineError};

impl Wasm {
    pub(super) async fn walls(&self) -> Result<Vec<ConfinedService>, EngineError> {
        self.blocking(|shared| Ok(shared.walls())).await
    }
}

impl Shared {
    /// Of the services that run, each with what its process said.
    fn walls(&self) -> Vec<ConfinedService> {
        let services = self.our_current_containers().filter_map(|record| {
            let state = self.state(&record.id);
            let walls = state.confinement.clone().filter(|_| state.is_served())?;
            Some(ConfinedService {
                container: record.name.clone(),
                walls,
            })
        });
        services.collect()
    }
}

/// Says in the log which walls a service that was started does without.
pub(super) fn note_missing(container: &str, walls: Option<&Report>) {
    if let Some(walls) = walls
        && !walls.missing.is_empty()
    {
        tracing::warn!(
            container,
            "the container runs without walls that are missing here: {}",
            walls.missing_in_words()
        );
    }
}
