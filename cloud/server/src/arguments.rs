//! The command line of the program.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The fleet cloud.
#[derive(Debug, Parser)]
#[command(name = "fleet-cloud", version, about)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the data API, devices and the proxy that reaches them.
    Serve(Box<Serve>),
    /// Print the registry's certificate for `rootcertbundle`, in PEM.
    RegistryCertificate(Box<Serve>),
    /// Delete the keys that sign sessions and registry tokens (stop the cloud first); new ones are created at the next
    /// start. Everybody must then sign in again, and the registry needs its new certificate.
    RotateSigningKeys(Box<Serve>),
    /// Create keys that encrypt secrets in the database.
    #[command(subcommand)]
    SecretsKey(SecretsKey),
    /// Encrypt all secrets in the database with the first key, including those that are encrypted with another key or
    /// not at all. The cloud may keep running; an interrupted run continues when you start it again.
    RotateSecrets(Box<RotateSecrets>),
    /// Give a user a new password, print it, and end their sessions.
    ResetPassword(Box<ResetPassword>),
}

/// `fleet-cloud reset-password`.
#[derive(Debug, Args)]
pub(crate) struct ResetPassword {
    /// The e-mail address of the user.
    #[arg(value_name = "EMAIL")]
    pub(crate) email: String,
    /// The database.
    #[command(flatten)]
    pub(crate) settings: Serve,
}

/// `fleet-cloud secrets-key`.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsKey {
    /// Print a new key, as a line of the file that `--secrets-key-file` names.
    Generate {
        /// Name of the key: letters, digits, `.`, `_` and `-` [default: random].
        #[arg(long)]
        name: Option<String>,
    },
}

/// `fleet-cloud rotate-secrets`.
#[derive(Debug, Args)]
pub(crate) struct RotateSecrets {
    /// Decrypt them instead, for versions without encryption; stop the cloud first.
    #[arg(long)]
    pub(crate) decrypt: bool,
    /// The database and keys.
    #[command(flatten)]
    pub(crate) settings: Serve,
}

/// Each is also an environment variable and a key of the configuration file; the flag takes precedence over the
/// variable, and the variable over the file.
#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    /// The address to listen on [default: 127.0.0.1:8080].
    #[arg(long, env = "FLEET_CLOUD_LISTEN", value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// The database: `sqlite:PATH` or `postgres://…` [default: sqlite:fleet-cloud.sqlite].
    #[arg(
        long,
        env = "FLEET_CLOUD_DATABASE",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) database: Option<String>,
    /// The NATS server through which replicas communicate: `nats://[user:password@]host[:port][,…]`
    /// [default: none, a single replica].
    #[arg(
        long,
        env = "FLEET_CLOUD_BUS",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) bus: Option<String>,
    /// The e-mail address of the administrator that the first start creates [default: admin@localhost.localdomain].
    #[arg(long, env = "FLEET_CLOUD_ADMIN_EMAIL", value_name = "EMAIL")]
    pub(crate) admin_email: Option<String>,
    /// The administrator's password; without it, one is generated at the first start and printed once.
    #[arg(
        long,
        env = "FLEET_CLOUD_ADMIN_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true
    )]
    pub(crate) admin_password: Option<String>,
    /// The address at which devices and people reach this cloud; required unless `--listen` is a loopback address.
    #[arg(long, env = "FLEET_CLOUD_PUBLIC_URL", value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// The registry that stores images of releases.
    #[arg(long, env = "FLEET_CLOUD_REGISTRY", value_name = "HOST")]
    pub(crate) registry: Option<String>,
    /// The address at which the cloud reaches the registry, to delete unused images; without it, they stay there.
    #[arg(long, env = "FLEET_CLOUD_REGISTRY_URL", value_name = "URL")]
    pub(crate) registry_url: Option<String>,
    /// The file with the keys that encrypt secrets in the database, readable by its owner only
    /// [default: none, secrets are not encrypted].
    #[arg(long, env = "FLEET_CLOUD_SECRETS_KEY_FILE", value_name = "FILE")]
    pub(crate) secrets_key_file: Option<PathBuf>,
    /// Log format [default: text].
    #[arg(long, env = "FLEET_CLOUD_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// The configuration file (TOML).
    #[arg(long, env = "FLEET_CLOUD_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Plain text.
    Text,
    /// JSON, one object per line.
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_and_variable_is_in_the_documentation() {
        let page = include_str!("../../../docs/fleet-cloud.md");
        let command = Arguments::command();
        let serve = command.find_subcommand("serve").expect("serve");
        for argument in serve.get_arguments() {
            let Some(flag) = argument.get_long().filter(|flag| *flag != "config") else {
                continue;
            };
            let variable = argument
                .get_env()
                .expect("a variable")
                .to_str()
                .expect("text");
            let row = format!(
                "| `--{flag}` | `{variable}` | `{}` |",
                flag.replace('-', "_")
            );
            assert!(
                page.contains(&row),
                "docs/fleet-cloud.md has no row `{row}`"
            );
        }
    }
}
