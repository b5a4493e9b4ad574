//! `fleet-cloud reset-password`: for the operator of the cloud, if a password was forgotten.

use anyhow::{Result, ensure};
use cloud_core::clock::now;
use cloud_core::password;
use cloud_core::random::random_text;
use data::{Database, SystemPurpose};

use crate::arguments::ResetPassword;
use crate::offline::with_database;

/// Sets a generated password for the user with an address, ends their sessions and enables the user; prints the
/// password.
///
/// # Errors
/// If the database cannot be used, or no user has the address.
pub(crate) fn run(arguments: ResetPassword) -> Result<()> {
    with_database(arguments.settings, async |database, _| {
        let password = reset(database, &arguments.email).await?;
        println!("{password}");
        Ok(())
    })
}

async fn reset(database: &Database, email: &str) -> Result<String> {
    let password = random_text(12)?;
    let hash = password::hash(password.clone()).await?;
    let mut transaction = database.begin().await?;
    let update = SystemPurpose::Operation.sql(
        "UPDATE \"user\" SET password = ?, jwt_secret = ?, is_disabled = FALSE, modified_at = ? WHERE email = ?",
    )
    .with(hash)
    .with(random_text(16)?)
    .with(now())
    .with(email.to_lowercase());
    let changed = transaction.execute(&update).await?;
    ensure!(changed == 1, "no user has the address `{email}`");
    let sessions = SystemPurpose::Operation.sql(
        "DELETE FROM user_session WHERE \"user\" IN (SELECT id FROM \"user\" WHERE email = ?)",
    );
    transaction
        .execute(&sessions.with(email.to_lowercase()))
        .await?;
    transaction.commit().await?;
    Ok(password)
}
