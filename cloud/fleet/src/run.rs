//! Dispatches each command to its implementation.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::arguments::{Arguments, Command};
use crate::cloud::Cloud;
use crate::commands::{
    account, device, devices, fleets, invitations, joining, keys, logs, members, organizations,
    people, pins, purge, release_assets, releases, settings, sign, signing_key, ssh_keys, tags,
    variables,
};
use crate::deploy;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Runs the command.
///
/// # Errors
/// The failure of the command.
pub(crate) fn run(arguments: Arguments, output: &Output) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("the program cannot start").because(error))?;
    runtime.block_on(done(arguments.command, output))
}

async fn done(command: Command, output: &Output) -> Result<()> {
    match command {
        Command::Login(login) => return people::login(login, output).await,
        Command::Logout => return people::logout(output).await,
        Command::Register(register) => return account::register(register, output).await,
        Command::Settings => return settings::show(output),
        Command::SigningKey(command) => return signing_key::run(output, command),
        Command::Completion { shell } => {
            // Into memory first: a reader that stops early is not a failure.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "fleet", &mut script);
            let _ = std::io::stdout().write_all(&script);
            return Ok(());
        }
        _ => {}
    }
    let cloud = &Cloud::from_session().await?;
    match command {
        Command::Login(_)
        | Command::Logout
        | Command::Register(_)
        | Command::Settings
        | Command::SigningKey(_)
        | Command::Completion { .. } => Ok(()),
        Command::Password(password) => account::password(cloud, output, password).await,
        Command::Organizations => organizations::list(cloud, output).await,
        Command::Organization(command) => organizations::run(cloud, output, command).await,
        Command::Members(of) => members::list(cloud, output, &of).await,
        Command::Member(command) => members::run(cloud, output, command).await,
        Command::Invitations(of) => invitations::list(cloud, output, &of).await,
        Command::Invitation(command) => invitations::run(cloud, output, command).await,
        Command::SshKeys => ssh_keys::list(cloud, output).await,
        Command::SshKey(command) => ssh_keys::run(cloud, output, command).await,
        Command::Purge(of) => purge::run(cloud, output, of).await,
        Command::ReleaseAsset(command) => release_assets::run(cloud, output, command).await,
        Command::Whoami => people::whoami(cloud, output).await,
        Command::Fleets => fleets::list(cloud, output).await,
        Command::Create(create) => fleets::create(cloud, output, create).await,
        Command::Show(one) => fleets::show(cloud, output, &one.fleet).await,
        Command::Rename { fleet, name } => fleets::rename(cloud, output, &fleet, &name).await,
        Command::Restart(one) => fleets::restart(cloud, output, &one.fleet).await,
        Command::Config(config) => joining::config(cloud, output, config).await,
        Command::DeviceTypes => joining::device_types(cloud, output).await,
        Command::Delete(delete) => fleets::delete(cloud, output, delete).await,
        Command::Devices { fleet } => devices::list(cloud, output, fleet.as_deref()).await,
        Command::Device(command) => device::run(cloud, output, command).await,
        Command::Releases { fleet } => releases::list(cloud, output, &fleet).await,
        Command::Release(command) => releases::run(cloud, output, command).await,
        Command::Deploy(deploy) => deploy::run(cloud, output, deploy).await,
        Command::Sign(sign) => sign::run(cloud, output, sign).await,
        Command::Pin { target, release } => pins::pin(cloud, output, &target, &release).await,
        Command::Track { target } => pins::track(cloud, output, &target).await,
        Command::Tags(owner) => tags::list(cloud, output, &owner).await,
        Command::Tag(command) => tags::run(cloud, output, command).await,
        Command::Variables(of) => variables::list(cloud, output, &of).await,
        Command::Variable(command) => variables::run(cloud, output, command).await,
        Command::Keys(command) => keys::run(cloud, output, command).await,
        Command::Logs(logs) => logs::run(cloud, output, logs).await,
    }
}
