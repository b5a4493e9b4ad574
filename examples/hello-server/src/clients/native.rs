//! The clients that connect, with `std`. A signal ends the program.

use std::io::Result;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How long a client may take. Only one is served at a time, so none may keep the others waiting
/// for long.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Clients(TcpListener);

impl Clients {
    pub(crate) fn listen(port: u16) -> Result<Self> {
        TcpListener::bind(("0.0.0.0", port)).map(Clients)
    }

    /// Waits for the next client; there is always another.
    pub(crate) fn next(&self) -> Option<Result<TcpStream>> {
        let accepted = self.0.accept().and_then(|(connection, _)| {
            connection.set_read_timeout(Some(PATIENCE))?;
            Ok(connection)
        });
        Some(accepted)
    }
}
