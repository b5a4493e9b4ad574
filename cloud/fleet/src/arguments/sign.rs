//! Arguments for signing releases.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::releases::ReleaseArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum SigningKeyCommand {
    /// Create a key: FILE, which you must keep secret, and FILE.pub, which devices' policies name
    Make {
        /// The file to write
        file: PathBuf,
        /// Do not protect the key with a password, for machines that sign by themselves
        #[arg(long)]
        no_password: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Sign {
    #[command(flatten)]
    pub(crate) release: ReleaseArguments,
    /// The key: a file from minisign or from `fleet signing-key make`
    #[arg(long, short, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The key's password; by default the command asks for it
    #[arg(long, env = "FLEET_SIGNING_PASSWORD", hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// The compose file from which the release was created; refuse to sign if the release in the cloud differs from it
    #[arg(long, value_name = "FILE")]
    pub(crate) compose: Option<PathBuf>,
    /// The time until which devices may accept it (2030-01-01T00:00:00Z), or how long from now (90d, 12h)
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
    /// The statement's version; devices accept no lower one than the last. By default the current time in milliseconds
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u64>,
    /// A variable that the cloud may set to any value, of one service or of all
    #[arg(long = "variable", value_name = "[SERVICE/]NAME")]
    pub(crate) variables: Vec<String>,
    /// A setting of devices that the cloud may set to any value, without the prefix PLATFORM_; the fleet's other
    /// settings are signed with their values
    #[arg(long = "setting", value_name = "NAME")]
    pub(crate) settings: Vec<String>,
    /// Write the signed statement into a file instead of to the cloud
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}
