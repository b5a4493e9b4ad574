//! The serial ports that the policy names.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use plugin_protocol::{
    Handle, Parity, Provide, SERIAL_BYTES, SerialError, SerialOpen, SerialRead, SerialSettings,
    SerialWrite,
};
use serial2_tokio::{CharSize, FlowControl, SerialPort, Settings, StopBits};

use super::{InstanceCall, Refusal};
use crate::holdings::HeldResource;
use crate::text::cut;

/// The longest that a plugin may wait for something to be received.
const LONGEST_READ: Duration = Duration::from_secs(60);
/// How long writing may take: a device that holds up its line delays others for no longer.
const LONGEST_WRITE: Duration = Duration::from_secs(60);
/// The range of rates.
const SLOWEST: u32 = 50;
const FASTEST: u32 = 4_000_000;

/// The ports that instances of plugins hold.
static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A port that an instance holds. Dropping it closes the port.
pub(crate) struct Port {
    name: String,
    port: SerialPort,
    _held: PortHold,
}

/// The exclusive right to open a port.
struct PortHold(PathBuf);

impl PortHold {
    fn take(path: PathBuf) -> Option<PortHold> {
        let is_free = HELD.lock().insert(path.clone());
        // Only created then: dropping it releases the port.
        is_free.then(|| PortHold(path))
    }
}

impl Drop for PortHold {
    fn drop(&mut self) {
        HELD.lock().remove(&self.0);
    }
}

/// Opens a port. Blocks.
fn open(name: &str, settings: SerialSettings) -> Result<Port, SerialError> {
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
    let Some(held) = PortHold::take(path.clone()) else {
        return Err(SerialError::Busy(format!(
            "another call holds the serial port `{name}`"
        )));
    };
    let port = SerialPort::open(&path, |ours: Settings| apply(ours, settings)).map_err(failed)?;
    port.discard_buffers().map_err(failed)?;
    Ok(Port {
        name: name.to_owned(),
        port,
        _held: held,
    })
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
    fn failed(&self, error: &io::Error) -> SerialError {
        SerialError::Other(format!("the serial port `{}`: {error}", self.name))
    }
}

impl InstanceCall<'_> {
    async fn open_serial(
        &self,
        name: String,
        settings: SerialSettings,
    ) -> Result<Handle, SerialError> {
        if !self.plugin.grants.serial.contains(&name) {
            return Err(SerialError::NotGranted(cut(format!(
                "the policy does not name `{name}` in `serial` of the plugin `{}`",
                self.plugin.name
            ))));
        }
        check(settings)?;
        // A driver may take time.
        let opening = self.plugin.jobs.run(move || open(&name, settings)).await;
        let stopping = || SerialError::Other("the supervisor is stopping".to_owned());
        let port = opening.ok_or_else(stopping)??;
        self.holdings
            .add(HeldResource::Serial(Arc::new(port)))
            .map_err(|_| SerialError::Other("too many resources at a time".to_owned()))
    }
}

impl Provide<SerialOpen, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        SerialOpen { name, settings }: SerialOpen,
    ) -> Result<Result<Handle, SerialError>, Refusal> {
        Ok(self.open_serial(name, settings).await)
    }
}

impl Provide<SerialRead, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        SerialRead {
            port,
            most,
            milliseconds,
        }: SerialRead,
    ) -> Result<Result<Vec<u8>, SerialError>, Refusal> {
        let port = self.holdings.serial(port)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if !(1..=SERIAL_BYTES).contains(&most) {
            return Ok(Err(SerialError::Invalid(format!(
                "a read has 1 to {SERIAL_BYTES} bytes, not {most}"
            ))));
        }
        let within = Duration::from_millis(milliseconds.into()).min(LONGEST_READ);
        let mut bytes = vec![0; most];
        let reading = tokio::time::timeout(within, port.port.read(&mut bytes)).await;
        Ok(match reading {
            Err(_) => Ok(Vec::new()),
            Ok(Ok(0)) => Err(SerialError::NotFound(format!(
                "the serial port `{}` has been disconnected",
                port.name
            ))),
            Ok(Ok(length)) => {
                bytes.truncate(length);
                Ok(bytes)
            }
            Ok(Err(error)) => Err(port.failed(&error)),
        })
    }
}

impl Provide<SerialWrite, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        SerialWrite { port, bytes }: SerialWrite,
    ) -> Result<Result<(), SerialError>, Refusal> {
        let port = self.holdings.serial(port)?;
        if bytes.len() > SERIAL_BYTES {
            return Ok(Err(SerialError::Invalid(format!(
                "a write has at most {SERIAL_BYTES} bytes, not {}",
                bytes.len()
            ))));
        }
        let writing = tokio::time::timeout(LONGEST_WRITE, port.port.write_all(&bytes)).await;
        Ok(match writing {
            Ok(written) => written.map_err(|error| port.failed(&error)),
            Err(_) => Err(SerialError::Other(format!(
                "the serial port `{}` did not take the bytes within {} s",
                port.name,
                LONGEST_WRITE.as_secs()
            ))),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use ::tests::PseudoTerminal;

    use super::*;

    const SETTINGS: SerialSettings = SerialSettings {
        baud: 9600,
        data_bits: 8,
        parity: Parity::None,
        stop_bits: 1,
    };

    #[tokio::test]
    async fn a_port_is_open_once_under_whatever_name_and_again_after_that() {
        let terminal = PseudoTerminal::open();
        let name = terminal.name();
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("by-id");
        symlink(name, &other).unwrap();
        let port = open(name, SETTINGS).unwrap();
        for name in [name, other.to_str().unwrap()] {
            let busy = open(name, SETTINGS).err();
            assert!(matches!(busy, Some(SerialError::Busy(_))), "{busy:?}");
        }
        drop(port);
        assert!(open(other.to_str().unwrap(), SETTINGS).is_ok());
    }

    #[tokio::test]
    async fn what_is_no_port_is_not_opened() {
        let missing = open("/dev/ttyMissing0", SETTINGS).err();
        assert!(
            matches!(missing, Some(SerialError::NotFound(_))),
            "{missing:?}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        let plain = open(file.path().to_str().unwrap(), SETTINGS).err();
        assert!(matches!(plain, Some(SerialError::Other(_))), "{plain:?}");
        assert!(!HELD.lock().contains(file.path()));
    }

    #[test]
    fn settings_that_no_port_can_have_are_named() {
        assert_eq!(check(SETTINGS), Ok(()));
        for (settings, expected) in [
            (
                SerialSettings {
                    baud: 0,
                    ..SETTINGS
                },
                "`baud` is 0",
            ),
            (
                SerialSettings {
                    baud: 5_000_000,
                    ..SETTINGS
                },
                "`baud` is 5000000",
            ),
            (
                SerialSettings {
                    data_bits: 9,
                    ..SETTINGS
                },
                "`data-bits` is 9",
            ),
            (
                SerialSettings {
                    stop_bits: 3,
                    ..SETTINGS
                },
                "`stop-bits` is 3",
            ),
        ] {
            let error = check(settings).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
