//! Arguments for tags and variables.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TagOwner {
    /// The device
    #[arg(long, short)]
    pub(crate) device: Option<String>,
    /// The fleet
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
    /// The release
    #[arg(long, short)]
    pub(crate) release: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagCommand {
    /// Set a tag
    Set {
        /// The key, without white space
        key: String,
        /// The value; empty by default
        #[arg(default_value = "", allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        owner: TagOwner,
    },
    /// Remove a tag
    Rm {
        /// The key
        key: String,
        #[command(flatten)]
        owner: TagOwner,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct VariableOwner {
    /// The device
    #[arg(long, short)]
    pub(crate) device: Option<String>,
    /// The fleet
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct VariableScope {
    #[command(flatten)]
    pub(crate) owner: VariableOwner,
    /// Only for this service
    #[arg(long, short)]
    pub(crate) service: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VariableCommand {
    /// Set a variable; names with the cloud's own prefix (`PLATFORM_`) are configuration
    Set {
        /// NAME, or NAME=VALUE
        name: String,
        /// The value, unless it follows a `=`
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        #[command(flatten)]
        of: VariableScope,
        /// The variable is configuration; refused if its name has another prefix
        #[arg(long, conflicts_with = "service")]
        config: bool,
        /// Nobody can read the value except the devices that get it; it stays secret when you set a new value
        #[arg(long)]
        secret: bool,
        /// Everybody who may change the variable can read the value, even if the previous one was secret
        #[arg(long, conflicts_with = "secret")]
        readable: bool,
        /// Read the value from standard input, without the line end after it
        #[arg(long, conflicts_with = "value")]
        stdin: bool,
    },
    /// Rename a variable
    Rename {
        /// Its name
        name: String,
        /// Its new name
        new: String,
        #[command(flatten)]
        of: VariableScope,
    },
    /// Remove a variable
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        of: VariableScope,
        /// The variable is configuration; refused if its name has another prefix
        #[arg(long, conflicts_with = "service")]
        config: bool,
    },
}
