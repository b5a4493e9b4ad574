//! Arguments for API keys.

use clap::Subcommand;

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum KeyScope {
    /// Read
    Read,
    /// Read, and create releases
    Deploy,
    /// Read, change devices, and send requests to them
    Device,
    /// Read, create releases, and change fleets and devices
    Fleet,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List your named keys, or those of a fleet
    List {
        /// List the keys of this fleet
        #[arg(long, short)]
        fleet: Option<String>,
    },
    /// Create a key with your rights; it is shown once
    Create {
        /// Its name
        name: String,
        /// A description
        #[arg(long)]
        description: Option<String>,
        /// The date until which it is valid, such as 2027-01-31
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
        /// What the key may do; by default everything that you may do, except manage people, organizations and keys
        #[arg(long)]
        scope: Option<KeyScope>,
        /// The only fleet to which it has access
        #[arg(long, short)]
        fleet: Option<String>,
    },
    /// Delete a key, by its name or id
    Rm {
        /// Its name or id
        key: String,
    },
    /// Create a key with which new devices join a fleet; it is shown once
    Provisioning {
        /// The fleet
        fleet: String,
        /// Its name
        #[arg(long)]
        name: Option<String>,
        /// A description
        #[arg(long)]
        description: Option<String>,
        /// The date until which it is valid, such as 2027-01-31
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
    },
}
