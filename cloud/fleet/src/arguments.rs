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
    after_help = "Devices are given by uuid (or its first four characters and more), name or id; fleets by slug, \
                  name or id; releases by commit (likewise), version or id.\n\
                  Environment: FLEET_URL and FLEET_TOKEN go before what `fleet login` kept; NO_COLOR.\n\
                  Exit codes: 0 done, 1 failed, 2 asked for wrongly, 3 not signed in or not allowed, 4 no such thing."
)]
pub(crate) struct Arguments {
    /// Say everything as JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Sign in to a cloud
    Login(Login),
    /// Forget the credential of this machine
    Logout,
    /// Who is signed in, and where
    Whoami,
    /// Make an account; asks for its password without showing it
    Register(Register),
    /// Change your password, which ends your other sessions; asks without showing what is typed
    Password(Password),
    /// Show which cloud this program asks, as whom, and what says so
    Settings,
    /// List organizations
    #[command(visible_alias = "orgs")]
    Organizations,
    /// Make, show, rename or delete an organization
    #[command(subcommand, visible_alias = "org", arg_required_else_help = true)]
    Organization(OrganizationCommand),
    /// List the members of an organization, or those whom a fleet is shared with
    Members(Group),
    /// Change or remove a member
    #[command(subcommand, arg_required_else_help = true)]
    Member(MemberCommand),
    /// List the invitations to an organization or a fleet that nobody accepted yet
    Invitations(Group),
    /// Invite somebody to an organization or a fleet, take that back, or accept
    #[command(subcommand, arg_required_else_help = true)]
    Invitation(InvitationCommand),
    /// List your SSH keys
    SshKeys,
    /// Add or remove an SSH key
    #[command(subcommand, arg_required_else_help = true)]
    SshKey(SshKeyCommand),
    /// List fleets
    Fleets,
    /// Make a fleet
    Create(Create),
    /// Show a fleet
    Show(OneFleet),
    /// Give a fleet another name
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
    /// Make the config.json with which new devices join a fleet, or with which a board is a device that is registered
    Config(ConfigFile),
    /// List the kinds of boards that fleets can be for
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
    /// List, upload, download or delete files beside a release
    #[command(subcommand, visible_alias = "asset", arg_required_else_help = true)]
    ReleaseAsset(AssetCommand),
    /// Make a release from a compose file, its images copied to the cloud's registry
    Deploy(Deploy),
    /// Sign a release with a key that the cloud does not have, for devices that take nothing else
    Sign(Sign),
    /// Keys that sign releases
    #[command(subcommand, arg_required_else_help = true)]
    SigningKey(SigningKeyCommand),
    /// Have a device or a fleet run one release, and stay on it
    Pin(Pin),
    /// Have a device follow its fleet again, or a fleet its latest release
    #[command(visible_alias = "unpin")]
    Track(Track),
    /// List the tags of a device, fleet or release
    Tags(Tagged),
    /// Set or remove a tag
    #[command(subcommand, arg_required_else_help = true)]
    Tag(TagCommand),
    /// List the variables of a fleet or device, configuration among them
    #[command(visible_alias = "vars")]
    Variables(Of),
    /// Set or remove a variable
    #[command(subcommand, visible_alias = "var", arg_required_else_help = true)]
    Variable(VariableCommand),
    /// API keys
    #[command(subcommand, arg_required_else_help = true)]
    Keys(KeysCommand),
    /// What a device's services print
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
    /// Look
    Read,
    /// Look, and make releases
    Deploy,
    /// Look, and change devices and ask them to do something
    Device,
    /// Look, make releases, and change fleets and devices
    Fleet,
}

impl KeyScope {
    /// As the API has it.
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
    /// The cloud's address, such as https://cloud.example.com; the last one unless given
    pub(crate) url: Option<String>,
    /// Your e-mail address or name; asked for unless given
    #[arg(long, conflicts_with = "token")]
    pub(crate) email: Option<String>,
    /// Your password; asked for unless given
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
    /// Its name: letters, digits, `_` and `-`, four at least
    pub(crate) name: String,
    /// The kind of its boards, such as raspberrypi4-64
    #[arg(long = "type", value_name = "SLUG")]
    pub(crate) device_type: String,
    /// The handle of the organization it belongs to; yours where you have but one
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
    /// Of this device alone, with a new key of its own; one that was registered beforehand
    #[arg(long, short, conflicts_with = "fleet")]
    pub(crate) device: Option<String>,
    /// The kind of the board, where it is another than the fleet's
    #[arg(long = "type", value_name = "SLUG", conflicts_with = "device")]
    pub(crate) device_type: Option<String>,
    /// Where to write it; to standard output unless given
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
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteFleet {
    /// The fleet
    pub(crate) fleet: String,
    /// Do not ask
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Devices {
    /// Of this fleet alone
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
    /// The fleet that it is of, where its version alone does not tell
    #[arg(long, short)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReleaseCommand {
    /// Show a release and its images
    Show(OneRelease),
    /// Make a draft final
    Finalize(OneRelease),
    /// Keep a release from becoming a target
    Invalidate {
        #[command(flatten)]
        release: OneRelease,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take back that a release is invalid
    Validate(OneRelease),
    /// Write a note on a release; without text, show the one that it has
    Note {
        #[command(flatten)]
        release: OneRelease,
        /// The note; an empty one (`''`) removes it
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
    /// Make a draft: devices take it once it is made final, or where they are pinned to it
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
pub(crate) struct Tagged {
    #[command(flatten)]
    pub(crate) owner: TagOwner,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagCommand {
    /// Set a tag
    Set {
        /// Its key, without white space
        key: String,
        /// Its value; nothing unless given
        #[arg(default_value = "", allow_hyphen_values = true)]
        value: String,
        #[command(flatten)]
        owner: TagOwner,
    },
    /// Remove a tag
    Rm {
        /// Its key
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
pub(crate) struct Of {
    #[command(flatten)]
    pub(crate) owner: VariableOwner,
    /// For this service alone
    #[arg(long, short)]
    pub(crate) service: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VariableCommand {
    /// Set a variable; names that begin as the cloud's own do (`PLATFORM_`) are configuration
    Set {
        /// NAME, or NAME=VALUE
        name: String,
        /// Its value, where it is not behind a `=`
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        #[command(flatten)]
        of: Of,
        /// It is configuration; refused where its name does not say so
        #[arg(long, conflicts_with = "service")]
        config: bool,
        /// Nobody reads the value again but the devices that get it; stays so when the value is set anew
        #[arg(long)]
        secret: bool,
        /// Whoever may change it reads the value, also where the one before was secret
        #[arg(long, conflicts_with = "secret")]
        readable: bool,
        /// Read the value from standard input, without a line end behind it
        #[arg(long, conflicts_with = "value")]
        stdin: bool,
    },
    /// Give a variable another name
    Rename {
        /// Its name
        name: String,
        /// Its new name
        new: String,
        #[command(flatten)]
        of: Of,
    },
    /// Remove a variable
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        of: Of,
        /// It is configuration; refused where its name does not say so
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
    /// Make a key that stands for you; it is shown once
    Create {
        /// What it is called
        name: String,
        /// What it is for
        #[arg(long)]
        description: Option<String>,
        /// Until when it is good, such as 2027-01-31
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
        /// What it may do; all that you may unless given, but for people, organizations and keys
        #[arg(long)]
        scope: Option<KeyScope>,
        /// The only fleet that it reaches
        #[arg(long, short)]
        fleet: Option<String>,
    },
    /// Delete a key, by its name or id
    Rm {
        /// Its name or id
        key: String,
    },
    /// Make a key with which new devices join a fleet; it is shown once
    Provisioning {
        /// The fleet
        fleet: String,
        /// What it is called
        #[arg(long)]
        name: Option<String>,
        /// What it is for
        #[arg(long)]
        description: Option<String>,
        /// Until when it is good, such as 2027-01-31
        #[arg(long, value_name = "DATE")]
        expires: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The device
    pub(crate) device: String,
    /// Go on with what comes, until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// So many lines of what was
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) tail: u32,
    /// Of this service alone; may be given several times
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
