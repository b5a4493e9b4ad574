//! The command line, as clap parses it: `fleet --help` is generated from this.

pub(crate) mod assets;
pub(crate) mod device;
pub(crate) mod fleets;
pub(crate) mod keys;
pub(crate) mod people;
pub(crate) mod releases;
pub(crate) mod sign;
pub(crate) mod variables;

use assets::AssetCommand;
use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use device::DeviceCommand;
use fleets::{ConfigFile, Create, DeleteFleet, FleetArgument, PurgeFleet};
use keys::KeysCommand;
use people::{
    Group, InvitationCommand, MemberCommand, OrganizationCommand, Password, Register, SshKeyCommand,
};
use releases::{Deploy, ReleaseCommand};
use sign::{Sign, SigningKeyCommand};
use variables::{TagCommand, TagOwner, VariableCommand, VariableScope};

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
    Show(FleetArgument),
    /// Rename a fleet
    Rename {
        /// The fleet
        fleet: String,
        /// Its new name
        name: String,
    },
    /// Restart the services of a fleet's devices
    Restart(FleetArgument),
    /// Empty the volumes of the services of a fleet's devices
    Purge(PurgeFleet),
    /// Delete a fleet, with its devices and releases
    Delete(DeleteFleet),
    /// Write the config.json with which new devices join a fleet, or with which a board becomes a registered device
    Config(ConfigFile),
    /// List the device types that fleets can have
    DeviceTypes,
    /// List devices
    Devices {
        /// List only the devices of this fleet
        #[arg(long, short)]
        fleet: Option<String>,
    },
    /// Show, change or operate a device
    #[command(subcommand, arg_required_else_help = true)]
    Device(DeviceCommand),
    /// List a fleet's releases
    Releases {
        /// The fleet
        #[arg(long, short)]
        fleet: String,
    },
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
    Pin {
        /// A device or a fleet
        #[arg(value_name = "DEVICE|FLEET")]
        target: String,
        /// One of its releases
        release: String,
    },
    /// Make a device follow its fleet again, or a fleet its latest release
    #[command(visible_alias = "unpin")]
    Track {
        /// A device or a fleet
        #[arg(value_name = "DEVICE|FLEET")]
        target: String,
    },
    /// List the tags of a device, fleet or release
    Tags(TagOwner),
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
    /// Show the output of a device's services
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
pub(crate) struct Logs {
    /// The device
    pub(crate) device: String,
    /// Follow new lines until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// The number of past lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    pub(crate) tail: u32,
    /// Show only the lines of this service, repeatable
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
