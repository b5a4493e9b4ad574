//! A plugin that takes an LED and then ends in a way in which no plugin should, for the tests of what happens to the
//! LED.

use std::time::Duration;

use supervisor_sdk::led::Light;
use supervisor_sdk::{Error, Path, plugin, timer};

plugin! {
    capabilities: { led => "leaves LEDs in states that the host has to mend" }
    routes: {
        POST "/v3/led-guests/:led/trap" => trap,
        POST "/v3/led-guests/:led/wait" => wait,
        POST "/v3/led-guests/:led/spin" => spin,
    }
    limits: { cpu_ms: 200, wall_ms: 1000 }
}

fn lit(led: &str) -> Result<Light, Error> {
    let light = Light::open(led)?;
    light.on()?;
    Ok(light)
}

async fn trap(Path(led): Path<String>) -> Result<(), Error> {
    let _light = lit(&led)?;
    panic!("with an LED in its hands");
}

/// Waits longer than its wall time.
async fn wait(Path(led): Path<String>) -> Result<(), Error> {
    let _light = lit(&led)?;
    timer::sleep(Duration::from_secs(3600)).await;
    Ok(())
}

/// Computes longer than its CPU time.
async fn spin(Path(led): Path<String>) -> Result<(), Error> {
    let _light = lit(&led)?;
    loop {
        std::hint::spin_loop();
    }
}
