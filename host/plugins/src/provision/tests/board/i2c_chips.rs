//! Chips on I2C buses, which plugins use in turn.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

use os::BusId;
use plugin_protocol::I2C_BYTES;

use super::*;

#[tokio::test]
async fn a_plugin_talks_to_the_chips_that_the_policy_names_and_no_others() {
    let hardware = TestBoard::new();
    let plugin = hardware.plugin("door", DOOR);
    let transfer = async |bytes: &[u8], read| plugin.transfer("sensor", bytes, read).await;
    let ask = async |call: Call| plugin.call(&Holdings::default(), call).await;
    let name = || "sensor".to_owned();
    assert_eq!(transfer(&[0], 2).await, Ok(vec![0x19, 0x80]));
    let read = I2cReadByte {
        name: name(),
        register: 1,
    };
    assert_eq!(ask(read.into()).await, Answer::I2cReadByte(Ok(0x80)));
    let write = I2cWriteWord {
        name: name(),
        register: 4,
        value: 0x1234,
    };
    assert_eq!(ask(write.into()).await, Answer::I2cWriteWord(Ok(())));
    let read = I2cReadWord {
        name: name(),
        register: 4,
    };
    assert_eq!(ask(read.into()).await, Answer::I2cReadWord(Ok(0x1234)));
    assert_eq!(transfer(&[4], 2).await, Ok(vec![0x34, 0x12]));
    let write = I2cWriteByte {
        name: name(),
        register: 5,
        value: 7,
    };
    assert_eq!(ask(write.into()).await, Answer::I2cWriteByte(Ok(())));
    assert_eq!(transfer(&[5], 1).await, Ok(vec![7]));
    for name in ["1", "0x48", "sensor ", ""] {
        let refused = plugin.transfer(name, &[0], 2).await;
        assert!(
            matches!(refused, Err(I2cError::NotGranted(_))),
            "{name} {refused:?}"
        );
    }
    let missing = plugin.transfer("missing", &[0], 2).await;
    assert!(matches!(missing, Err(I2cError::NoAnswer(_))), "{missing:?}");
    let missing = plugin.transfer("no-bus", &[0], 2).await;
    assert!(matches!(missing, Err(I2cError::NotFound(_))), "{missing:?}");
    let long = vec![0; I2C_BYTES + 1];
    for (bytes, read) in [(&[][..], 0), (&long, 0), (&[], 4097), (&[], u32::MAX)] {
        let invalid = transfer(bytes, read).await;
        assert!(matches!(invalid, Err(I2cError::Invalid(_))), "{invalid:?}");
    }
}

/// Buses of which number 1 answers only when it is released.
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
    let transfers = (0..50).map(|_| flood.transfer("sensor", &[0], 1));
    let others = async {
        // Time stands still during the wait for the bus.
        while begins.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        // Another bus, and a line.
        let read = door.transfer("no-bus", &[0], 1).await;
        assert_eq!(read, Ok(vec![1]));
        door.write("relay", true).await.unwrap();
        tokio::time::advance(Duration::from_secs(6)).await;
    };
    let (transferred, ()) = tokio::join!(futures::future::join_all(transfers), others);
    for transfer in transferred {
        assert!(matches!(transfer, Err(I2cError::Busy(_))), "{transfer:?}");
    }
    // One transfer reached the bus, and the next one gets its turn when it answers.
    assert!(begins.try_recv().is_err());
    drop(let_go);
    assert_eq!(door.transfer("sensor", &[0], 1).await, Ok(vec![1]));
}
