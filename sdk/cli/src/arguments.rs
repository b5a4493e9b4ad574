//! The arguments of the program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use plugin_manifest::Language;

use crate::device::DeviceAddress;

/// The variable with the password of the key that signs plugins.
pub(crate) const KEY_PASSWORD: &str = "SUPERVISOR_PLUGIN_KEY_PASSWORD";
/// The variable with the API key of a device.
pub(crate) const DEVICE_KEY: &str = "SUPERVISOR_PLUGIN_DEVICE_KEY";

/// Create, check, run, sign and distribute plugins of the device supervisor
#[derive(Parser)]
#[command(name = "supervisor-plugin", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Print results as JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// Returns the command line without hidden commands: clap's completion scripts would offer them, and clap has no
    /// function that removes a command.
    pub(crate) fn visible_commands() -> clap::Command {
        let all = Arguments::command();
        let visible = all.get_subcommands().filter(|it| !it.is_hide_set());
        clap::Command::new("supervisor-plugin")
            .version(env!("CARGO_PKG_VERSION"))
            .args(all.get_arguments().cloned())
            .subcommands(visible.cloned())
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a plugin in a new folder
    New(NewArguments),
    /// Build the component of the plugin in this folder
    Build(Build),
    /// Report everything that a device would refuse about a component
    Check(Check),
    /// Serve the plugin on this machine, in the device's runtime, and rebuild it whenever a file is saved
    Run(Run),
    /// Send the requests in test/*.toml to the plugin, and compare its answers
    Test(Test),
    /// Show the properties, imports and contents of a component; also of one in a registry, by its name there
    Inspect(ComponentArguments),
    /// Create a key that signs plugins
    Keygen(Keygen),
    /// Sign a component
    Sign(Sign),
    /// Check the signature of a component
    Verify(Verify),
    /// Upload a component, and its signature, to a registry of container images
    Push(Push),
    /// Download a component, and its signature, from a registry of container images
    Pull(Pull),
    /// Install a plugin on devices in developer mode
    Install(Install),
    /// Remove a plugin from devices in developer mode
    Uninstall(Uninstall),
    /// Simulate the device of a test that `supervisor-testing` runs
    #[command(hide = true)]
    Harness {
        /// The socket to listen on
        socket: PathBuf,
    },
    /// Measure how fast a plugin answers requests
    Bench(Bench),
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub(crate) struct NewArguments {
    /// The plugin's name, and the folder to create: lower-case letters, digits and `-`
    pub(crate) name: String,
    /// The language: rust, c, go, javascript (js), typescript (ts) or python (py)
    #[arg(long, default_value = "rust", value_parser = Language::find)]
    pub(crate) lang: Language,
    /// Wrap a component built by another toolchain: one that exports wasi:http or interfaces of the supervisor
    #[arg(long, value_name = "FILE", conflicts_with = "lang")]
    pub(crate) component: Option<PathBuf>,
    /// The folder; by default, one with the plugin's name
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

/// The plugin that is being developed.
#[derive(Args)]
pub(crate) struct ProjectArguments {
    /// The folder with plugin.toml
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub(crate) project: PathBuf,
}

/// A component.
#[derive(Args)]
pub(crate) struct ComponentArguments {
    /// The component's file; without it, the command builds the plugin in this folder
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
}

#[derive(Args)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
    /// Sign the component as `sign` does: the secret key, of `keygen` or of minisign
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// The key's password; by default the command asks for it
    #[arg(long, env = KEY_PASSWORD, hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// Build also if nothing has changed since the last build
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// The policy of a device; without it, a policy that grants everything that the plugin asks for
    #[arg(long)]
    pub(crate) policy: Option<PathBuf>,
    /// The device type, for a plugin that supports only some; without it, one that the plugin supports
    #[arg(long)]
    pub(crate) device_type: Option<String>,
}

#[derive(Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// The address to listen on; port 0 chooses a free port
    #[arg(long, default_value = "127.0.0.1:48484")]
    pub(crate) listen: SocketAddr,
    /// The file that describes the simulated device: its LEDs, units, files, cloud; without it, the project's
    /// device.toml, if there is one
    #[arg(long, value_name = "FILE")]
    pub(crate) device: Option<PathBuf>,
    /// Keep the simulated device in this new or empty folder: the plugin's stored data and, below `root`, the host's
    /// files; without it, they are deleted when the command ends
    #[arg(long)]
    pub(crate) state_dir: Option<PathBuf>,
    /// Grant only what this policy grants; without it, everything that the plugin asks for
    #[arg(long)]
    pub(crate) policy: Option<PathBuf>,
    /// Build only once, not again when a file is saved
    #[arg(long)]
    pub(crate) no_watch: bool,
}

#[derive(Args)]
pub(crate) struct Test {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// A file with requests and answers, repeatable; by default, all test/*.toml
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Keygen {
    /// The file for the secret key; the public key is written to FILE.pub
    pub(crate) file: PathBuf,
    /// Do not protect the key with a password
    #[arg(long)]
    pub(crate) no_password: bool,
}

#[derive(Args)]
pub(crate) struct Sign {
    /// The component's file
    pub(crate) file: PathBuf,
    /// The secret key, of `keygen` or of minisign
    #[arg(long)]
    pub(crate) key: PathBuf,
    /// The key's password; by default the command asks for it
    #[arg(long, env = KEY_PASSWORD, hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// Write the signature to FILE.minisig, and leave the component unchanged
    #[arg(long)]
    pub(crate) detached: bool,
}

#[derive(Args)]
pub(crate) struct Verify {
    /// The component's file
    pub(crate) file: PathBuf,
    /// A policy, one of whose keys must have signed it
    #[arg(long, required_unless_present = "public_key")]
    pub(crate) policy: Option<PathBuf>,
    /// The public key that must have signed it, in base64 or as a file
    #[arg(long)]
    pub(crate) public_key: Option<String>,
}

#[derive(Args)]
pub(crate) struct Push {
    /// The component's file; its signature is in it, or in FILE.minisig
    pub(crate) file: PathBuf,
    /// Its name in the registry, for example `registry.example.com/plugins/rails:0.1.0`
    pub(crate) reference: String,
}

#[derive(Args)]
pub(crate) struct Pull {
    /// Its name in the registry, with a tag or a digest, for example `registry.example.com/plugins/rails:0.1.0`
    pub(crate) reference: String,
    /// The file to write; by default, NAME.wasm in this folder
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite a different file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Devices in developer mode.
#[derive(Args)]
pub(crate) struct DeviceArguments {
    /// The address of a device, repeatable; without a port, that of the supervisor (48484)
    #[arg(long = "device", value_name = "ADDRESS", required = true, value_parser = str::parse::<DeviceAddress>)]
    pub(crate) devices: Vec<DeviceAddress>,
    /// The API key of the device, which `supervisor api-key show` prints there
    #[arg(long, env = DEVICE_KEY, hide_env_values = true)]
    pub(crate) key: Option<String>,
}

#[derive(Args)]
pub(crate) struct Install {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    #[command(flatten)]
    pub(crate) devices: DeviceArguments,
}

#[derive(Args)]
pub(crate) struct Uninstall {
    /// The plugin's name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) devices: DeviceArguments,
}

#[derive(Args)]
pub(crate) struct Bench {
    /// The method and the path of the request, for example `GET /v3/hello/Ada`
    pub(crate) request: String,
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// The body of the request
    #[arg(long)]
    pub(crate) body: Option<String>,
    /// Number of calls
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) calls: u32,
    /// Concurrent calls
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) at_a_time: u32,
    /// The file that describes the simulated device; without it, the project's device.toml, if there is one
    #[arg(long, value_name = "FILE")]
    pub(crate) device: Option<PathBuf>,
}
