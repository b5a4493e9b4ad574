//! Unlocks a door with a relay, detects whether somebody opened it, and watches the temperature of its enclosure: the
//! example of GPIO lines and of I2C.
//!
//! The policy assigns the lines `relay` (an output) and `door` (an input, on while the door is open), and the chip
//! `thermometer`, an LM75.
use std::time::Duration;

use serde::Serialize;
use supervisor_sdk::events::{Answer, Event};
use supervisor_sdk::gpio::{self, Edge};
use supervisor_sdk::{Error, Json, i2c, metrics, plugin};

plugin! {
    capabilities: {
        gpio => "switches the door's relay, and sees whether the door is open"
        i2c => "reads the thermometer of the box"
        metrics => "shows the temperature"
    }
    routes: {
        GET "/v3/door" => show,
        POST "/v3/door/open" => open,
    }
    schedules: { temperature => "every 1m" }
    on_event => watch
}

/// How long somebody has to open the door.
const PATIENCE: Duration = Duration::from_secs(5);
/// The temperature register of an LM75: two bytes, the high one first.
const TEMPERATURE: u8 = 0;

#[derive(Serialize)]
struct State {
    is_unlocked: bool,
    is_open: bool,
    celsius: f64,
}

async fn show() -> Result<Json<State>, Error> {
    Ok(Json(State {
        is_unlocked: gpio::read("relay").await?,
        is_open: gpio::read("door").await?,
        celsius: celsius().await?,
    }))
}

#[derive(Serialize)]
struct Visit {
    /// Whether somebody opened the door in time.
    was_opened: bool,
}

async fn open() -> Result<Json<Visit>, Error> {
    gpio::write("relay", true).await?;
    let opened = gpio::wait_edge("door", Edge::Rising, PATIENCE).await;
    // The device keeps an output's value, so the door is locked again, whatever the outcome.
    gpio::write("relay", false).await?;
    let was_opened = opened?.is_some();
    Ok(Json(Visit { was_opened }))
}

async fn watch(event: Event) -> Result<Answer, Error> {
    if let Event::Schedule(_) = event {
        metrics::set_gauge("celsius", &[], celsius().await?).await?;
    }
    Ok(Answer::GoOn)
}

async fn celsius() -> Result<f64, Error> {
    let bytes = i2c::write_read("thermometer", [TEMPERATURE], 2).await?;
    let [high, low] = bytes[..] else {
        return Err(Error::bad_gateway("the thermometer answered nothing"));
    };
    Ok(f64::from(i16::from_be_bytes([high, low])) / 256.0)
}
