//! The command line, as clap reads it: `fleet --help` is made from this.

pub(crate) mod assets;
pub(crate) mod device;
pub(crate) mod people;
pub(crate) mod sign;

use std::path::PathBuf;

use assets::AssetCommand;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use device::DeviceCommand;
use people::{
    Group, InvitationCommand, MemberCommand, OrganizationCommand, Password, Register, SshKeyCommand,
};
use sign::{Sign, SigningKeyCommand};

/// The command line of the fleet cloud
#[derive(Debug, Parser)]
#[command(
    name = "fleet",
    version,
    arg_required_else_help = true,
    infer_subcommands = false,
    after_help = "Name a device by uuid (or at least its first four characters), name or id; a fleet by slug, \
                  name or id; a release by commit (or the beginning of it), version or id.\n\
                  Environment: FLEET_URL and FLEET_TOKEN take precedence over `fleet login`; NO_COLOR.\n\
                  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not signed in or not allowed, 4 not found."
)]
pub(crate) struct Arguments {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign in to a cloud
    Login(Login),
    /// Sign out, and delete the credential on this machine
    Logout,
    /// Show who is signed in, and where
    Whoami,
    /// Create an account; asks for its password without showing it
    Register(Register),
    /// Change your password, which ends your other sessions; asks for it without showing it
    Password(Password),
    /// Show which cloud this program uses, as whom, and which setting decides that
    Settings,
    /// List organizations
    #[command(visible_alias = "orgs")]
    Organizations,
    /// Create, show, rename or delete an organization
    #[command(subcommand, visible_alias = "org", arg_required_else_help = true)]
    Organization(OrganizationCommand),
    /// List the members of an organization, or the people with whom a fleet is shared
    Members(Group),
    /// Change or remove a member
    #[command(subcommand, arg_required_else_help = true)]
    Member(MemberCommand),
    /// List the open invitations to an organization or a fleet
    Invitations(Group),
    /// Invite somebody to an organization or a fleet; revoke or accept an invitation
    #[command(subcommand, arg_required_else_help = true)]
    Invitation(InvitationCommand),
    /// List your SSH keys
    SshKeys,
    /// Add or remove an SSH key
    #[command(subcommand, arg_required_else_help = true)]
    SshKey(SshKeyCommand),
    /// List fleets
    Fleets,
    /// Create a fleet
    Create(Create),
    /// Show a fleet
    Show(OneFleet),
    /// Rename a fleet
    Rename {
        /// The fleet
        fleet: String,
        /// Its new name
        name: String,
    },
    /// Restart the services of a fleet's devices
    Restart(OneFleet),
    /// Empty the volumes of the services of a fleet's devices
    Purge(PurgeFleet),
    /// Delete a fleet, with its devices and releases
    Delete(DeleteFleet),
    /// Write the config.json with which new devices join a fleet, or with which a board becomes a registered device
    Config(ConfigFile),
    /// List the device types that fleets can have
    DeviceTypes,
    /// List devices
    Devices(Devices),
    /// Show, change or operate a device
    #[command(subcommand, arg_required_else_help = true)]
    Device(DeviceCommand),
    /// List a fleet's releases
    Releases(Releases),
    /// Show or change a release
    #[command(subcommand, arg_required_else_help = true)]
    Release(ReleaseCommand),
    /// List, upload, download or delete files attached to a release
    #[command(subcommand, visible_alias = "asset", arg_required_else_help = true)]
    ReleaseAsset(AssetCommand),
    /// Create a release from a compose file, and copy its images to the cloud's registry
    Deploy(Deploy),
    /// Sign a release with a key that the cloud does not have, for devices that accept only signed releases
    Sign(Sign),
    /// Create keys that sign releases
    #[command(subcommand, arg_required_else_help = true)]
    SigningKey(SigningKeyCommand),
    /// Pin a device or a fleet to one release
    Pin(Pin),
    /// Make a device follow its fleet again, or a fleet its latest release
    #[command(visible_alias = "unpin")]
    Track(Track),
    /// List the tags of a device, fleet or release
    Tags(TagSubject),
    /// Set or remove a tag
    #[command(subcommand, arg_required_else_help = true)]
    Tag(TagCommand),
    /// List the variables of a fleet or device, including configuration
    #[command(visible_alias = "vars")]
    Variables(VariableScope),
    /// Set or remove a variable
    #[command(subcommand, visible_alias = "var", arg_required_else_help = true)]
    Variable(VariableCommand),
    /// Manage API keys
    #[command(subcommand, arg_required_else_help = true)]
    Keys(KeysCommand),
    /// Show what a device's services print
    Logs(Logs),
    /// Print a script that completes commands in a shell
    #[command(after_help = "bash, in ~/.bashrc:  source <(fleet completion bash)\n\
                            zsh, in ~/.zshrc, below compinit:  source <(fleet completion zsh)\n\
                            fish, once:  fleet completion fish > ~/.config/fish/completions/fleet.fish")]
    Completion {
        /// The shell
        shell: Shell,
    },
}

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
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

impl KeyScope {
    /// The scope's name in the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            KeyScope::Read => "read",
            KeyScope::Deploy => "deploy",
            KeyScope::Device => "device",
            KeyScope::Fleet => "fleet",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The cloud's address, such as https://cloud.example.com; by default the last one
    pub(crate) url: Option<String>,
    /// Your e-mail address or name; by default the command asks for it
    #[arg(long, conflicts_with = "token")]
    pub(crate) email: Option<String>,
    /// Your password; by default the command asks for it
    #[arg(
        long,
        env = "FLEET_PASSWORD",
        hide_env_values = true,
        conflicts_with = "token"
    )]
    pub(crate) password: Option<String>,
    /// An API key instead of a name and a password
    #[arg(long, value_name = "KEY")]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Its name: at least four letters, digits, `_` and `-`
    pub(crate) name: String,
    /// Its device type, such as raspberrypi4-64
    #[arg(long = "type", value_name = "SLUG")]
    pub(crate) device_type: String,
    /// The handle of its organization; by default yours, if you have only one
    #[arg(long, value_name = "HANDLE")]
    pub(crate) organization: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct OneFleet {
    /// The fleet
    pub(crate) fleet: String,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigFile {
    /// The fleet
    #[arg(required_unless_present = "device")]
    pub(crate) fleet: Option<String>,
    /// For this device, which must be registered, with a new key of its own
    #[arg(long, short, conflicts_with = "fleet")]
    pub(crate) device: Option<String>,
    /// The device type, if it differs from the fleet's
    #[arg(long = "type", value_name = "SLUG", conflicts_with = "device")]
    pub(crate) device_type: Option<String>,
    /// The file to write; by default standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeFleet {
    /// The fleet
    pub(crate) fleet: String,
    /// Override update locks
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteFleet {
    /// The fleet
    pub(crate) fleet: String,
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Devices {
    /// Only of this fleet
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Releases {
    /// The fleet
    #[arg(long, short)]
    pub(crate) fleet: String,
}

#[derive(Debug, Args)]
pub(crate) struct OneRelease {
    /// The release
    pub(crate) release: String,
    /// Its fleet, if the version alone is ambiguous
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    /// Show a release and its images
    Show(OneRelease),
    /// Finalize a draft
    Finalize(OneRelease),
    /// Mark a release as invalid, so that it cannot become a target
    Invalidate {
        #[command(flatten)]
        release: OneRelease,
        /// The reason
        #[arg(long)]
        reason: Option<String>,
    },
    /// Mark an invalid release as valid again
    Validate(OneRelease),
    /// Write a note on a release; without text, show the note
    Note {
        #[command(flatten)]
        release: OneRelease,
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
    /// Copy images for all kinds of processors, not only for the fleet's
    #[arg(long)]
    pub(crate) all_platforms: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pin {
    /// A device or a fleet
    #[arg(value_name = "DEVICE|FLEET")]
    pub(crate) target: String,
    /// One of its releases
    pub(crate) release: String,
}

#[derive(Debug, Args)]
pub(crate) struct Track {
    /// A device or a fleet
    #[arg(value_name = "DEVICE|FLEET")]
    pub(crate) target: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TagOwner {
    /// Of this device
    #[arg(long, short)]
    pub(crate) device: Option<String>,
    /// Of this fleet
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
    /// Of this release
    #[arg(long, short)]
    pub(crate) release: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TagSubject {
    #[command(flatten)]
    pub(crate) owner: TagOwner,
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
    /// Of this device
    #[arg(long, short)]
    pub(crate) device: Option<String>,
    /// Of this fleet
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

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// List your named keys, or those of a fleet
    List {
        /// Of this fleet
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
        /// What the key may do; by default all that you may do, except with people, organizations and keys
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

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The device
    pub(crate) device: String,
    /// Follow new lines until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// The number of past lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) tail: u32,
    /// Only of this service; may be given several times
    #[arg(long, short)]
    pub(crate) service: Vec<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
