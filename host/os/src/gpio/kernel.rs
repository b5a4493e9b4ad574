//! The kernel's GPIO chips, through version 2 of their interface (Linux 5.10).

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use gpiocdev::line::{EdgeKind, Offset, Value};
use gpiocdev::request::Config;
use gpiocdev::{Chip, Request, line};
use parking_lot::Mutex;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, major, minor};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{
    Bias, Drive, Edge, EdgeDetection, GpioChips, GpioError, GpioLine, LineId, LineMode, LineRequest,
};

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

    /// Opens the chip with this name or label.
    fn chip(&self, name: &str) -> Result<Chip, GpioError> {
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

fn offset(chip: &Chip, line: &LineId) -> Result<Offset, GpioError> {
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
        // Waiting for an edge uses no thread.
        let nonblocking = fcntl_getfl(&requested)
            .and_then(|flags| fcntl_setfl(&requested, flags | OFlags::NONBLOCK));
        nonblocking.map_err(|error| GpioError::Failed(format!("the line {name}: {error}")))?;
        Ok(Box::new(KernelLine {
            name,
            offset,
            config,
            request: Arc::new(requested),
            waiting: OnceLock::new(),
            last: Mutex::new(0),
        }))
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

fn value(on: bool) -> Value {
    if on { Value::Active } else { Value::Inactive }
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

/// Returns the operating system's error behind an error of the crate.
fn errno(error: &gpiocdev::Error) -> Option<Errno> {
    match error {
        gpiocdev::Error::Os(errno) | gpiocdev::Error::Uapi(_, gpiocdev_uapi::Error::Os(errno)) => {
            Some(Errno::from_raw_os_error(errno.0))
        }
        _ => None,
    }
}

/// A line that the kernel has granted.
struct KernelLine {
    name: String,
    offset: Offset,
    config: Config,
    request: Arc<Request>,
    /// Created by the first wait.
    waiting: OnceLock<AsyncFd<Arc<Request>>>,
    /// The number of the last edge that was read.
    last: Mutex<u32>,
}

impl KernelLine {
    fn failed(&self, error: impl std::fmt::Display) -> GpioError {
        GpioError::Failed(format!("the line {}: {error}", self.name))
    }

    /// Returns the next edge; `None` if none was recorded.
    fn read_edge(&self) -> io::Result<Option<Edge>> {
        // One at a time: `Request::read_edge_event` reads several, and returns one.
        let mut buffer = vec![0; self.request.edge_event_u64_size()];
        let mut last = self.last.lock();
        let event = self
            .request
            .read_edge_events_into_slice(&mut buffer)
            .and_then(|_| self.request.edge_event_from_slice(&buffer));
        let event = match event {
            Ok(event) => event,
            Err(error) if errno(&error) == Some(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(io::Error::other(error)),
        };
        // Edges are numbered, so lost ones leave a gap. The kernel may start again at 1.
        let number = event.line_seqno;
        let before = if number > *last { *last } else { 0 };
        *last = number;
        Ok(Some(Edge {
            is_rising: event.kind == EdgeKind::Rising,
            nanoseconds: event.timestamp_ns,
            lost: (number - before).saturating_sub(1),
        }))
    }

    #[expect(
        deprecated,
        reason = "the descriptor stays open for as long as the `Arc` does, and the successor is unsafe to call"
    )]
    fn waiting(&self) -> io::Result<&AsyncFd<Arc<Request>>> {
        if let Some(waiting) = self.waiting.get() {
            return Ok(waiting);
        }
        let waiting = AsyncFd::with_interest(Arc::clone(&self.request), Interest::READABLE)?;
        Ok(self.waiting.get_or_init(|| waiting))
    }
}

impl GpioLine for KernelLine {
    fn value(&self) -> Result<bool, GpioError> {
        let value = self.request.value(self.offset);
        let value = value.map_err(|error| self.failed(error))?;
        Ok(value == Value::Active)
    }

    fn set(&self, on: bool) -> Result<(), GpioError> {
        let set = self.request.set_value(self.offset, value(on));
        set.map_err(|error| self.failed(error))
    }

    fn detect_edges(&self, detection: EdgeDetection) -> Result<(), GpioError> {
        let mut config = self.config.clone();
        config.with_edge_detection(match detection {
            EdgeDetection::On => Some(line::EdgeDetection::BothEdges),
            EdgeDetection::Off => None,
        });
        let forget = || -> Result<(), GpioError> {
            while let Some(_old) = self.read_edge().map_err(|error| self.failed(error))? {}
            Ok(())
        };
        // Old edges are discarded before recording starts, since none are added then; afterwards, an endless series of
        // edges would keep this from ending.
        if detection == EdgeDetection::On {
            forget()?;
        }
        let changed = self.request.reconfigure(&config);
        changed.map_err(|error| match errno(&error) {
            Some(Errno::INVAL | Errno::OPNOTSUPP | Errno::NXIO) => GpioError::Unsupported(format!(
                "the line {} has no interrupt, so nobody can wait for its edges: {error}",
                self.name
            )),
            _ => self.failed(error),
        })
    }

    fn next_edge(&self) -> BoxFuture<'_, Result<Edge, GpioError>> {
        async move {
            // An edge that is already there needs no turn of the reactor, so even a caller that does not wait receives
            // it.
            if let Some(edge) = self.read_edge().map_err(|error| self.failed(error))? {
                return Ok(edge);
            }
            let waiting = self.waiting().map_err(|error| self.failed(error))?;
            loop {
                let ready = waiting.readable().await;
                let mut ready = ready.map_err(|error| self.failed(error))?;
                match self.read_edge() {
                    Ok(Some(edge)) => return Ok(edge),
                    Ok(None) => ready.clear_ready(),
                    Err(error) => return Err(self.failed(error)),
                }
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::LineAddress;

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
    fn what_is_not_a_gpio_chip_is_not_opened() {
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
