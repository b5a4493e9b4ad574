//! Work that may block: the disk may be slow.

use std::error::Error;

/// Does work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>> + Send + 'static,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    tokio::task::spawn_blocking(work).await?
}
