//! Whether the database answers, checked at most once a second, however often it is requested.

use std::time::{Duration, Instant};

use data::{Database, SystemPurpose};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long an answer is reused.
const FRESH: Duration = Duration::from_secs(1);
/// How long the database may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last result.
#[derive(Default)]
pub(crate) struct DatabaseProbe {
    last: Mutex<Option<(Instant, bool)>>,
}

impl DatabaseProbe {
    /// Whether the database answers. Simultaneous callers wait for the same answer.
    pub(crate) async fn answers(&self, database: &Database) -> bool {
        let mut last = self.last.lock().await;
        if let Some((at, answers)) = *last
            && at.elapsed() < FRESH
        {
            return answers;
        }
        let probe = SystemPurpose::Operation.sql("SELECT 1");
        let answers = match timeout(PATIENCE, database.row(&probe)).await {
            Ok(Ok(_)) => true,
            Ok(Err(error)) => {
                tracing::warn!("the database does not answer: {error}");
                false
            }
            Err(_) => {
                tracing::warn!("the database does not answer within {PATIENCE:?}");
                false
            }
        };
        *last = Some((Instant::now(), answers));
        answers
    }
}
