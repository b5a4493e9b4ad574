//! The kernel's GPIO chips, through version 2 of their interface (Linux 5.10).

mod chip;
mod held_line;

use std::path::PathBuf;

use gpiocdev::line::Offset;
use gpiocdev::request::Config;
use gpiocdev::{Chip, Request, line};
use rustix::io::Errno;

use super::{Bias, Drive, GpioChips, GpioError, GpioLine, LineMode, LineRequest};
use chip::offset;
use held_line::{KernelLine, errno, value};

/// How many edges of a line the kernel keeps until they are read.
const KEPT_EDGES: u32 = 64;

/// The chips whose device files are in a folder.
pub struct KernelGpio {
    folder: PathBuf,
}

impl KernelGpio {
    /// Chips whose device files are in `folder`, which is `/dev` except in tests.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        KernelGpio {
            folder: folder.into(),
        }
    }
}

impl GpioChips for KernelGpio {
    fn request(&self, request: &LineRequest) -> Result<Box<dyn GpioLine>, GpioError> {
        let LineRequest { address, mode, .. } = request;
        let chip = self.chip(&address.chip)?;
        let offset = offset(&chip, &address.line)?;
        let name = format!("{} of `{}`", address.line, chip.name());
        let mut config = Config::default();
        config.on_chip(chip.path()).with_line(offset);
        match *mode {
            LineMode::Input { bias, debounce } => {
                config.as_input().with_bias(bias.map(kernel_bias));
                if let Some(period) = debounce {
                    config.with_debounce_period(period);
                }
            }
            LineMode::Output { drive, on } => {
                config.as_output(value(on)).with_drive(kernel_drive(drive));
            }
            LineMode::AsIs => {
                config.as_is();
            }
        }
        if request.active_low {
            config.as_active_low();
        }
        let mut builder = Request::from_config(config.clone());
        let requested = builder
            .with_consumer(consumer(&request.consumer))
            .with_kernel_event_buffer_size(KEPT_EDGES)
            .request();
        let requested = requested.map_err(|error| match errno(&error) {
            Some(Errno::BUSY) => GpioError::Busy(busy(&chip, offset, &name)),
            Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NXIO) => GpioError::Unsupported(format!(
                "the line {name} cannot be set up in this way: {error}"
            )),
            _ => GpioError::Failed(format!("the line {name}: {error}")),
        })?;
        let line = KernelLine::new(name, offset, config, requested)?;
        Ok(Box::new(line))
    }
}

/// Says who holds the line, if the kernel knows.
fn busy(chip: &Chip, offset: Offset, name: &str) -> String {
    let consumer = chip.line_info(offset).map(|info| info.consumer);
    match consumer.as_deref() {
        Ok("") | Err(_) => format!("the line {name} is in use"),
        Ok(consumer) => format!("the line {name} is in use by `{}`", consumer.escape_debug()),
    }
}

/// Returns as much of the name as the kernel keeps.
fn consumer(name: &str) -> String {
    let mut end = name.len().min(31);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

fn kernel_bias(bias: Bias) -> line::Bias {
    match bias {
        Bias::PullUp => line::Bias::PullUp,
        Bias::PullDown => line::Bias::PullDown,
        Bias::Disabled => line::Bias::Disabled,
    }
}

fn kernel_drive(drive: Drive) -> line::Drive {
    match drive {
        Drive::PushPull => line::Drive::PushPull,
        Drive::OpenDrain => line::Drive::OpenDrain,
        Drive::OpenSource => line::Drive::OpenSource,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::{LineAddress, LineId};

    fn request(folder: &Path, chip: &str) -> GpioError {
        let request = LineRequest {
            address: LineAddress {
                chip: chip.to_owned(),
                line: LineId::Number(0),
            },
            mode: LineMode::AsIs,
            active_low: false,
            consumer: "test".to_owned(),
        };
        let requested = KernelGpio::new(folder).request(&request);
        requested.err().expect("it is no chip")
    }

    #[test]
    fn a_file_that_is_not_a_gpio_chip_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/dev/null", folder.path().join("gpiochip0")).unwrap();
        symlink("/dev/mem", folder.path().join("gpiochip1")).unwrap();
        fs::write(folder.path().join("gpiochip2"), "").unwrap();
        for (chip, expected) in [
            ("gpiochip0", "is not a GPIO chip"),
            ("gpiochip2", "is not a GPIO chip"),
            ("gpiochip3", "the device has no GPIO chip"),
            ("gpiochip0/../gpiochip0", "with the name or the label"),
            ("null", "with the name or the label"),
            ("/dev/null", "with the name or the label"),
            ("", "with the name or the label"),
            ("a\u{7}b", "the label \"a\\u{7}b\""),
        ] {
            let error = request(folder.path(), chip).to_string();
            assert!(error.contains(expected), "{chip:?}: {error}");
        }
        // Whether or not the file exists.
        let memory = request(folder.path(), "gpiochip1");
        assert!(matches!(memory, GpioError::NotFound(_)), "{memory:?}");
    }

    #[test]
    fn the_kernel_keeps_the_beginning_of_a_consumers_name() {
        assert_eq!(consumer("plugin door"), "plugin door");
        assert_eq!(consumer(&"ä".repeat(20)), "ä".repeat(15));
    }
}
