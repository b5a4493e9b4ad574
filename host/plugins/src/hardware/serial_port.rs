//! Serial ports. Each is open once at a time, under whatever name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use parking_lot::Mutex;
use plugin_protocol::{Parity, SerialError, SerialSettings};
use serial2_tokio::{CharSize, FlowControl, SerialPort, Settings, StopBits};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::blocking::BlockingShare;

/// How long writing may take: a device that holds up its line delays others for no longer.
const LONGEST_WRITE: Duration = Duration::from_secs(60);
/// The range of rates.
const SLOWEST: u32 = 50;
const FASTEST: u32 = 4_000_000;

/// How long to wait for a port that is being closed for its previous holder.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

/// The ports that nobody else can open now.
static HOLDS: Mutex<BTreeMap<PathBuf, Hold>> = Mutex::new(BTreeMap::new());
/// Notified when one of them can be opened again.
static CLOSED: Notify = Notify::const_new();

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// An instance holds it.
    Open,
    /// No instance holds it any more, but it is not closed yet.
    Closing,
}

/// A port that an instance holds. Dropping it closes the port, without waiting for that.
pub(crate) struct Port<P: Send + 'static = SerialPort> {
    name: String,
    /// `None` only while this is being dropped.
    open: Option<OpenPort<P>>,
}

/// An open port. Dropping it waits until the line has sent what was written, for which the kernel takes up to 30 s.
struct OpenPort<P> {
    line: P,
    /// Below the line, so that the port is closed first.
    hold: PortHold,
}

/// The exclusive right to open a port.
struct PortHold(PathBuf);

impl PortHold {
    /// Takes the right, or returns why somebody else has it.
    fn take(path: PathBuf) -> Result<PortHold, Hold> {
        match HOLDS.lock().entry(path.clone()) {
            Entry::Occupied(hold) => Err(*hold.get()),
            Entry::Vacant(place) => {
                place.insert(Hold::Open);
                // Only created here: dropping it releases the port.
                Ok(PortHold(path))
            }
        }
    }
}

impl Drop for PortHold {
    fn drop(&mut self) {
        HOLDS.lock().remove(&self.0);
        CLOSED.notify_waiters();
    }
}

impl<P: Send + 'static> Drop for Port<P> {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        HOLDS.lock().insert(open.hold.0.clone(), Hold::Closing);
        // The threads of the runtime do not have the time for that. Ports that are being closed take no more threads
        // than the policy names ports, since none is opened again before. If the runtime is ending, it drops the
        // closure without running it, which closes the port as well.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(open))),
            Err(_) => drop(open),
        }
    }
}

/// Opens a port; returns `None` if it is being closed for its previous holder. Blocks.
fn try_open(name: &str, settings: SerialSettings) -> Result<Option<Port>, SerialError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            SerialError::NotFound(format!("the device has no serial port `{name}`"))
        }
        io::ErrorKind::ResourceBusy => {
            SerialError::Busy(format!("another program holds the serial port `{name}`"))
        }
        _ => SerialError::Other(format!("the serial port `{name}`: {error}")),
    };
    // Two names may lead to one port, such as those below /dev/serial/by-id.
    let path = std::fs::canonicalize(name).map_err(failed)?;
    let hold = match PortHold::take(path.clone()) {
        Ok(hold) => hold,
        Err(Hold::Closing) => return Ok(None),
        Err(Hold::Open) => {
            return Err(SerialError::Busy(format!(
                "another call holds the serial port `{name}`"
            )));
        }
    };
    let line = SerialPort::open(&path, |ours: Settings| apply(ours, settings)).map_err(failed)?;
    line.discard_buffers().map_err(failed)?;
    Ok(Some(Port {
        name: name.to_owned(),
        open: Some(OpenPort { line, hold }),
    }))
}

fn apply(mut settings: Settings, desired: SerialSettings) -> io::Result<Settings> {
    settings.set_raw();
    settings.set_baud_rate(desired.baud)?;
    settings.set_flow_control(FlowControl::None);
    settings.set_char_size(match desired.data_bits {
        5 => CharSize::Bits5,
        6 => CharSize::Bits6,
        7 => CharSize::Bits7,
        _ => CharSize::Bits8,
    });
    settings.set_stop_bits(match desired.stop_bits {
        2 => StopBits::Two,
        _ => StopBits::One,
    });
    settings.set_parity(match desired.parity {
        Parity::None => serial2_tokio::Parity::None,
        Parity::Even => serial2_tokio::Parity::Even,
        Parity::Odd => serial2_tokio::Parity::Odd,
    });
    Ok(settings)
}

fn check(settings: SerialSettings) -> Result<(), SerialError> {
    let SerialSettings {
        baud,
        data_bits,
        stop_bits,
        ..
    } = settings;
    let problem = if !(SLOWEST..=FASTEST).contains(&baud) {
        format!("`baud` is {baud}, but must be from {SLOWEST} to {FASTEST}")
    } else if !(5..=8).contains(&data_bits) {
        format!("`data-bits` is {data_bits}, but must be from 5 to 8")
    } else if !(1..=2).contains(&stop_bits) {
        format!("`stop-bits` is {stop_bits}, but must be 1 or 2")
    } else {
        return Ok(());
    };
    Err(SerialError::Invalid(problem))
}

impl Port {
    /// Opens a port. Waits until it is closed for its previous holder, but not for long.
    pub(crate) async fn open(
        name: &str,
        settings: SerialSettings,
        jobs: &BlockingShare,
    ) -> Result<Port, SerialError> {
        check(settings)?;
        let stopping = || SerialError::Other("the supervisor is stopping".to_owned());
        let end = Instant::now() + CLOSED_WITHIN;
        loop {
            // Before the attempt, so that the end of a close during the attempt is not missed.
            let closed = CLOSED.notified();
            let port = name.to_owned();
            // A driver may take time.
            let opening = jobs.run(move || try_open(&port, settings)).await;
            if let Some(port) = opening.ok_or_else(stopping)?? {
                return Ok(port);
            }
            // This takes no place for blocking work: a line that is slow to send must not keep others from the disk.
            if timeout_at(end, closed).await.is_err() {
                return Err(SerialError::Busy(format!(
                    "the serial port `{name}` is still sending what an earlier call wrote to it: try again later"
                )));
            }
        }
    }

    /// Returns what has been received, at most `most` bytes: none if nothing is received within this time.
    pub(crate) async fn read(&self, most: usize, within: Duration) -> Result<Vec<u8>, SerialError> {
        let mut bytes = vec![0; most];
        let reading = async { self.line()?.read(&mut bytes).await };
        match timeout(within, reading).await {
            Err(_) => Ok(Vec::new()),
            Ok(Ok(0)) => Err(SerialError::NotFound(format!(
                "the serial port `{}` has been disconnected",
                self.name
            ))),
            Ok(Ok(length)) => {
                bytes.truncate(length);
                Ok(bytes)
            }
            Ok(Err(error)) => Err(self.failed(&error)),
        }
    }

    /// Writes all of `bytes`.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), SerialError> {
        let writing = async { self.line()?.write_all(bytes).await };
        match timeout(LONGEST_WRITE, writing).await {
            Ok(written) => written.map_err(|error| self.failed(&error)),
            Err(_) => Err(SerialError::Other(format!(
                "the serial port `{}` did not accept the bytes within {} s",
                self.name,
                LONGEST_WRITE.as_secs()
            ))),
        }
    }

    fn line(&self) -> io::Result<&SerialPort> {
        let open = self.open.as_ref();
        let closed = || io::ErrorKind::NotConnected.into();
        open.map(|open| &open.line).ok_or_else(closed)
    }

    fn failed(&self, error: &io::Error) -> SerialError {
        SerialError::Other(format!("the serial port `{}`: {error}", self.name))
    }
}

#[cfg(test)]
mod tests;
