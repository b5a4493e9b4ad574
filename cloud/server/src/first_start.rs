//! What a new database is given: the catalogue of boards, an organization and an administrator.

use anyhow::{Context as _, Result};
use data::catalogue::{CATALOGUE, Catalogue, FirstUser};
use data::{Database, sql};

use crate::cloud::{Cloud, now};
use crate::password;
use crate::session::random_text;

/// What somebody has to be told once.
pub(crate) struct First {
    email: String,
    /// The password that was made up.
    password: Option<String>,
}

impl First {
    /// Prints it, to where people look and not into the log.
    pub(crate) fn print(&self) {
        println!("A new cloud. Its administrator is {}", self.email);
        if let Some(password) = &self.password {
            println!("and has the password {password} (shown this once).");
        }
    }
}

/// Adds what the catalogue has more than the database, and the administrator where there is no user yet.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn prepare(cloud: &Cloud) -> Result<Option<First>> {
    let catalogue: Catalogue = CATALOGUE.parse()?;
    cloud
        .database
        .add_catalogue(&catalogue, &cloud.environment, now())
        .await
        .context("the catalogue of device types cannot be brought into the database")?;
    if any_user(&cloud.database).await? {
        return Ok(None);
    }
    let configuration = &cloud.configuration;
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
        .context("the administrator cannot be made")?;
    // Another replica may have been faster.
    Ok(user.map(|_| First {
        email,
        password: made,
    }))
}

async fn any_user(database: &Database) -> Result<bool> {
    let any = sql("SELECT id FROM \"user\" LIMIT 1");
    Ok(database.row(&any).await?.is_some())
}
