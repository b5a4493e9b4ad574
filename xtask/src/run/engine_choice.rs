//! The engine of the device of `cargo xtask run`, and the reason for the choice.

use anyhow::Result;

use crate::docker_address;

/// The device's engine.
pub(crate) struct EngineChoice {
    pub(crate) engine: Engine,
    /// The reason, for a line of output.
    pub(crate) why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Engine {
    /// At this address.
    Docker(String),
    Wasm,
}

impl Engine {
    /// Returns its name for `supervisor run --engine`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Engine::Docker(_) => "docker",
            Engine::Wasm => "wasm",
        }
    }
}

/// Chooses Docker if it answers, or else wasm, unless `engine` names one of them.
///
/// # Errors
/// If Docker is wanted and does not answer.
pub(crate) async fn choose(engine: &str) -> Result<EngineChoice> {
    if engine == "wasm" {
        return Ok(EngineChoice {
            engine: Engine::Wasm,
            why: "as --engine says".into(),
        });
    }
    let address = docker_address::address();
    match (docker_address::connect(&address).await, engine) {
        (Ok(_), "docker") => Ok(EngineChoice {
            why: format!("as --engine says; it answers at {address}"),
            engine: Engine::Docker(address),
        }),
        (Ok(_), _) => Ok(EngineChoice {
            why: format!("it answers at {address}; with `--engine wasm` it is not used"),
            engine: Engine::Docker(address),
        }),
        (Err(error), "docker") => Err(error),
        (Err(error), _) => Ok(EngineChoice {
            engine: Engine::Wasm,
            why: format!("{error:#}"),
        }),
    }
}
