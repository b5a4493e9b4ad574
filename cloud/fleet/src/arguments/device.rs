//! Of one device: what is kept of it, and what it is asked to do.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct OneDevice {
    /// The device
    pub(crate) device: String,
}

#[derive(Debug, Args)]
pub(crate) struct Forced {
    /// The device
    pub(crate) device: String,
    /// Override update locks
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RegisterDevice {
    /// The fleet that it is to be in
    pub(crate) fleet: String,
    /// Its uuid: 32 or 62 lower-case hexadecimal digits; random unless given
    #[arg(long)]
    pub(crate) uuid: Option<String>,
    /// Its name; two words unless given
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The kind of its board, where it is another than the fleet's
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
    /// Make a device before its board is there; `fleet config --device` then makes the board's config.json
    Register(RegisterDevice),
    /// Show a device and its services
    Show(OneDevice),
    /// Switch local mode on or off, in which it takes its services from its own network; without a word, show it
    LocalMode {
        /// The device
        device: String,
        /// On or off
        switch: Option<Switch>,
    },
    /// Give it another name
    Rename {
        /// The device
        device: String,
        /// Its new name
        name: String,
    },
    /// Write a note on it; without text, show the one that it has
    Note {
        /// The device
        device: String,
        /// The note; an empty one (`''`) removes it
        text: Option<String>,
    },
    /// Say that it is in use
    Activate(OneDevice),
    /// Say that it is not in use
    Deactivate(OneDevice),
    /// Move it to another fleet
    Move {
        /// The device
        device: String,
        /// The fleet that it is to be in
        fleet: String,
    },
    /// Delete it
    #[command(visible_alias = "rm")]
    Delete {
        /// The device
        device: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Restart its services, or one of them
    Restart {
        #[command(flatten)]
        device: Forced,
        /// This service alone
        #[arg(long, short)]
        service: Option<String>,
    },
    /// Stop a service
    Stop {
        #[command(flatten)]
        device: Forced,
        /// The service
        #[arg(long, short)]
        service: String,
    },
    /// Start a service that was stopped
    Start {
        #[command(flatten)]
        device: Forced,
        /// The service
        #[arg(long, short)]
        service: String,
    },
    /// Reboot it
    Reboot(Forced),
    /// Switch it off; nobody can switch it on again from afar
    Shutdown {
        #[command(flatten)]
        device: Forced,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Empty the volumes of its services
    Purge {
        #[command(flatten)]
        device: Forced,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
    /// Have it show itself, by blinking
    #[command(visible_alias = "identify")]
    Blink(OneDevice),
    /// Ask whether its supervisor answers
    Ping(OneDevice),
    /// Have it look for its target now
    Update(Forced),
}
