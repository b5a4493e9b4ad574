//! GPIO lines of the host: which lines exist, and what can be done with a held one.
//!
//! [`GpioChips`] is the only access to lines; [`KernelGpio`] requests lines from the kernel's chips, [`SimulatedGpio`]
//! has a few in memory, for tests and for trials of plugins. Nothing here decides who may use which line: that is up to
//! the plugins' policy. The functions that are not async block: a chip may be on a slow bus.

mod kernel;
mod simulated;

use std::time::Duration;

use futures::future::BoxFuture;
use serde::Deserialize;

pub use kernel::KernelGpio;
pub use simulated::SimulatedGpio;

/// The address of a line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineAddress {
    /// The chip's name, such as `gpiochip0`, or its label, such as `pinctrl-bcm2711`.
    pub chip: String,
    /// The line of that chip.
    pub line: LineId,
}

/// A line of a chip.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize, derive_more::Display)]
#[serde(untagged)]
pub enum LineId {
    /// By its number on the chip.
    Number(u32),
    /// By the name that the board gives it.
    Name(String),
}

/// What a line is requested for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMode {
    /// To be read.
    Input {
        /// What it is pulled to; `None` leaves that unchanged.
        bias: Option<Bias>,
        /// How long the line must stay at a level before the change counts.
        debounce: Option<Duration>,
    },
    /// To be driven.
    Output {
        /// How the line is driven.
        drive: Drive,
        /// Whether it is on at first.
        on: bool,
    },
    /// To be read, without changing its direction.
    AsIs,
}

/// What a line is pulled to while nothing drives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub enum Bias {
    PullUp,
    PullDown,
    Disabled,
}

/// How an output is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub enum Drive {
    #[default]
    PushPull,
    OpenDrain,
    OpenSource,
}

/// A request for a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRequest {
    /// Which line.
    pub address: LineAddress,
    /// What the line is used for.
    pub mode: LineMode,
    /// Whether the line is on when its voltage is low.
    pub active_low: bool,
    /// The holder's name, visible to others. The kernel keeps the first 31 bytes.
    pub consumer: String,
}

/// A change of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Whether the line was switched on.
    pub is_rising: bool,
    /// The time, in nanoseconds of the kernel's monotonic clock.
    pub nanoseconds: u64,
    /// How many edges were lost between the last one that was returned and this one.
    pub lost: u32,
}

/// Whether the kernel records the edges of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EdgeDetection {
    On,
    Off,
}

/// Why a line cannot be requested or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpioError {
    /// There is no such chip or line.
    #[error("{0}")]
    NotFound(String),
    /// Somebody else holds the line.
    #[error("{0}")]
    Busy(String),
    /// The chip does not support the request.
    #[error("{0}")]
    Unsupported(String),
    /// The request failed.
    #[error("{0}")]
    Failed(String),
}

/// The chips of the host.
pub trait GpioChips: Send + Sync + 'static {
    /// Requests a line. Nobody else can hold it until the returned value is dropped. Blocks; runs in a tokio runtime.
    ///
    /// # Errors
    /// [`GpioError`].
    fn request(&self, request: &LineRequest) -> Result<Box<dyn GpioLine>, GpioError>;
}

/// A held line. Dropping it releases the line, which may block.
pub trait GpioLine: Send + Sync {
    /// Whether the line is on. Blocks.
    ///
    /// # Errors
    /// [`GpioError::Failed`].
    fn value(&self) -> Result<bool, GpioError>;

    /// Switches an output on or off. Blocks.
    ///
    /// # Errors
    /// [`GpioError::Failed`].
    fn set(&self, on: bool) -> Result<(), GpioError>;

    /// Starts or stops recording the edges of an input. Older edges are discarded. Blocks.
    ///
    /// # Errors
    /// [`GpioError`].
    fn detect_edges(&self, detection: EdgeDetection) -> Result<(), GpioError>;

    /// Waits for the next recorded edge. Uses no thread; dropping the future loses no edge.
    ///
    /// # Errors
    /// [`GpioError::Failed`].
    fn next_edge(&self) -> BoxFuture<'_, Result<Edge, GpioError>>;
}
