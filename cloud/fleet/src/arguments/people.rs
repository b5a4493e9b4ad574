//! Arguments for people: organizations, their members, invitations, accounts and SSH keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Register {
    /// The cloud's address, such as https://cloud.example.com; by default the last one
    pub(crate) url: Option<String>,
    /// The user's name; by default the command asks for it
    #[arg(long)]
    pub(crate) username: Option<String>,
    /// The user's e-mail address; by default the command asks for it
    #[arg(long)]
    pub(crate) email: Option<String>,
    /// Make the user a member of this organization instead of a new one of their own
    #[arg(long, value_name = "HANDLE")]
    pub(crate) organization: Option<String>,
    /// Read the password from the first line of standard input
    #[arg(long)]
    pub(crate) stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Password {
    /// Read the current password and the new one from standard input, one per line
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Also end your API keys
    #[arg(long)]
    pub(crate) end_keys: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SshKeyCommand {
    /// Add a public key
    Add {
        /// Its name
        title: String,
        /// The file of the public key, such as ~/.ssh/id_ed25519.pub; `-` is standard input
        file: PathBuf,
    },
    /// Remove a key, by its title or id
    Rm {
        /// Its title or id
        key: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrganizationCommand {
    /// Create an organization; you become its administrator
    Create {
        /// Its name
        name: String,
        /// The beginning of its fleets' slugs: lower-case letters, digits and `_`; by default made from the name
        #[arg(long)]
        handle: Option<String>,
    },
    /// Show an organization
    Show {
        /// Its handle, name or id
        organization: String,
    },
    /// Rename an organization
    Rename {
        /// Its handle, name or id
        organization: String,
        /// Its new name
        name: String,
    },
    /// Delete an organization, with its fleets and their devices
    Delete {
        /// Its handle, name or id
        organization: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

/// What people are members of.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Group {
    /// The organization; by default yours, if you belong to only one
    #[arg(long, short)]
    pub(crate) organization: Option<String>,
    /// A fleet instead, for the people with whom it is shared
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Change a member's role
    Role {
        /// The member's user name
        user: String,
        /// For an organization `administrator` or `member`; for a fleet `developer`, `operator` or `observer`
        role: String,
        #[command(flatten)]
        group: Group,
    },
    /// Remove a member; to leave, remove yourself
    Rm {
        /// The member's user name
        user: String,
        #[command(flatten)]
        group: Group,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum InvitationCommand {
    /// Invite somebody; the command prints a token to pass on to them
    #[command(visible_alias = "invite")]
    Create {
        /// The e-mail address of the user who may accept
        email: String,
        #[command(flatten)]
        group: Group,
        /// For an organization `administrator` or `member`; for a fleet `developer`, `operator` or `observer`
        #[arg(long)]
        role: Option<String>,
        /// A message to the invited person
        #[arg(long)]
        message: Option<String>,
    },
    /// Revoke an invitation, by its address or id
    #[command(visible_alias = "rm")]
    Revoke {
        /// Its e-mail address or id
        invitation: String,
        #[command(flatten)]
        group: Group,
    },
    /// Accept an invitation to your e-mail address
    Accept {
        /// Its token
        token: String,
    },
}
