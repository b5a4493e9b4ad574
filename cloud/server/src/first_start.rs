//! Initial data of a database at the start of the cloud: the catalogue of boards, the organization of the platform's
//! own systems, and for a new database an organization and an administrator.

use anyhow::{Context as _, Result};
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use cloud_core::password;
use cloud_core::random::random_text;
use data::catalogue::{CATALOGUE, Catalogue, FirstUser};
use data::{Database, SystemPurpose, setting};

/// The name under which it is stored that there were users.
const HAD_USERS: &str = "had-users";

/// The account of the first administrator, which is printed once.
pub(crate) struct InitialSignIn {
    email: String,
    /// The password, if it was generated.
    password: Option<String>,
}

impl InitialSignIn {
    /// Prints it to the console, not to the log.
    pub(crate) fn print(&self) {
        println!("A new cloud. Its administrator is {}", self.email);
        if let Some(password) = &self.password {
            println!("and has the password {password} (shown this once).");
        }
    }
}

/// Adds entries of the catalogue that the database lacks, the administrator if there is no user yet, and the
/// organization of the system.
///
/// # Errors
/// If the database fails.
pub(crate) async fn prepare(cloud: &Cloud) -> Result<Option<InitialSignIn>> {
    let catalogue: Catalogue = CATALOGUE.parse()?;
    cloud
        .database
        .add_catalogue(&catalogue, &cloud.environment, now())
        .await
        .context("the catalogue of device types cannot be written into the database")?;
    let first = first_user(cloud).await?;
    keep_system_organization(cloud).await?;
    Ok(first)
}

/// Logs a warning if a tenant has the handle, or had devices run software that counted as the platform's.
async fn keep_system_organization(cloud: &Cloud) -> Result<()> {
    let stored = cloud
        .database
        .keep_system_organization(&cloud.environment, now())
        .await
        .context("failed to create the organization of the system")?;
    let reserved = &cloud.environment.branding.os_organization;
    if stored.handle != *reserved {
        tracing::warn!(
            organization = %reserved,
            "an organization that this cloud did not create has the handle `{reserved}`, which belongs to the system's: the system's organization is `{}`, and devices accept no supervisor and no operating system from the other one. Give that one another handle, or delete it, and the system's gets `{reserved}` at the next start",
            stored.handle
        );
    }
    if stored.freed_devices > 0 {
        tracing::warn!(
            "{} devices had, as their target, a supervisor or an operating system of an organization that is neither the system's nor their own; that target was removed",
            stored.freed_devices
        );
    }
    Ok(())
}

/// Creates the administrator, if there is no user yet.
async fn first_user(cloud: &Cloud) -> Result<Option<InitialSignIn>> {
    let there = any_user(&cloud.database).await?;
    let mut transaction = cloud.database.begin().await?;
    let had = setting::read(&mut transaction, HAD_USERS).await?.is_some();
    if there && !had {
        setting::write(&mut transaction, HAD_USERS, "yes").await?;
    }
    transaction.commit().await?;
    if there {
        return Ok(None);
    }
    if had {
        tracing::warn!(
            "the cloud has no users any more, and creates none automatically: a new administrator would own what former users left behind. To let the cloud create one, delete the row \
             `{HAD_USERS}` of the table `platform_setting`"
        );
        return Ok(None);
    }
    let configuration = &cloud.configuration;
    if let Some(why) = configuration
        .admin_password
        .as_deref()
        .and_then(password::fault)
    {
        anyhow::bail!(
            "the password of the administrator (`--admin-password`) is not accepted: {why}"
        );
    }
    let made = match &configuration.admin_password {
        Some(_) => None,
        None => Some(random_text(12)?),
    };
    let password = configuration
        .admin_password
        .clone()
        .or_else(|| made.clone());
    let email = configuration.admin_email.clone();
    let administrator = FirstUser {
        organization: "admin".to_owned(),
        username: "admin".to_owned(),
        email: email.clone(),
        password_hash: password::hash(password.unwrap_or_default()).await?,
    };
    let user = cloud
        .database
        .first_user(&administrator, &cloud.environment, now())
        .await
        .context("failed to create the administrator")?;
    let mut transaction = cloud.database.begin().await?;
    setting::write(&mut transaction, HAD_USERS, "yes").await?;
    transaction.commit().await?;
    // Another replica may have created it first.
    Ok(user.map(|_| InitialSignIn {
        email,
        password: made,
    }))
}

async fn any_user(database: &Database) -> Result<bool> {
    let any = SystemPurpose::Operation.sql("SELECT id FROM \"user\" LIMIT 1");
    Ok(database.row(&any).await?.is_some())
}
