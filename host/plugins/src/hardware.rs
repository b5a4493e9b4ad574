//! The host's objects for the hardware that plugins use.

pub(crate) mod gpio_lines;
pub(crate) mod led_memory;
mod led_snapshot;
pub(crate) mod leds;
pub(crate) mod serial_port;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use gpio_lines::GpioLines;
use leds::Leds;

/// The hardware that one plugin can reach, and what it shares with other plugins.
#[derive(Clone)]
pub(crate) struct Hardware {
    pub(crate) leds: Leds,
    /// The GPIO lines that plugins hold.
    pub(crate) gpio_lines: Arc<GpioLines>,
    /// The turns on I2C buses.
    pub(crate) i2c_turns: Arc<I2cTurns>,
}

/// The turns on each bus, by its device file. There is one entry for each bus of the board.
#[derive(Default)]
pub(crate) struct I2cTurns(Mutex<BTreeMap<PathBuf, Arc<Semaphore>>>);

impl I2cTurns {
    pub(crate) fn for_bus(&self, bus: PathBuf) -> Arc<Semaphore> {
        let mut turns = self.0.lock();
        let turn = turns.entry(bus);
        Arc::clone(turn.or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}
