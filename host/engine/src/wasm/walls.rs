//! Which walls the processes of services are behind.

use confinement::Report;

use super::{Wasm, WasmState};
use crate::{ConfinedService, EngineError};

impl Wasm {
    pub(super) async fn walls(&self) -> Result<Vec<ConfinedService>, EngineError> {
        self.blocking(|shared| Ok(shared.walls())).await
    }
}

impl WasmState {
    /// Returns the walls of the running services, each as reported by its process.
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

/// Logs which walls a started service lacks.
pub(super) fn note_missing(container: &str, walls: Option<&Report>) {
    if let Some(walls) = walls
        && !walls.missing.is_empty()
    {
        tracing::warn!(
            container,
            "the container runs without restrictions that this system lacks: {}",
            walls.missing_in_words()
        );
    }
}
