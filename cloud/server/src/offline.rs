//! Work on the database of a cloud that is not running.

use anyhow::{Context as _, Result};
use data::{Database, Keyring};

use crate::arguments::Serve;
use crate::configuration_file;

/// Runs an operation on the configured database, without serving a cloud.
///
/// # Errors
/// If the configuration is wrong, the database cannot be used, or the operation fails.
pub(crate) fn with_database(
    arguments: Serve,
    work: impl AsyncFnOnce(&Database, &Keyring) -> Result<()>,
) -> Result<()> {
    let (configuration, _) = configuration_file::load(arguments)?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no threads can be started")?
        .block_on(async {
            let database = Database::open(&configuration.database, &configuration.pools.options())
                .await
                .context("the database cannot be used")?;
            work(&database, &configuration.keyring).await?;
            database.close().await;
            Ok(())
        })
}
