//! GPIO lines in memory, for tests and for trials of plugins.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    Edge, EdgeDetection, GpioChips, GpioError, GpioLine, LineAddress, LineId, LineMode, LineRequest,
};

/// How many edges of a line are kept until they are read, as in the kernel.
const KEPT_EDGES: usize = 64;

/// Named lines on one chip. Cloning shares them.
#[derive(Clone)]
pub struct SimulatedGpio {
    lines: Arc<Mutex<BTreeMap<String, SimulatedLine>>>,
    begun: Instant,
}

struct SimulatedLine {
    is_on: bool,
    consumer: Option<String>,
    detection: EdgeDetection,
    edges: VecDeque<Edge>,
    lost: u32,
    noted: Arc<Notify>,
    /// The number of callers that wait for the next edge.
    waiting: usize,
}

impl Default for SimulatedGpio {
    fn default() -> Self {
        SimulatedGpio {
            lines: Arc::default(),
            begun: Instant::now(),
        }
    }
}

impl SimulatedGpio {
    /// The name of the chip.
    pub const CHIP: &'static str = "simulated";

    /// Returns the address of a line.
    #[must_use]
    pub fn address(line: &str) -> LineAddress {
        LineAddress {
            chip: Self::CHIP.to_owned(),
            line: LineId::Name(line.to_owned()),
        }
    }

    /// Adds a line.
    pub fn add(&self, line: &str, is_on: bool) {
        let simulated = SimulatedLine {
            is_on,
            consumer: None,
            detection: EdgeDetection::Off,
            edges: VecDeque::new(),
            lost: 0,
            noted: Arc::default(),
            waiting: 0,
        };
        self.lines.lock().insert(line.to_owned(), simulated);
    }

    /// Whether a line is on; `None` if there is no such line.
    #[must_use]
    pub fn is_on(&self, line: &str) -> Option<bool> {
        let lines = self.lines.lock();
        lines.get(line).map(|line| line.is_on)
    }

    /// Returns the name of a line's holder, if there is one.
    #[must_use]
    pub fn consumer(&self, line: &str) -> Option<String> {
        let lines = self.lines.lock();
        lines.get(line).and_then(|line| line.consumer.clone())
    }

    /// Whether the edges of a line are recorded.
    #[must_use]
    pub fn detects_edges(&self, line: &str) -> bool {
        let lines = self.lines.lock();
        let line = lines.get(line);
        line.is_some_and(|line| line.detection == EdgeDetection::On)
    }

    /// Whether somebody waits for the next edge of a line.
    #[must_use]
    pub fn is_waited_for(&self, line: &str) -> bool {
        let lines = self.lines.lock();
        lines.get(line).is_some_and(|line| line.waiting > 0)
    }

    /// Switches a line on or off, as hardware connected to it does. Returns false if there is no
    /// such line.
    #[must_use = "there may be no such line"]
    pub fn drive(&self, line: &str, on: bool) -> bool {
        let nanoseconds = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut lines = self.lines.lock();
        let Some(line) = lines.get_mut(line) else {
            return false;
        };
        if line.is_on == on {
            return true;
        }
        line.is_on = on;
        if line.detection == EdgeDetection::On {
            if line.edges.len() == KEPT_EDGES {
                line.edges.pop_front();
                line.lost += 1;
            }
            line.edges.push_back(Edge {
                is_rising: on,
                nanoseconds,
                lost: 0,
            });
            line.noted.notify_one();
        }
        true
    }
}

impl GpioChips for SimulatedGpio {
    fn request(&self, request: &LineRequest) -> Result<Box<dyn GpioLine>, GpioError> {
        let LineAddress { chip, line } = &request.address;
        let name = line.to_string();
        let mut lines = self.lines.lock();
        let line = lines.get_mut(&name).filter(|_| chip == Self::CHIP);
        let Some(line) = line else {
            return Err(GpioError::NotFound(format!(
                "the device has no GPIO line {name:?} on a chip {chip:?}"
            )));
        };
        if let Some(consumer) = &line.consumer {
            return Err(GpioError::Busy(format!(
                "the line {name} of `{chip}` is in use by `{consumer}`"
            )));
        }
        line.consumer = Some(request.consumer.clone());
        if let LineMode::Output { on, .. } = request.mode {
            line.is_on = on;
        }
        Ok(Box::new(HeldLine {
            chip: self.clone(),
            name,
            noted: Arc::clone(&line.noted),
        }))
    }
}

struct HeldLine {
    chip: SimulatedGpio,
    name: String,
    noted: Arc<Notify>,
}

impl HeldLine {
    fn with<R>(&self, using: impl FnOnce(&mut SimulatedLine) -> R) -> Result<R, GpioError> {
        let mut lines = self.chip.lines.lock();
        let line = lines.get_mut(&self.name);
        line.map(using)
            .ok_or_else(|| GpioError::Failed(format!("the line {} is gone", self.name)))
    }
}

impl Drop for HeldLine {
    fn drop(&mut self) {
        let _ = self.with(|line| {
            line.consumer = None;
            line.detection = EdgeDetection::Off;
        });
    }
}

/// Counts one caller that waits for the next edge, until dropped.
struct WaitGuard<'a>(&'a HeldLine);

impl WaitGuard<'_> {
    fn begin(line: &HeldLine) -> Result<WaitGuard<'_>, GpioError> {
        line.with(|line| line.waiting += 1)?;
        Ok(WaitGuard(line))
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let _ = self.0.with(|line| line.waiting -= 1);
    }
}

impl GpioLine for HeldLine {
    fn value(&self) -> Result<bool, GpioError> {
        self.with(|line| line.is_on)
    }

    fn set(&self, on: bool) -> Result<(), GpioError> {
        self.with(|line| line.is_on = on)
    }

    fn detect_edges(&self, detection: EdgeDetection) -> Result<(), GpioError> {
        self.with(|line| {
            line.edges.clear();
            line.lost = 0;
            line.detection = detection;
        })
    }

    fn next_edge(&self) -> BoxFuture<'_, Result<Edge, GpioError>> {
        async move {
            loop {
                let edge = self.with(|line| {
                    let edge = line.edges.pop_front()?;
                    let lost = std::mem::take(&mut line.lost);
                    Some(Edge { lost, ..edge })
                })?;
                match edge {
                    Some(edge) => return Ok(edge),
                    // An edge that comes in between leaves a permit.
                    None => {
                        let _waiting = WaitGuard::begin(self)?;
                        self.noted.notified().await;
                    }
                }
            }
        }
        .boxed()
    }
}
