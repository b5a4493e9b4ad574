//! Updates an operating system that RAUC installs: the example of the action `os-update`, over RAUC's own interface on
//! the system bus.
//!
//! RAUC checks a bundle's signature against the keyring of the system, downloads it and writes it into the slot that is
//! not running; this plugin starts that, marks slots, and reports their status. docs/os-update.md describes what
//! `system.conf` and the device's policy must contain.

mod rauc;
mod slots;

use serde::{Deserialize, Serialize};
use supervisor_sdk::os_update::{Provider, Status};
use supervisor_sdk::{config, plugin, store};

use slots::Slots;

plugin! {
    description: "Updates operating systems that RAUC installs"
    capabilities: {
        dbus => "asks RAUC for its slots, and has it install bundles and mark slots"
        store => "keeps which slot is on trial, and which one ran before"
    }
    os_update => Rauc
    // RAUC reads the head of a bundle from its server before the installation.
    limits: { wall_ms: 30000 }
}

/// The key of the slot that is on trial, or will be.
const TRIAL: &str = "trial";
/// The key of the system that ran when an installation began: RAUC does not report its slots while it installs.
const RUNNING: &str = "running";

/// The table `[plugins.rauc-update]` of the supervisor's configuration.
#[derive(Deserialize)]
struct Configuration {
    /// The version of a slot that the factory wrote, for which RAUC knows no version.
    factory_version: Option<String>,
}

/// A slot that was installed but is not committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Trial {
    slot: String,
    /// The slot that ran when it was installed.
    from: String,
}

/// The system that ran when an installation began.
#[derive(Serialize, Deserialize)]
struct RunningSystem {
    /// RAUC's name for the booted slot.
    boot_slot: String,
    version: String,
    committed: bool,
}

struct Rauc;

impl Provider for Rauc {
    async fn status() -> Result<Status, String> {
        let state = rauc::state().await?;
        if state.is_installing {
            let running: Option<RunningSystem> = store::get_json(RUNNING).await.map_err(words)?;
            let running = running.filter(|running| running.boot_slot == state.boot_slot);
            let running = running.ok_or("RAUC installs a bundle for somebody else")?;
            return Ok(Status {
                running: running.version,
                committed: running.committed,
                installing: Some(state.percent),
                ..Status::default()
            });
        }
        let slots = rauc::slots().await?;
        Ok(Status {
            running: running_version(&slots, &state)?,
            staged: slots.staged_version().map(str::to_owned),
            committed: is_committed(&slots).await?,
            installing: None,
            failure: state.last_error,
        })
    }

    async fn stage(source: String, version: String) -> Result<(), String> {
        let state = rauc::state().await?;
        if state.is_installing {
            return Ok(());
        }
        let slots = rauc::slots().await?;
        let committed = is_committed(&slots).await?;
        if !committed {
            return Err(
                "the version that runs is not committed, and the other slot is the way back".into(),
            );
        }
        let bundle = rauc::inspect(&source).await?;
        if bundle.compatible != state.compatible {
            return Err(format!(
                "the bundle is for `{}`, and this system is `{}`",
                bundle.compatible, state.compatible
            ));
        }
        if bundle.version != version {
            return Err(format!(
                "the bundle holds version `{}`, and the target wants `{version}`",
                bundle.version
            ));
        }
        let running = RunningSystem {
            version: running_version(&slots, &state)?,
            boot_slot: state.boot_slot,
            committed,
        };
        store::set_json(RUNNING, &running).await.map_err(words)?;
        // Before RAUC begins: without `activate-installed=false`, RAUC itself makes the next boot start the slot.
        set_trial(&slots).await?;
        rauc::install(&source).await
    }

    async fn activate() -> Result<(), String> {
        let slots = rauc::slots().await?;
        if slots.staged_version().is_none() {
            return Err("the other slot holds no version that is installed whole".into());
        }
        set_trial(&slots).await?;
        rauc::mark("active", &slots.other.name).await
    }

    async fn commit() -> Result<(), String> {
        rauc::mark("good", "booted").await?;
        store::delete(TRIAL).await.map_err(words)
    }

    async fn roll_back() -> Result<(), String> {
        let slots = rauc::slots().await?;
        let trial: Option<Trial> = store::get_json(TRIAL).await.map_err(words)?;
        let trial = trial.ok_or("no version of the operating system is on trial")?;
        // This comes first, so that there is a bootable slot at every moment.
        rauc::mark("active", &trial.from).await?;
        if trial.slot == slots.booted.name {
            rauc::mark("bad", &trial.slot).await?;
        }
        Ok(())
    }
}

async fn is_committed(slots: &Slots) -> Result<bool, String> {
    let trial: Option<Trial> = store::get_json(TRIAL).await.map_err(words)?;
    Ok(trial.is_none_or(|trial| trial.slot != slots.booted.name))
}

async fn set_trial(slots: &Slots) -> Result<(), String> {
    let trial = Trial {
        slot: slots.other.name.clone(),
        from: slots.booted.name.clone(),
    };
    store::set_json(TRIAL, &trial).await.map_err(words)
}

/// Returns the running version: RAUC's for the slot, else the owner's, else that of RAUC's handler for the system.
fn running_version(slots: &Slots, state: &rauc::State) -> Result<String, String> {
    if let Some(version) = &slots.booted.version {
        return Ok(version.clone());
    }
    let Configuration { factory_version } = config::read().map_err(words)?;
    let version = factory_version.or_else(|| state.system_version.clone());
    Ok(version.unwrap_or_else(|| "unknown".to_owned()))
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
