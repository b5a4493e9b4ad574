//! Options of a database: its connection pools, and its time limits.

use std::time::Duration;

/// The users of a statement. Each pool has its own connections, so that a person's long list or a guest's expensive
/// query does not delay the state of devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Polls and reports of devices, credentials, and the cloud's own work.
    Devices,
    /// The data API and the dashboard, for callers with a credential.
    People,
    /// The data API for callers without a credential.
    Guests,
}

/// The limits of one pool's statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// The maximum number of connections. In SQLite these only read; one more connection writes, for all pools.
    pub connections: u32,
    /// How long a request waits for a connection.
    pub wait: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
}

/// The options of a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// Of [`Pool::Devices`].
    pub devices: PoolOptions,
    /// Of [`Pool::People`].
    pub people: PoolOptions,
    /// Of [`Pool::Guests`].
    pub guests: PoolOptions,
    /// How long a statement may take while it blocks all other writes: SQLite has one writer.
    pub write_timeout: Duration,
    /// How long rows may be streamed, even if the database is fast: a slow reader occupies a connection.
    pub stream_timeout: Duration,
    /// The number of statements that stay prepared per connection.
    pub prepared: usize,
}

impl Options {
    /// Sets the number of connections of all pools.
    #[must_use]
    pub fn with_connections(mut self, connections: u32) -> Self {
        for pool in [&mut self.devices, &mut self.people, &mut self.guests] {
            pool.connections = connections;
        }
        self
    }

    /// Sets the time limit of all statements.
    #[must_use]
    pub fn with_statement_timeout(mut self, timeout: Duration) -> Self {
        for pool in [&mut self.devices, &mut self.people, &mut self.guests] {
            pool.statement_timeout = timeout;
        }
        self.write_timeout = timeout;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        let pool = |connections, wait, statement_timeout| PoolOptions {
            connections,
            wait: Duration::from_secs(wait),
            statement_timeout: Duration::from_secs(statement_timeout),
        };
        Options {
            devices: pool(8, 30, 10),
            // A list of a hundred thousand devices takes as long as its reader does.
            people: pool(8, 30, 20),
            guests: pool(2, 5, 2),
            write_timeout: Duration::from_secs(10),
            stream_timeout: Duration::from_secs(60),
            prepared: 400,
        }
    }
}

/// The time limit of each statement that updates the tables.
pub(crate) const MIGRATION: Duration = Duration::from_secs(3600);
