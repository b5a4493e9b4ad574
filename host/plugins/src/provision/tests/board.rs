//! A board with GPIO lines and an I2C bus, in memory. The kernel's part is tested in `os`.

mod gpio_lines;
mod i2c_chips;

use ::tests::until;
use os::{I2cBuses, SimulatedGpio, SimulatedI2c};
use parking_lot::{Mutex, MutexGuard};
use plugin_protocol::{GpioEdgeEvent, GpioError, I2cError};

use super::*;
use crate::hardware::gpio_lines::GpioLines;

const DOOR: &str = r#"
grants = ["gpio", "i2c"]
gpio = [
    { name = "relay", chip = "simulated", line = "RELAY", direction = "out" },
    { name = "door", chip = "simulated", line = "DOOR", direction = "in" },
    { name = "gone", chip = "simulated", line = "GONE", direction = "in" },
    { name = "elsewhere", chip = "gpiochip7", line = 1, direction = "out" },
]
i2c = [
    { name = "sensor", bus = 1, address = 0x48 },
    { name = "missing", bus = 1, address = 0x49 },
    { name = "no-bus", bus = 7, address = 0x48 },
]
"#;
const NOTHING: &str = "grants = [\"gpio\", \"i2c\"]";

/// A device with a relay, a door and a sensor.
struct TestBoard {
    gpio: SimulatedGpio,
    i2c: Arc<dyn I2cBuses>,
    lines: Arc<GpioLines>,
    /// One board at a time: all plugins share the places for work on hardware, and a paused clock continues while its
    /// test waits for a place that another test has.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

/// A plugin on it.
struct Plugin {
    context: Arc<PluginContext>,
    _root: tempfile::TempDir,
}

impl TestBoard {
    fn new() -> TestBoard {
        let gpio = SimulatedGpio::default();
        gpio.add("RELAY", true);
        gpio.add("DOOR", false);
        let i2c = SimulatedI2c::default();
        i2c.add("1", 0x48);
        assert!(i2c.set("1", 0x48, 0, &[0x19, 0x80]));
        TestBoard {
            gpio,
            i2c: Arc::new(i2c),
            lines: Arc::default(),
            _turn: TURN.lock(),
        }
    }

    /// Creates a board on which the plugin `door` serves.
    fn with_door() -> (TestBoard, Plugin) {
        let hardware = TestBoard::new();
        let plugin = hardware.plugin("door", DOOR);
        hardware.serve(&[&plugin]);
        (hardware, plugin)
    }

    /// Creates a version of a plugin with this section of the policy. It serves once it is granted.
    fn plugin(&self, name: &str, policy: &str) -> Plugin {
        let Fixture { context, _root, .. } = Fixture::new(policy);
        let mut context = Arc::into_inner(context).unwrap();
        context.name = name.into();
        let mut services = Arc::into_inner(context.services).unwrap();
        services.gpio = Arc::new(self.gpio.clone());
        services.i2c = Arc::clone(&self.i2c);
        context.services = Arc::new(services);
        context.hardware.gpio_lines = Arc::clone(&self.lines);
        Plugin {
            context: Arc::new(context),
            _root,
        }
    }

    /// Makes these plugins serve, and no others.
    fn serve(&self, plugins: &[&Plugin]) {
        let granted = plugins.iter().flat_map(|plugin| {
            let context = &plugin.context;
            let lines = context.grants.gpio.iter().cloned();
            lines.map(|line| (Arc::clone(&context.name), line))
        });
        self.lines.set_granted(granted);
    }

    async fn until_watched(&self, line: &str, expected: bool) {
        until("the edges to be noted, or no more", async || {
            let is_watched = self.gpio.detects_edges(line);
            if is_watched == expected {
                Ok(())
            } else {
                Err(is_watched)
            }
        })
        .await;
    }

    async fn until_free(&self, line: &str) {
        until("the line to be given back", async || {
            self.gpio.consumer(line).map_or(Ok(()), Err)
        })
        .await;
    }
}

impl Plugin {
    async fn call(&self, holdings: &Holdings, call: impl Into<Call>) -> Answer {
        let origin = Origin::outside(CallerScope::DeviceKey);
        let answer = carry_out(&self.context, holdings, &origin, call.into()).await;
        answer.unwrap()
    }

    async fn read(&self, name: &str) -> Result<bool, GpioError> {
        let name = name.to_owned();
        match self.call(&Holdings::default(), GpioRead { name }).await {
            Answer::GpioRead(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn write(&self, name: &str, on: bool) -> Result<(), GpioError> {
        let name = name.to_owned();
        match self
            .call(&Holdings::default(), GpioWrite { name, on })
            .await
        {
            Answer::GpioWrite(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn wait(
        &self,
        holdings: &Holdings,
        name: &str,
        edge: GpioEdge,
        milliseconds: u32,
    ) -> Result<Option<GpioEdgeEvent>, GpioError> {
        let wait = GpioWaitEdge {
            name: name.to_owned(),
            edge,
            milliseconds,
        };
        match self.call(holdings, wait).await {
            Answer::GpioWaitEdge(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn transfer(
        &self,
        name: &str,
        bytes: &[u8],
        read_length: u32,
    ) -> Result<Vec<u8>, I2cError> {
        let transfer = I2cWriteRead {
            name: name.to_owned(),
            bytes: bytes.to_owned(),
            read_length,
        };
        match self.call(&Holdings::default(), transfer).await {
            Answer::I2cWriteRead(answer) => answer,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_name_that_a_plugin_makes_up_shows_no_control_characters() {
    let (_hardware, plugin) = TestBoard::with_door();
    let name = format!("\u{1b}[2J\n{}", "x".repeat(200));
    let line = plugin.read(&name).await.unwrap_err().to_string();
    let chip = plugin.transfer(&name, &[], 1).await;
    for message in [line, chip.unwrap_err().to_string()] {
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(message.len() < 200, "{message:?}");
    }
}
