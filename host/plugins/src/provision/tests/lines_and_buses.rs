//! GPIO lines and chips on I2C buses, in memory. What the kernel does with them is tested in `os`.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use ::tests::until;
use os::{BusId, I2cBuses, SimulatedGpio, SimulatedI2c};
use parking_lot::Mutex;
use plugin_protocol::{GpioEdgeEvent, GpioError, I2C_BYTES, I2cError};

use super::*;
use crate::provision::gpio_lines::GpioLines;

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
}

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
        }
    }

    /// A version of a plugin with this section of the policy. It serves once it is granted.
    fn plugin(&self, name: &str, policy: &str) -> Plugin {
        let Fixture { context, _root } = Fixture::new(policy);
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

    /// Has these plugins and no others serve.
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
        let answer = self.context.provide(holdings, &origin, call.into()).await;
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
        let wait = GpioWait {
            name: name.to_owned(),
            edge,
            milliseconds,
        };
        match self.call(holdings, wait).await {
            Answer::GpioWait(answer) => answer,
            other => panic!("{other:?}"),
        }
    }

    async fn transfer(&self, name: &str, operation: I2cOperation) -> Result<Vec<u8>, I2cError> {
        let name = name.to_owned();
        match self
            .call(&Holdings::default(), I2cTransfer { name, operation })
            .await
        {
            Answer::I2cTransfer(answer) => answer,
            other => panic!("{other:?}"),
        }
    }
}

fn write_read(bytes: &[u8], read_length: u32) -> I2cOperation {
    I2cOperation::WriteRead {
        bytes: bytes.to_owned(),
        read_length,
    }
}

#[tokio::test]
async fn a_plugin_uses_the_lines_that_the_policy_names_and_no_others() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    // An output that was never written is read as it is, and nobody holds it after that.
    assert_eq!(plugin.read("relay").await, Ok(true));
    assert_eq!(hardware.gpio.consumer("RELAY"), None);
    plugin.write("relay", false).await.unwrap();
    assert_eq!(hardware.gpio.is_on("RELAY"), Some(false));
    assert_eq!(plugin.read("relay").await, Ok(false));
    assert_eq!(plugin.read("door").await, Ok(false));
    assert!(hardware.gpio.drive("DOOR", true));
    assert_eq!(plugin.read("door").await, Ok(true));
    for name in ["RELAY", "simulated", "gpiochip0", "", "relay\0", "door "] {
        let refused = plugin.read(name).await;
        assert!(
            matches!(refused, Err(GpioError::NotGranted(_))),
            "{name:?} {refused:?}"
        );
    }
    for name in ["gone", "elsewhere"] {
        let missing = plugin.read(name).await;
        assert!(
            matches!(missing, Err(GpioError::NotFound(_))),
            "{missing:?}"
        );
    }
    let wait = plugin
        .wait(&Holdings::default(), "relay", GpioEdge::Both, 0)
        .await;
    assert!(matches!(wait, Err(GpioError::Invalid(_))), "{wait:?}");
    let write = plugin.write("door", true).await;
    assert!(matches!(write, Err(GpioError::Invalid(_))), "{write:?}");
}

#[tokio::test]
async fn a_name_that_a_plugin_makes_up_shows_no_control_characters() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let name = format!("\u{1b}[2J\n{}", "x".repeat(200));
    let line = plugin.read(&name).await.unwrap_err().to_string();
    let chip = plugin.transfer(&name, write_read(&[], 1)).await;
    for message in [line, chip.unwrap_err().to_string()] {
        assert!(!message.contains(char::is_control), "{message:?}");
        assert!(message.len() < 200, "{message:?}");
    }
}

#[tokio::test]
async fn an_output_stays_as_it_is_until_the_policy_no_longer_gives_it() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    plugin.write("relay", true).await.unwrap();
    // Another version of the plugin has the same lines.
    let next = hardware.plugin("door", DOOR);
    hardware.serve(&[&next]);
    assert_eq!(
        hardware.gpio.consumer("RELAY").as_deref(),
        Some("plugin door")
    );
    assert_eq!(next.read("relay").await, Ok(true));
    // With another setting it is another line.
    let inverted = DOOR.replace(
        "direction = \"out\"",
        "direction = \"out\", active_low = true",
    );
    let inverted = hardware.plugin("door", &inverted);
    hardware.serve(&[&inverted]);
    hardware.until_free("RELAY").await;
    inverted.write("relay", true).await.unwrap();
    let without = hardware.plugin("door", NOTHING);
    hardware.serve(&[&without]);
    hardware.until_free("RELAY").await;
    // A call that is still under way does not take it again.
    for plugin in [plugin, next, inverted] {
        let refused = plugin.write("relay", true).await;
        assert!(
            matches!(refused, Err(GpioError::NotGranted(_))),
            "{refused:?}"
        );
        assert_eq!(hardware.gpio.consumer("RELAY"), None);
    }
}

#[tokio::test]
async fn a_line_is_one_plugins_at_a_time() {
    let hardware = TestBoard::new();
    let (one, other) = (hardware.plugin("one", DOOR), hardware.plugin("other", DOOR));
    hardware.serve(&[&one, &other]);
    one.write("relay", true).await.unwrap();
    let busy = other.write("relay", false).await;
    let expected = "the line RELAY of `simulated` is in use by `plugin one`".to_owned();
    assert_eq!(busy, Err(GpioError::Busy(expected)));
    assert_eq!(hardware.gpio.is_on("RELAY"), Some(true));
    hardware.serve(&[&other]);
    hardware.until_free("RELAY").await;
    other.write("relay", false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn edges_between_two_waits_of_a_call_are_not_lost() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let call = Holdings::default();
    let wait = async |edge| plugin.wait(&call, "door", edge, 1000).await.unwrap();
    assert_eq!(wait(GpioEdge::Both).await, None);
    for on in [true, false, true] {
        assert!(hardware.gpio.drive("DOOR", on));
    }
    let first = wait(GpioEdge::Falling).await.unwrap();
    assert!(!first.is_rising);
    let second = wait(GpioEdge::Both).await.unwrap();
    assert!(second.is_rising && second.nanoseconds >= first.nanoseconds);
    assert_eq!(wait(GpioEdge::Both).await, None);
    // More than find room: the latest stay, and the others are counted.
    for number in 0..100 {
        assert!(hardware.gpio.drive("DOOR", number % 2 == 1));
    }
    assert_eq!(wait(GpioEdge::Both).await.unwrap().lost, 36);
    // What came before a call is not the call's.
    drop(call);
    hardware.until_watched("DOOR", false).await;
    let later = Holdings::default();
    let wait = plugin.wait(&later, "door", GpioEdge::Both, 1000);
    assert_eq!(wait.await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn edges_of_the_other_kind_are_passed_over_and_those_lost_with_them_count() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let call = Holdings::default();
    let wait = async |edge| plugin.wait(&call, "door", edge, 1000).await.unwrap();
    assert_eq!(wait(GpioEdge::Both).await, None);
    for on in [true, false, true] {
        assert!(hardware.gpio.drive("DOOR", on));
    }
    for _ in 0..2 {
        assert!(wait(GpioEdge::Rising).await.unwrap().is_rising);
    }
    assert_eq!(wait(GpioEdge::Both).await, None);
    // The oldest of the 64 that there is room for is a falling one.
    for number in 0..100 {
        assert!(hardware.gpio.drive("DOOR", number % 2 == 1));
    }
    let rising = wait(GpioEdge::Rising).await.unwrap();
    assert_eq!((rising.is_rising, rising.lost), (true, 36));
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_an_edge_has_an_end() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let begun = tokio::time::Instant::now();
    let call = Holdings::default();
    let waited = plugin.wait(&call, "door", GpioEdge::Both, u32::MAX).await;
    assert_eq!(waited, Ok(None));
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_line_that_is_given_back_while_a_call_waits_for_its_turn_is_not_used() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let grant = plugin.context.grants.gpio.line("relay").unwrap();
    let line = hardware.lines.get(&plugin.context.name, grant).unwrap();
    let turn = line.held.lock().await;
    let revoke = async {
        hardware.serve(&[]);
        drop(turn);
    };
    let (written, ()) = tokio::join!(plugin.write("relay", false), revoke);
    assert!(
        matches!(written, Err(GpioError::NotGranted(_))),
        "{written:?}"
    );
    assert_eq!(hardware.gpio.is_on("RELAY"), Some(true));
}

#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_waits_for_the_edges_of_a_line() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let (one, other) = (Holdings::default(), Holdings::default());
    let wait = async |call: &Holdings| plugin.wait(call, "door", GpioEdge::Both, 0).await;
    assert_eq!(wait(&one).await, Ok(None));
    let busy = wait(&other).await;
    assert!(matches!(busy, Err(GpioError::Busy(_))), "{busy:?}");
    // Others can read the line, and one that waits twice at a time is told so.
    assert_eq!(plugin.read("door").await, Ok(false));
    let long = plugin.wait(&one, "door", GpioEdge::Both, 60_000);
    let (long, twice) = tokio::join!(long, wait(&one));
    assert_eq!(long, Ok(None));
    assert!(matches!(twice, Err(GpioError::Busy(_))), "{twice:?}");
    drop(one);
    assert_eq!(wait(&other).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_line_is_no_longer_granted() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    hardware.serve(&[&plugin]);
    let call = Holdings::default();
    let wait = plugin.wait(&call, "door", GpioEdge::Both, u32::MAX);
    let revoke = async {
        hardware.until_watched("DOOR", true).await;
        hardware.serve(&[]);
    };
    let (waited, ()) = tokio::join!(wait, revoke);
    assert!(
        matches!(waited, Err(GpioError::NotGranted(_))),
        "{waited:?}"
    );
    // Though the call is not over.
    hardware.until_free("DOOR").await;
    let again = plugin.wait(&call, "door", GpioEdge::Both, 0).await;
    assert!(matches!(again, Err(GpioError::NotGranted(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn waits_for_edges_take_no_thread_and_cost_the_others_nothing() {
    let hardware = TestBoard::new();
    let lines: Vec<String> = (0..40).map(|number| format!("L{number}")).collect();
    let grants: Vec<String> = lines
        .iter()
        .map(|line| {
            hardware.gpio.add(line, false);
            format!("{{ name = \"{line}\", chip = \"simulated\", line = \"{line}\", direction = \"in\" }}")
        })
        .collect();
    let policy = format!("grants = [\"gpio\"]\ngpio = [{}]", grants.join(", "));
    let flood = hardware.plugin("flood", &policy);
    let door = hardware.plugin("door", DOOR);
    hardware.serve(&[&flood, &door]);
    let call = Holdings::default();
    let waits = lines
        .iter()
        .map(|line| flood.wait(&call, line, GpioEdge::Both, 60_000));
    let others = async {
        until("all of them to wait", async || {
            let waiting = lines
                .iter()
                .filter(|line| hardware.gpio.is_waited_for(line));
            let count = waiting.count();
            if count == lines.len() {
                Ok(())
            } else {
                Err(count)
            }
        })
        .await;
        door.write("relay", true).await.unwrap();
        assert!(hardware.gpio.drive("L7", true));
    };
    let (waited, ()) = tokio::join!(futures::future::join_all(waits), others);
    let edges = waited.iter().filter(|edge| matches!(edge, Ok(Some(_))));
    assert_eq!(edges.count(), 1, "{waited:?}");
}

#[tokio::test]
async fn a_plugin_talks_to_the_chips_that_the_policy_names_and_no_others() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    let ask = async |operation| plugin.transfer("sensor", operation).await;
    assert_eq!(ask(write_read(&[0], 2)).await, Ok(vec![0x19, 0x80]));
    assert_eq!(
        ask(I2cOperation::ReadByte { register: 1 }).await,
        Ok(vec![0x80])
    );
    let written = ask(I2cOperation::WriteWord {
        register: 4,
        value: 0x1234,
    })
    .await;
    assert_eq!(written, Ok(Vec::new()));
    assert_eq!(
        ask(I2cOperation::ReadWord { register: 4 }).await,
        Ok(vec![0x34, 0x12])
    );
    assert_eq!(
        ask(I2cOperation::WriteByte {
            register: 5,
            value: 7
        })
        .await,
        Ok(Vec::new())
    );
    assert_eq!(ask(write_read(&[5], 1)).await, Ok(vec![7]));
    for name in ["1", "0x48", "sensor ", ""] {
        let refused = plugin.transfer(name, write_read(&[0], 2)).await;
        assert!(
            matches!(refused, Err(I2cError::NotGranted(_))),
            "{name} {refused:?}"
        );
    }
    let missing = plugin.transfer("missing", write_read(&[0], 2)).await;
    assert!(matches!(missing, Err(I2cError::NoAnswer(_))), "{missing:?}");
    let missing = plugin.transfer("no-bus", write_read(&[0], 2)).await;
    assert!(matches!(missing, Err(I2cError::NotFound(_))), "{missing:?}");
    let long = vec![0; I2C_BYTES + 1];
    for operation in [
        write_read(&[], 0),
        write_read(&long, 0),
        write_read(&[], 4097),
        write_read(&[], u32::MAX),
    ] {
        let invalid = ask(operation).await;
        assert!(matches!(invalid, Err(I2cError::Invalid(_))), "{invalid:?}");
    }
}

/// Buses of which the one with the number 1 answers when it is let go.
struct StuckBus {
    begun: Sender<()>,
    let_go: Mutex<Receiver<()>>,
}

impl I2cBuses for StuckBus {
    fn find(&self, bus: &BusId) -> Result<PathBuf, os::I2cError> {
        Ok(PathBuf::from(bus.to_string()))
    }

    fn run(&self, bus: &Path, _: u8, _: &os::I2cOperation) -> Result<Vec<u8>, os::I2cError> {
        if bus == Path::new("1") {
            let _ = self.begun.send(());
            let _ = self.let_go.lock().recv();
        }
        Ok(vec![1])
    }
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_never_answers_costs_the_others_nothing() {
    let (begun, begins) = channel();
    let (let_go, is_let_go) = channel();
    let mut hardware = TestBoard::new();
    hardware.i2c = Arc::new(StuckBus {
        begun,
        let_go: Mutex::new(is_let_go),
    });
    let flood = hardware.plugin("flood", DOOR);
    let door = hardware.plugin("door", DOOR);
    hardware.serve(&[&door]);
    let transfers = (0..50).map(|_| flood.transfer("sensor", write_read(&[0], 1)));
    let others = async {
        // Time stands still while the bus is waited for.
        while begins.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        // Another bus, and a line.
        let read = door.transfer("no-bus", write_read(&[0], 1)).await;
        assert_eq!(read, Ok(vec![1]));
        door.write("relay", true).await.unwrap();
        tokio::time::advance(Duration::from_secs(6)).await;
    };
    let (transferred, ()) = tokio::join!(futures::future::join_all(transfers), others);
    for transfer in transferred {
        assert!(matches!(transfer, Err(I2cError::Busy(_))), "{transfer:?}");
    }
    // One transfer reached the bus, and the next has its turn when it answers.
    assert!(begins.try_recv().is_err());
    drop(let_go);
    assert_eq!(
        door.transfer("sensor", write_read(&[0], 1)).await,
        Ok(vec![1])
    );
}
