//! The kernel's I2C buses, through their device files (the module `i2c-dev`).

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use i2cdev::core::{I2CDevice as _, I2CMessage as _, I2CTransfer as _};
use i2cdev::linux::{LinuxI2CDevice, LinuxI2CError, LinuxI2CMessage};
use rustix::fs::{major, minor};
use rustix::io::Errno;

use super::{BusId, I2cBuses, I2cError, I2cOperation};

/// The buses whose device files are in a folder.
pub struct KernelI2c {
    folder: PathBuf,
}

impl KernelI2c {
    /// Buses whose device files are in `folder`, which is `/dev` except in tests.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        KernelI2c {
            folder: folder.into(),
        }
    }

    /// Returns the device files of buses whose adapter has this name.
    fn named(&self, name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let buses = entries.map(|entry| entry.path()).filter(|path| {
            let file = path.file_name().and_then(|name| name.to_str());
            let is_bus = file.is_some_and(|file| file.starts_with("i2c-"));
            is_bus && adapter_name(path).is_ok_and(|adapter| adapter.as_deref() == Some(name))
        });
        buses.collect()
    }
}

/// Returns the name of the adapter behind a device file; `None` if the file is not that of a bus.
fn adapter_name(path: &Path) -> io::Result<Option<String>> {
    let metadata = fs::metadata(path)?;
    if !metadata.file_type().is_char_device() {
        return Ok(None);
    }
    let device = metadata.rdev();
    let device = PathBuf::from(format!("/sys/dev/char/{}:{}", major(device), minor(device)));
    let subsystem = fs::read_link(device.join("subsystem")).unwrap_or_default();
    if subsystem.file_name().is_none_or(|name| name != "i2c-dev") {
        return Ok(None);
    }
    let name = fs::read_to_string(device.join("name"))?;
    Ok(Some(name.trim_end().to_owned()))
}

impl I2cBuses for KernelI2c {
    fn find(&self, bus: &BusId) -> Result<PathBuf, I2cError> {
        let path = match bus {
            BusId::Number(number) => self.folder.join(format!("i2c-{number}")),
            BusId::Name(path) if path.starts_with('/') => PathBuf::from(path),
            BusId::Name(name) => match &self.named(name)[..] {
                [path] => return Ok(path.clone()),
                [] => {
                    return Err(I2cError::NotFound(format!(
                        "the device has no I2C bus whose adapter has the name {name:?}"
                    )));
                }
                buses => {
                    return Err(I2cError::NotFound(format!(
                        "the device has {} I2C buses whose adapters have the name {name:?}: write the number of one",
                        buses.len()
                    )));
                }
            },
        };
        let shown = path.display();
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => I2cError::NotFound(format!(
                "the device has no I2C bus `{shown}`: the kernel's module `i2c-dev` must be loaded, and the supervisor's unit must \
                 let it use buses (supervisor-hardware.conf)"
            )),
            _ => I2cError::Failed(format!("the I2C bus `{shown}`: {error}")),
        };
        // Only buses are opened: some devices do something when they are opened.
        let target = fs::canonicalize(&path).map_err(failed)?;
        match adapter_name(&target).map_err(failed)? {
            Some(_) => Ok(target),
            None => Err(I2cError::NotFound(format!("`{shown}` is not an I2C bus"))),
        }
    }

    fn run(&self, bus: &Path, address: u8, operation: &I2cOperation) -> Result<Vec<u8>, I2cError> {
        let place = || {
            format!(
                "the address {address:#04x} of the I2C bus `{}`",
                bus.display()
            )
        };
        let failed = |error: LinuxI2CError| {
            let error = io::Error::from(error);
            let place = place();
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::BUSY) => I2cError::Busy(format!("a driver of the kernel uses {place}")),
                // The errors of adapters if no chip acknowledges.
                Some(Errno::NXIO | Errno::REMOTEIO | Errno::NODEV) => {
                    I2cError::NoAnswer(format!("no chip answers at {place}"))
                }
                Some(Errno::OPNOTSUPP) => {
                    I2cError::Unsupported(format!("the bus cannot do such a transfer with {place}"))
                }
                _ => I2cError::Failed(format!("{place}: {error}")),
            }
        };
        // This also refuses an address that a kernel driver uses.
        let mut device = LinuxI2CDevice::new(bus, address.into()).map_err(failed)?;
        let done = match operation {
            I2cOperation::Transfer { write, read } => {
                let mut bytes = vec![0; usize::from(*read)];
                let mut messages = Vec::with_capacity(2);
                if !write.is_empty() {
                    messages.push(LinuxI2CMessage::write(write));
                }
                if !bytes.is_empty() {
                    messages.push(LinuxI2CMessage::read(&mut bytes));
                }
                device.transfer(&mut messages).map(|_| bytes)
            }
            I2cOperation::ReadByte { register } => device
                .smbus_read_byte_data(*register)
                .map(|byte| vec![byte]),
            I2cOperation::ReadWord { register } => device
                .smbus_read_word_data(*register)
                .map(|word| word.to_le_bytes().to_vec()),
            I2cOperation::WriteByte { register, value } => device
                .smbus_write_byte_data(*register, *value)
                .map(|()| Vec::new()),
            I2cOperation::WriteWord { register, value } => device
                .smbus_write_word_data(*register, *value)
                .map(|()| Vec::new()),
        };
        done.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_is_not_an_i2c_bus_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/dev/null", folder.path().join("i2c-1")).unwrap();
        fs::write(folder.path().join("i2c-2"), "").unwrap();
        let name = |name: &str| BusId::Name(name.to_owned());
        for (bus, expected) in [
            (BusId::Number(1), "is not an I2C bus"),
            (BusId::Number(2), "is not an I2C bus"),
            (BusId::Number(3), "the module `i2c-dev` must be loaded"),
            (name("/dev/null"), "is not an I2C bus"),
            (name("/dev/mem"), "`/dev/mem`"),
            (name("null"), "whose adapter has the name \"null\""),
            (name("a\u{7}"), "whose adapter has the name \"a\\u{7}\""),
            (name(""), "whose adapter has the name \"\""),
        ] {
            let found = KernelI2c::new(folder.path()).find(&bus);
            let error = found.unwrap_err();
            assert!(matches!(error, I2cError::NotFound(_)), "{bus:?}: {error:?}");
            let error = error.to_string().replace("kernel's module", "module");
            assert!(error.contains(expected), "{bus:?}: {error}");
        }
    }
}
