//! Shows the device to a person with an LED: the stock provider of `identify` (`POST /v1/blink`).
//!
//! Configuration (`[plugins.led-blink]`): `led`, the name of the LED in the kernel's LED class; without
//! it, the activity LED if there is one, else the first that the policy grants. A device without an LED
//! is not a failure: there is nothing to show, and callers have never received an error for this.

use std::time::Duration;

use serde::Deserialize;
use supervisor_sdk::led::Light;
use supervisor_sdk::{Error, config, identify, led, log, plugin, timer};

plugin! {
    capabilities: { led => "blinks an LED so that a person can identify the device" }
    identify => blink,
}

#[derive(Deserialize)]
struct Configuration {
    led: Option<String>,
}

/// Names that boards give to their most visible LED, the most likely first.
const ACTIVITY: [&str; 4] = ["ACT", "act", "led0", "LED0"];

/// How long the LED is on, then off, repeatedly: three short flashes and a pause, which no kernel
/// trigger can show.
const PATTERN: [(Duration, Duration); 3] = {
    const FLASH: Duration = Duration::from_millis(150);
    const PAUSE: Duration = Duration::from_millis(700);
    [(FLASH, FLASH), (FLASH, FLASH), (FLASH, PAUSE)]
};

async fn blink() -> Result<(), Error> {
    let Configuration { led: configured } = config::read()?;
    let names = led::names()?;
    let Some(name) = choose(configured.as_deref(), &names) else {
        match configured {
            Some(name) => log::warn(format_args!(
                "there is no LED `{name}` here, or the policy does not grant it; \
                 set `led` in `[plugins.led-blink]` to one of: {}",
                names.join(", ")
            )),
            None => log::debug("this device has no LED to identify itself with"),
        }
        return Ok(());
    };
    let light = Light::open(name)?;
    for (on, off) in PATTERN.into_iter().cycle() {
        light.on()?;
        timer::sleep(on.min(identify::remaining())).await;
        light.off()?;
        timer::sleep(off.min(identify::remaining())).await;
        if identify::remaining().is_zero() {
            break;
        }
    }
    Ok(())
}

/// Chooses the LED to blink: the configured one and no other, or else the most visible one.
fn choose<'a>(configured: Option<&str>, names: &'a [String]) -> Option<&'a str> {
    let named = |name: &str| names.iter().find(|other| *other == name);
    let name = match configured {
        Some(name) => named(name),
        None => ACTIVITY
            .iter()
            .find_map(|name| named(name))
            .or(names.first()),
    };
    name.map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_led_goes_before_the_activity_led_and_that_before_the_first() {
        let table = [
            (Some("PWR"), vec!["ACT", "PWR"], Some("PWR")),
            (Some("gone"), vec!["ACT", "PWR"], None),
            (None, vec!["ACT", "PWR"], Some("ACT")),
            (None, vec!["PWR", "led0"], Some("led0")),
            (None, vec!["b:green", "c:red"], Some("b:green")),
            (None, vec![], None),
        ];
        for (configured, names, expected) in table {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            assert_eq!(
                choose(configured, &names),
                expected,
                "{configured:?} {names:?}"
            );
        }
    }
}
