//! Of people: organizations, their members, invitations, accounts and SSH keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Register {
    /// The cloud's address, such as https://cloud.example.com; the last one unless given
    pub(crate) url: Option<String>,
    /// The user's name; asked for unless given
    #[arg(long)]
    pub(crate) username: Option<String>,
    /// The user's e-mail address; asked for unless given
    #[arg(long)]
    pub(crate) email: Option<String>,
    /// Make the user a member of this organization, rather than one of their own
    #[arg(long, value_name = "HANDLE")]
    pub(crate) organization: Option<String>,
    /// Read the password from standard input, its first line
    #[arg(long)]
    pub(crate) stdin: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Password {
    /// Read the current password and the new one from standard input, a line each
    #[arg(long)]
    pub(crate) stdin: bool,
    /// End your API keys as well
    #[arg(long)]
    pub(crate) end_keys: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SshKeyCommand {
    /// Add a public key
    Add {
        /// What it is called
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
    /// Make an organization; you are its administrator
    Create {
        /// Its name
        name: String,
        /// What the slugs of its fleets begin with: lower-case letters, digits and `_`; made from the name unless given
        #[arg(long)]
        handle: Option<String>,
    },
    /// Show an organization
    Show {
        /// Its handle, name or id
        organization: String,
    },
    /// Give an organization another name
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
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// What people are members of.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Group {
    /// Of this organization; of yours where you are in but one
    #[arg(long, short)]
    pub(crate) organization: Option<String>,
    /// Of those whom this fleet is shared with
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemberCommand {
    /// Give a member another role
    Role {
        /// The member's user name
        user: String,
        /// In an organization `administrator` or `member`; of a fleet `developer`, `operator` or `observer`
        role: String,
        #[command(flatten)]
        group: Group,
    },
    /// Remove a member; yourself, to leave
    Rm {
        /// The member's user name
        user: String,
        #[command(flatten)]
        group: Group,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum InvitationCommand {
    /// Invite somebody; the token is printed, which you pass on to them
    #[command(visible_alias = "invite")]
    Create {
        /// The e-mail address of the user who may accept
        email: String,
        #[command(flatten)]
        group: Group,
        /// In an organization `administrator` or `member`; of a fleet `developer`, `operator` or `observer`
        #[arg(long)]
        role: Option<String>,
        /// A word to whoever is invited
        #[arg(long)]
        message: Option<String>,
    },
    /// Take an invitation back, by its address or id
    #[command(visible_alias = "rm")]
    Revoke {
        /// Its e-mail address or id
        invitation: String,
        #[command(flatten)]
        group: Group,
    },
    /// Accept an invitation that was made to your e-mail address
    Accept {
        /// Its token
        token: String,
    },
}
