//! A plugin as a board's vendor would ship it: `identify` for boards `acme-*`, whose two LEDs flash in
//! turn.
//!
//! It provides the same action as the stock plugin led-blink, and names its boards, so on those it
//! replaces led-blink; no endpoint changes. Configuration (`[plugins.board-leds]`): `left` and `right`,
//! the LEDs.

use std::time::Duration;

use serde::Deserialize;
use supervisor_sdk::led::Light;
use supervisor_sdk::{Error, config, identify, plugin, timer};

plugin! {
    capabilities: { led => "flashes the board's two status LEDs in turn" }
    identify => flash_in_turn,
    boards: ["acme-*"]
}

#[derive(Deserialize)]
#[serde(default)]
struct Leds {
    left: String,
    right: String,
}

impl Default for Leds {
    fn default() -> Self {
        Self {
            left: "acme:green:left".to_owned(),
            right: "acme:green:right".to_owned(),
        }
    }
}

const STEP: Duration = Duration::from_millis(250);

async fn flash_in_turn() -> Result<(), Error> {
    let leds: Leds = config::read()?;
    let (left, right) = (Light::open(&leds.left)?, Light::open(&leds.right)?);
    while !identify::remaining().is_zero() {
        for (lit, dark) in [(&left, &right), (&right, &left)] {
            dark.off()?;
            lit.on()?;
            timer::sleep(STEP.min(identify::remaining())).await;
        }
    }
    Ok(())
}
