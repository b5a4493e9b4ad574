//! Of files beside releases.

use std::path::PathBuf;

use clap::Subcommand;

use super::OneRelease;

#[derive(Debug, Subcommand)]
pub(crate) enum AssetCommand {
    /// List the files beside a release
    List(OneRelease),
    /// Put a file beside a release
    Upload {
        #[command(flatten)]
        release: OneRelease,
        /// The file
        file: PathBuf,
        /// What it is found by; its name unless given
        #[arg(long)]
        key: Option<String>,
        /// Take the place of the file that the key has now
        #[arg(long)]
        overwrite: bool,
    },
    /// Get a file that is beside a release
    Download {
        #[command(flatten)]
        release: OneRelease,
        /// The key of the file
        key: String,
        /// Where to write it, `-` to standard output; a file of its own name unless given
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Take the place of a file that is there
        #[arg(long)]
        overwrite: bool,
    },
    /// Delete a file that is beside a release
    #[command(visible_alias = "rm")]
    Delete {
        #[command(flatten)]
        release: OneRelease,
        /// The key of the file
        key: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}
