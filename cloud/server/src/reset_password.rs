//! `fleet-cloud reset-password`: for whoever runs the cloud, where a password is forgotten.

use anyhow::{Context as _, Result, ensure};
use data::{Database, sql};

use crate::arguments::ResetPassword;
use crate::cloud::now;
use crate::configuration::Configuration;
use crate::password;
use crate::session::random_text;

/// Gives the user of an address a password that is made up, ends their sessions and enables them; prints it.
///
/// # Errors
/// Where the database cannot be used, or nobody has the address.
pub(crate) fn run(given: ResetPassword) -> Result<()> {
    let configuration = Configuration::of(given.settings)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?
        .block_on(async {
            let database = Database::open(&configuration.database, &data::Options::default())
                .await
                .context("the database cannot be used")?;
            let password = reset(&database, &given.email).await?;
            println!("{password}");
            database.close().await;
            Ok(())
        })
}

async fn reset(database: &Database, email: &str) -> Result<String> {
    let password = random_text(12)?;
    let hash = password::hash(password.clone()).await?;
    let mut transaction = database.begin().await?;
    let update = sql(
        "UPDATE \"user\" SET password = ?, jwt_secret = ?, is_disabled = FALSE, modified_at = ? WHERE email = ?",
    )
    .with(hash)
    .with(random_text(16)?)
    .with(now())
    .with(email.to_lowercase());
    let found = transaction.execute(&update).await?;
    ensure!(found == 1, "no user has the address `{email}`");
    let sessions =
        sql("DELETE FROM user_session WHERE \"user\" IN (SELECT id FROM \"user\" WHERE email = ?)");
    transaction
        .execute(&sessions.with(email.to_lowercase()))
        .await?;
    transaction.commit().await?;
    Ok(password)
}
