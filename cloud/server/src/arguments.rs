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
    /// Print the certificate that the registry is to trust (`rootcertbundle`), in PEM.
    RegistryCertificate(Box<Serve>),
    /// Forget the secret that sessions are signed with and the key that tokens for the registry are signed with, while
    /// the cloud is stopped: it makes new ones when it starts. Everybody signs in again, and the registry has to be
    /// given its new certificate.
    RotateSigningKeys(Box<Serve>),
    /// Keys that secrets in the database are encrypted with.
    #[command(subcommand)]
    SecretsKey(SecretsKey),
    /// Encrypt all secrets in the database with the first key, also those that were encrypted with another or not at
    /// all. The cloud may run meanwhile; what was broken off goes on when it is started again.
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
    /// Where the database is said.
    #[command(flatten)]
    pub(crate) settings: Serve,
}

/// `fleet-cloud secrets-key`.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsKey {
    /// Print a new key, as a line of the file that `--secrets-key-file` names.
    Generate {
        /// What it is called: letters, digits, `.`, `_` and `-` [default: made up].
        #[arg(long)]
        name: Option<String>,
    },
}

/// `fleet-cloud rotate-secrets`.
#[derive(Debug, Args)]
pub(crate) struct RotateSecrets {
    /// Decrypt them instead, for a program that knows no keys; while the cloud is stopped.
    #[arg(long)]
    pub(crate) decrypt: bool,
    /// Where the database and the keys are said.
    #[command(flatten)]
    pub(crate) settings: Serve,
}

/// Each is also an environment variable and a key of the configuration file; the flag wins over the
/// variable, and that over the file.
#[derive(Debug, Default, Args)]
pub(crate) struct Serve {
    /// The address to listen at [default: 127.0.0.1:8080].
    #[arg(long, env = "FLEET_CLOUD_LISTEN", value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// Where everything is kept: `sqlite:PATH` or `postgres://…` [default: sqlite:fleet-cloud.sqlite].
    #[arg(
        long,
        env = "FLEET_CLOUD_DATABASE",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) database: Option<String>,
    /// What several replicas speak to each other by: `nats://[user:password@]host[:port][,…]`
    /// [default: none, this one is alone].
    #[arg(
        long,
        env = "FLEET_CLOUD_BUS",
        value_name = "URL",
        hide_env_values = true
    )]
    pub(crate) bus: Option<String>,
    /// The administrator that the first start makes [default: admin@localhost.localdomain].
    #[arg(long, env = "FLEET_CLOUD_ADMIN_EMAIL", value_name = "E")]
    pub(crate) admin_email: Option<String>,
    /// The administrator's password; without it, one is made at the first start and printed once.
    #[arg(
        long,
        env = "FLEET_CLOUD_ADMIN_PASSWORD",
        value_name = "P",
        hide_env_values = true
    )]
    pub(crate) admin_password: Option<String>,
    /// The address that devices and people reach this cloud by, where it is not that of `--listen`.
    #[arg(long, env = "FLEET_CLOUD_PUBLIC_URL", value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// The registry that images of releases are kept in.
    #[arg(long, env = "FLEET_CLOUD_REGISTRY", value_name = "HOST")]
    pub(crate) registry: Option<String>,
    /// How the cloud reaches the registry, to delete images of what is deleted; without it they stay there.
    #[arg(long, env = "FLEET_CLOUD_REGISTRY_URL", value_name = "URL")]
    pub(crate) registry_url: Option<String>,
    /// The file with the keys that secrets in the database are encrypted with, for its owner alone
    /// [default: none, secrets are kept as they are].
    #[arg(long, env = "FLEET_CLOUD_SECRETS_KEY_FILE", value_name = "FILE")]
    pub(crate) secrets_key_file: Option<PathBuf>,
    /// How log lines look.
    #[arg(long, env = "FLEET_CLOUD_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// The configuration file (TOML).
    #[arg(long, env = "FLEET_CLOUD_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs: an object a line.
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
