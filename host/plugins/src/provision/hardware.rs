//! The host's objects for the hardware that plugins use.

use std::sync::Arc;

use crate::provision::gpio_lines::GpioLines;
use crate::provision::i2c::I2cTurns;
use crate::provision::led::Leds;

/// The hardware that one plugin can reach, and what it shares with other plugins.
#[derive(Clone)]
pub(crate) struct Hardware {
    pub(crate) leds: Leds,
    /// The GPIO lines that plugins hold.
    pub(crate) gpio_lines: Arc<GpioLines>,
    /// The turns on I2C buses.
    pub(crate) i2c_turns: Arc<I2cTurns>,
}
