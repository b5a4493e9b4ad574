//! Log lines of the services of devices: stored for a while, read and followed (docs/spec/cloud.md#device-logs).
//!
//! ```text
//!                       ┌ table   of the database, for one replica
//! lines ──> history ────┤
//!              │        └ stream  of the server between several
//!              └─> tail   history, then live
//! ```

pub mod history;
pub mod line;
mod live;
pub mod span;
mod stream;
mod table;
pub mod tail;

use crate::cloud::SharedCloud;
use history::History;

/// Writes lines that wait for the table, for as long as the program runs: waiting lines are not lost.
pub async fn write(cloud: SharedCloud) {
    if let History::Table(table) = &cloud.logs {
        table::writing(&cloud.database, table).await;
    }
}

/// Keeps the stored lines within their limits, until the program is about to end.
pub async fn maintain(cloud: SharedCloud) {
    match &cloud.logs {
        History::Table(table) => table::tidying(&cloud.database, table, &cloud.stop).await,
        History::Stream(stream) => stream.run(cloud.stop.clone()).await,
    }
}
