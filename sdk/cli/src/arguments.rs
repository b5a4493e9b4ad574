//! The arguments of the program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use plugin_manifest::Language;

use crate::device::DeviceAddress;

/// Makes, checks, runs, signs and ships plugins of the device supervisor.
#[derive(Parser)]
#[command(name = "supervisor-plugin", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Print results as JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a plugin in a new folder
    New(New),
    /// Build the component of the plugin in this folder
    Build(ProjectArguments),
    /// Say all that a device would refuse about a component, before a device does
    Check(Check),
    /// Serve the plugin on this machine, in the device's runtime, and rebuild it whenever a file is saved
    Run(Run),
    /// Send the requests in test/*.toml to the plugin, and compare its answers
    Test(Test),
    /// Show what a component is, asks for and contains; also one in a registry, by its name there
    Inspect(ComponentArguments),
    /// Create a key that signs plugins
    Keygen(Keygen),
    /// Sign a component
    Sign(Sign),
    /// Check the signature of a component
    Verify(Verify),
    /// Put a component, and its signature, into a registry of container images
    Push(Push),
    /// Get a component, and its signature, from a registry of container images
    Pull(Pull),
    /// Install a plugin on devices in developer mode
    Install(Install),
    /// Remove a plugin from devices in developer mode
    Uninstall(Uninstall),
    /// Be the device of a test that `supervisor-testing` runs
    #[command(hide = true)]
    Harness {
        /// Where it listens
        socket: PathBuf,
    },
    /// Measure calls of a plugin
    Bench(Bench),
    /// Print a script that completes commands in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub(crate) struct New {
    /// The plugin's name, and the folder to create: lower-case letters, digits and `-`
    pub(crate) name: String,
    /// The language: rust, c, go, javascript (js), typescript (ts) or python (py)
    #[arg(long, default_value = "rust", value_parser = Language::find)]
    pub(crate) lang: Language,
    /// Make a plugin of this component, which another toolchain has built: one that answers as wasi:http does, or that
    /// exports interfaces of the supervisor
    #[arg(long, value_name = "FILE", conflicts_with = "lang")]
    pub(crate) component: Option<PathBuf>,
    /// The folder, if it is not to be named after the plugin
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

/// The plugin that is worked on.
#[derive(Args)]
pub(crate) struct ProjectArguments {
    /// The folder with plugin.toml
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    pub(crate) project: PathBuf,
}

/// A component.
#[derive(Args)]
pub(crate) struct ComponentArguments {
    /// The component's file; without it, the plugin in this folder is built
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectArguments,
}

#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// The policy of a device; without it, a policy that grants everything that the plugin asks for
    #[arg(long)]
    pub(crate) policy: Option<PathBuf>,
    /// The type of the device, for a plugin that is for certain boards; without it, one that the plugin is for
    #[arg(long)]
    pub(crate) device_type: Option<String>,
}

#[derive(Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// Where it listens; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:48484")]
    pub(crate) listen: SocketAddr,
    /// What the device has: LEDs, units, files, a cloud
    #[arg(long, default_value = "device.toml", value_name = "FILE")]
    pub(crate) device: PathBuf,
    /// Keep what the plugin stores in this folder; without it, it is gone when the command ends
    #[arg(long)]
    pub(crate) state_dir: Option<PathBuf>,
    /// Grant only what this policy grants; without it, everything that the plugin asks for
    #[arg(long)]
    pub(crate) policy: Option<PathBuf>,
    /// Build once, and not again when a file is saved
    #[arg(long)]
    pub(crate) no_watch: bool,
}

#[derive(Args)]
pub(crate) struct Test {
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// The files with requests and answers; without them, test/*.toml
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Keygen {
    /// Where the secret key is written; the public key is written to FILE.pub
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
    /// The password of the key; without it, the command asks
    #[arg(long, env = "SUPERVISOR_PLUGIN_KEY_PASSWORD", hide_env_values = true)]
    pub(crate) password: Option<String>,
    /// Write the signature to FILE.minisig, and leave the component as it is
    #[arg(long)]
    pub(crate) detached: bool,
}

#[derive(Args)]
pub(crate) struct Verify {
    /// The component's file
    pub(crate) file: PathBuf,
    /// A policy whose keys are tried
    #[arg(long, required_unless_present = "public_key")]
    pub(crate) policy: Option<PathBuf>,
    /// A public key, in base64 or as a file
    #[arg(long)]
    pub(crate) public_key: Option<String>,
}

#[derive(Args)]
pub(crate) struct Push {
    /// The component's file; its signature is in it, or in FILE.minisig
    pub(crate) file: PathBuf,
    /// Where it is put, for example `registry.example.com/plugins/rails:0.1.0`
    pub(crate) reference: String,
}

#[derive(Args)]
pub(crate) struct Pull {
    /// Where it is, with a tag or a digest, for example `registry.example.com/plugins/rails:0.1.0`
    pub(crate) reference: String,
    /// The file to write; without it, NAME.wasm in this folder
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace another file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Devices in developer mode.
#[derive(Args)]
pub(crate) struct DeviceArguments {
    /// The address of a device, repeatable; without a port, that of the supervisor (48484)
    #[arg(long = "device", value_name = "ADDRESS", required = true, value_parser = str::parse::<DeviceAddress>)]
    pub(crate) devices: Vec<DeviceAddress>,
    /// The device's own key, which `supervisor api-key show` prints there
    #[arg(long, env = "SUPERVISOR_PLUGIN_DEVICE_KEY", hide_env_values = true)]
    pub(crate) key: String,
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
    /// The method and the path that are called, for example `GET /v3/hello/Ada`
    pub(crate) request: String,
    #[command(flatten)]
    pub(crate) component: ComponentArguments,
    /// The body of the request
    #[arg(long)]
    pub(crate) body: Option<String>,
    /// How many calls are made, one after the other
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) calls: u32,
    /// How many calls are under way at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) at_a_time: u32,
    /// What the device has
    #[arg(long, default_value = "device.toml", value_name = "FILE")]
    pub(crate) device: PathBuf,
}
