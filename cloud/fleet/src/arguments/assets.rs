//! Arguments for files attached to releases.

use std::path::PathBuf;

use clap::Subcommand;

use super::releases::ReleaseArguments;

#[derive(Debug, Subcommand)]
pub(crate) enum AssetCommand {
    /// List the files attached to a release
    List(ReleaseArguments),
    /// Attach a file to a release
    Upload {
        #[command(flatten)]
        release: ReleaseArguments,
        /// The file
        file: PathBuf,
        /// Its key; by default the file's name
        #[arg(long)]
        key: Option<String>,
        /// Replace the file that has this key now
        #[arg(long)]
        overwrite: bool,
    },
    /// Download a file that is attached to a release
    Download {
        #[command(flatten)]
        release: ReleaseArguments,
        /// The key of the file
        key: String,
        /// The file to write, `-` for standard output; by default a file with its own name
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Overwrite an existing file
        #[arg(long)]
        overwrite: bool,
    },
    /// Delete a file that is attached to a release
    #[command(visible_alias = "rm")]
    Delete {
        #[command(flatten)]
        release: ReleaseArguments,
        /// The key of the file
        key: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}
