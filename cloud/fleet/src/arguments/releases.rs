//! Arguments for releases.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct ReleaseArguments {
    /// The release
    pub(crate) release: String,
    /// Its fleet, if the version alone is ambiguous
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    /// Show a release and its images
    Show(ReleaseArguments),
    /// Finalize a draft
    Finalize(ReleaseArguments),
    /// Mark a release as invalid, so that it cannot become a target
    Invalidate {
        #[command(flatten)]
        release: ReleaseArguments,
        /// The reason
        #[arg(long)]
        reason: Option<String>,
    },
    /// Mark an invalid release as valid again
    Validate(ReleaseArguments),
    /// Write a note on a release; without text, show the note
    Note {
        #[command(flatten)]
        release: ReleaseArguments,
        /// The note; an empty text (`''`) removes it
        text: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Deploy {
    /// The compose file
    pub(crate) compose: PathBuf,
    /// The fleet
    #[arg(long, short)]
    pub(crate) fleet: String,
    /// The release's version, such as 1.2.3
    #[arg(long, value_name = "VERSION")]
    pub(crate) release_version: Option<String>,
    /// Create a draft: only devices that are pinned to it run it, until it is finalized
    #[arg(long)]
    pub(crate) draft: bool,
    /// Write a note on the release
    #[arg(long)]
    pub(crate) note: Option<String>,
    /// Copy images for all processor architectures, not only for the fleet's
    #[arg(long)]
    pub(crate) all_platforms: bool,
}
