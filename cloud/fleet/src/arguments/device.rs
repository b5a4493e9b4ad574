//! Arguments for one device: its data, and the actions that it can perform.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct DeviceArgument {
    /// The device
    pub(crate) device: String,
}

#[derive(Debug, Args)]
pub(crate) struct ForcibleAction {
    /// The device
    pub(crate) device: String,
    /// Override update locks
    #[arg(long)]
    pub(crate) force: bool,
}

impl DeviceArgument {
    /// Converts the arguments of an action that update locks do not affect.
    pub(crate) fn unforced(self) -> ForcibleAction {
        ForcibleAction {
            device: self.device,
            force: false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RegisterDevice {
    /// Its fleet
    pub(crate) fleet: String,
    /// Its uuid: 32 or 62 lower-case hexadecimal digits; random by default
    #[arg(long)]
    pub(crate) uuid: Option<String>,
    /// Its name; by default two random words
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Its device type, if it differs from the fleet's
    #[arg(long = "type", value_name = "SLUG")]
    pub(crate) device_type: Option<String>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    /// On
    On,
    /// Off
    Off,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
    /// Create a device before its board exists; `fleet config --device` then writes the board's config.json
    Register(RegisterDevice),
    /// Show a device and its services
    Show(DeviceArgument),
    /// Turn local mode, in which a device takes its services from its local network, on or off; without a value, show
    /// it
    LocalMode {
        /// The device
        device: String,
        /// On or off
        switch: Option<Switch>,
    },
    /// Rename a device
    Rename {
        /// The device
        device: String,
        /// Its new name
        name: String,
    },
    /// Write a note on a device; without text, show the note
    Note {
        /// The device
        device: String,
        /// The note; an empty text (`''`) removes it
        text: Option<String>,
    },
    /// Mark a device as in use
    Activate(DeviceArgument),
    /// Mark a device as not in use
    Deactivate(DeviceArgument),
    /// Move a device to another fleet
    Move {
        /// The device
        device: String,
        /// Its fleet
        fleet: String,
    },
    /// Delete a device
    #[command(visible_alias = "rm")]
    Delete {
        /// The device
        device: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Restart the services of a device, or one of them
    Restart {
        #[command(flatten)]
        device: ForcibleAction,
        /// Only this service
        #[arg(long, short)]
        service: Option<String>,
    },
    /// Stop a service
    Stop {
        #[command(flatten)]
        device: ForcibleAction,
        /// The service
        #[arg(long, short)]
        service: String,
    },
    /// Start a stopped service
    Start {
        #[command(flatten)]
        device: ForcibleAction,
        /// The service
        #[arg(long, short)]
        service: String,
    },
    /// Reboot a device
    Reboot(ForcibleAction),
    /// Shut down a device; nobody can turn it on again remotely
    Shutdown {
        #[command(flatten)]
        device: ForcibleAction,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Empty the volumes of a device's services
    Purge {
        #[command(flatten)]
        device: ForcibleAction,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// Make a device identify itself by blinking
    #[command(visible_alias = "identify")]
    Blink(DeviceArgument),
    /// Check whether a device's supervisor answers
    Ping(DeviceArgument),
    /// Make a device check for its target now
    Update(ForcibleAction),
}
