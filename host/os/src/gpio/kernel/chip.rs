//! Which chip and which line of it an address means.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use gpiocdev::Chip;
use gpiocdev::line::Offset;
use rustix::fs::{major, minor};

use super::KernelGpio;
use crate::gpio::{GpioError, LineId};

impl KernelGpio {
    /// Opens the chip with this name or label.
    pub(super) fn chip(&self, name: &str) -> Result<Chip, GpioError> {
        if is_chip_name(name) {
            return open(&self.folder.join(name));
        }
        let mut found = Vec::new();
        for path in self.chips() {
            // A chip that disappears in between does not match.
            let Ok(chip) = open(&path) else { continue };
            if chip.info().is_ok_and(|info| info.label == name) {
                found.push(chip);
            }
        }
        let number = found.len();
        match (found.pop(), number) {
            (Some(chip), 1) => Ok(chip),
            (None, _) => Err(GpioError::NotFound(format!(
                "the device has no GPIO chip with the name or the label {name:?}"
            ))),
            _ => Err(GpioError::NotFound(format!(
                "the device has {number} GPIO chips with the label {name:?}: write the name of one, such as `gpiochip0`"
            ))),
        }
    }

    /// Returns the device files of chips, without the links that some boards have in addition.
    fn chips(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let chips = entries.filter(|entry| {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            !is_link && entry.file_name().to_str().is_some_and(is_chip_name)
        });
        chips.map(|entry| entry.path()).collect()
    }
}

/// Whether this is `gpiochip` and a number, the kernel's names for chips.
fn is_chip_name(name: &str) -> bool {
    name.strip_prefix("gpiochip").is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn open(path: &Path) -> Result<Chip, GpioError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => GpioError::NotFound(format!(
            "the device has no GPIO chip `{}`, or the supervisor's unit denies access to it (supervisor-hardware.conf)",
            path.display()
        )),
        _ => GpioError::Failed(format!("the GPIO chip `{}`: {error}", path.display())),
    };
    // Some devices, such as a watchdog, do something when they are opened: so only chips are opened.
    let target = fs::canonicalize(path).map_err(failed)?;
    if !is_gpio_device(&target).map_err(failed)? {
        return Err(GpioError::NotFound(format!(
            "`{}` is not a GPIO chip",
            path.display()
        )));
    }
    Chip::from_path(&target)
        .map_err(|error| GpioError::Failed(format!("the GPIO chip `{}`: {error}", path.display())))
}

/// Whether the kernel lists a device file as that of a GPIO chip.
fn is_gpio_device(path: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(path)?;
    if !metadata.file_type().is_char_device() {
        return Ok(false);
    }
    let device = metadata.rdev();
    let subsystem = format!(
        "/sys/dev/char/{}:{}/subsystem",
        major(device),
        minor(device)
    );
    let subsystem = fs::read_link(subsystem).unwrap_or_default();
    Ok(subsystem.file_name().is_some_and(|name| name == "gpio"))
}

/// Returns the number of a line on its chip.
pub(super) fn offset(chip: &Chip, line: &LineId) -> Result<Offset, GpioError> {
    let failed = |error: gpiocdev::Error| {
        GpioError::Failed(format!("the GPIO chip `{}`: {error}", chip.name()))
    };
    let name = match line {
        LineId::Number(number) => {
            let lines = chip.info().map_err(failed)?.num_lines;
            return if *number < lines {
                Ok(*number)
            } else {
                Err(GpioError::NotFound(format!(
                    "the GPIO chip `{}` has the lines 0 to {}, not {number}",
                    chip.name(),
                    lines.saturating_sub(1)
                )))
            };
        }
        LineId::Name(name) => name,
    };
    let mut found = Vec::new();
    for info in chip.line_info_iter().map_err(failed)? {
        let info = info.map_err(failed)?;
        if info.name == *name {
            found.push(info.offset);
        }
    }
    match found[..] {
        [offset] => Ok(offset),
        [] => Err(GpioError::NotFound(format!(
            "the GPIO chip `{}` has no line with the name {name:?}",
            chip.name()
        ))),
        [..] => Err(GpioError::NotFound(format!(
            "the GPIO chip `{}` has {} lines with the name {name:?}: write the number of one, such as {}",
            chip.name(),
            found.len(),
            found[0]
        ))),
    }
}
