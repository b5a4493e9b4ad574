//! Arguments for fleets, and for devices that join them.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Its name: at least four letters, digits, `_` and `-`
    pub(crate) name: String,
    /// Its device type, such as raspberrypi4-64
    #[arg(long = "type", value_name = "SLUG")]
    pub(crate) device_type: String,
    /// The handle of its organization; by default yours, if you have only one
    #[arg(long, value_name = "HANDLE")]
    pub(crate) organization: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct FleetArgument {
    /// The fleet
    pub(crate) fleet: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// The fleet
    #[arg(required_unless_present = "device")]
    pub(crate) fleet: Option<String>,
    /// For this device, which must be registered, with a new key of its own
    #[arg(long, short, conflicts_with = "fleet")]
    pub(crate) device: Option<String>,
    /// The device type, if it differs from the fleet's
    #[arg(long = "type", value_name = "SLUG", conflicts_with = "device")]
    pub(crate) device_type: Option<String>,
    /// The file to write; by default standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeFleet {
    /// The fleet
    pub(crate) fleet: String,
    /// Override update locks
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteFleet {
    /// The fleet
    pub(crate) fleet: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}
