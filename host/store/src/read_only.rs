//! Reading the database of a supervisor that may be running, for other commands: nothing is changed or created.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

/// How long to wait for a write of the supervisor.
const BUSY: Duration = Duration::from_secs(5);

/// Opens the database at `path` with these parameters of its address.
pub(crate) fn read_only(path: &Path, parameters: &str) -> rusqlite::Result<Connection> {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            other => address.push_str(&format!("%{other:02x}")),
        }
    }
    address.push_str(parameters);
    let connection = Connection::open_with_flags(
        address,
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI,
    )?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}
