//! The walls around processes that run foreign code: those that the policy requires, and the actual
//! ones.

use std::path::Path;
use std::sync::Arc;

use compiled_code::{Cache, CompileError, Limits};
use device_types::{ConfinedProcess, Confinement, MissingWall};
use engine::Engines;
use plugin_worker::{WorkerRuntime, WorkerWalls};
use plugins::ConfinementRule;

use crate::configuration::Configuration;
use crate::facts::memory_of_board;

/// Returns the policy's rule for missing walls.
pub(crate) fn rule(configuration: &Configuration) -> Arc<ConfinementRule> {
    Arc::new(ConfinementRule::new(
        configuration.policy.clone(),
        configuration.allow_unpinned,
    ))
}

/// Returns the cache of compiled code in `folder`, which compiles nothing if a wall is missing that `rule` requires.
pub(crate) fn cache(
    configuration: &Configuration,
    folder: &Path,
    rule: &Arc<ConfinementRule>,
) -> Result<Cache, CompileError> {
    let limits = Limits::for_board(memory_of_board());
    let mut cache = Cache::new(folder.join("compiled"), &configuration.compiler, limits)?;
    if configuration.allow_unpinned {
        cache = cache.reusing_functions_from(compiled_code::LARGE_COMPONENT);
    }
    let rule = Arc::clone(rule);
    Ok(cache.requiring_confinement(move || rule.is_required()))
}

/// The sources of information about the walls.
pub(crate) struct Walls {
    pub(crate) rule: Arc<ConfinementRule>,
    pub(crate) plugins: Arc<WorkerRuntime>,
    pub(crate) cache: Cache,
    pub(crate) engines: Engines,
}

impl Walls {
    /// Returns their current state.
    pub(crate) async fn now(&self) -> Confinement {
        let rule = Arc::clone(&self.rule);
        let required = tokio::task::spawn_blocking(move || rule.is_required()).await;
        let compiler = self.cache.compiler_walls();
        let mut processes: Vec<ConfinedProcess> = compiler
            .map(|walls| process("compiler".to_owned(), walls))
            .into_iter()
            .collect();
        for WorkerWalls { folders, walls } in self.plugins.walls() {
            let folders = folders.iter().map(|folder| folder.display().to_string());
            let folders: Vec<String> = folders.collect();
            let name = match &folders[..] {
                [] => "plugins".to_owned(),
                folders => format!("plugins with {}", folders.join(", ")),
            };
            processes.push(process(name, walls));
        }
        for engine in self.engines.all() {
            // If an engine does not answer, that is reported elsewhere.
            for service in engine.confined_services().await.unwrap_or_default() {
                let name = format!("service {}", service.container);
                processes.push(process(name, service.walls));
            }
        }
        Confinement {
            required: required.unwrap_or(true),
            processes,
        }
    }
}

fn process(process: String, walls: confinement::Report) -> ConfinedProcess {
    let words = |walls: Vec<confinement::MissingWall>| {
        let walls = walls.into_iter().map(|missing| MissingWall {
            wall: missing.wall.to_string(),
            reason: missing.reason,
        });
        walls.collect()
    };
    let in_force = walls.in_force.iter();
    ConfinedProcess {
        process,
        in_force: in_force.map(|wall| wall.to_string()).collect(),
        missing: words(walls.missing),
        lower: words(walls.lower),
    }
}
