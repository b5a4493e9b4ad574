//! How a database is used: its pools of connections, and how long what is done with them may take.

use std::time::Duration;

/// Whose statements they are. Each has connections of its own: a person's long list or a guest's odd question keeps no
/// device from its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pool {
    /// Polls and reports of devices, credentials, and what the cloud does by itself.
    Devices,
    /// The data API and the dashboard, for whoever has a credential.
    People,
    /// The data API without one.
    Guests,
}

/// What the statements of one pool may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Connections at most. In SQLite those that read; there is one more that writes, for all.
    pub connections: u32,
    /// How long a request waits for a connection.
    pub wait: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
}

/// How a database is used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Of [`Pool::Devices`].
    pub devices: PoolOptions,
    /// Of [`Pool::People`].
    pub people: PoolOptions,
    /// Of [`Pool::Guests`].
    pub guests: PoolOptions,
    /// How long a statement may take while it keeps all others from writing: SQLite has one writer.
    pub write_timeout: Duration,
    /// How long rows may be streamed, however fast the database has them: whoever reads them slowly holds a connection.
    pub stream_timeout: Duration,
    /// How many statements of a connection stay prepared.
    pub prepared: usize,
}

impl Options {
    /// All pools with so many connections.
    #[must_use]
    pub fn with_connections(mut self, connections: u32) -> Self {
        for pool in [&mut self.devices, &mut self.people, &mut self.guests] {
            pool.connections = connections;
        }
        self
    }

    /// All statements with so much time.
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

/// How long each statement may take that brings the tables up to date.
pub(crate) const MIGRATION: Duration = Duration::from_secs(3600);
