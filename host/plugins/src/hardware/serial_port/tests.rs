use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use ::tests::{PseudoTerminal, until};

use super::*;

const SETTINGS: SerialSettings = SerialSettings {
    baud: 9600,
    data_bits: 8,
    parity: Parity::None,
    stop_bits: 1,
};

#[tokio::test]
async fn a_port_is_open_once_under_whatever_name_and_again_after_that() {
    let terminal = PseudoTerminal::open();
    let name = terminal.name();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("by-id");
    symlink(name, &other).unwrap();
    let port = try_open(name, SETTINGS).unwrap().unwrap();
    for name in [name, other.to_str().unwrap()] {
        let busy = try_open(name, SETTINGS).err();
        assert!(matches!(busy, Some(SerialError::Busy(_))), "{busy:?}");
    }
    drop(port);
    let other = other.to_str().unwrap();
    until("the port to be closed", || async {
        match try_open(other, SETTINGS) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(None),
            Err(error) => Err(Some(error)),
        }
    })
    .await;
}

/// A line that has something to send for as long as the sender of this exists.
struct SlowLine(Receiver<()>);

impl Drop for SlowLine {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

fn slow_port(path: &Path, sending: Receiver<()>) -> Port<SlowLine> {
    let hold = PortHold::take(path.to_owned()).ok().unwrap();
    let line = SlowLine(sending);
    Port {
        name: path.display().to_string(),
        open: Some(OpenPort { line, hold }),
    }
}

fn hold_of(path: &Path) -> Option<Hold> {
    HOLDS.lock().get(path).copied()
}

/// Runs on a runtime with one thread, which has to be free for the end of the line's work.
#[test]
fn a_port_that_takes_its_time_to_close_holds_up_nobody_and_is_free_after_that() {
    let (done, ended) = channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().build().unwrap().block_on(async {
            let path = Path::new("/dev/ttySlow0");
            let (sender, sending) = channel();
            drop(slow_port(path, sending));
            assert_eq!(hold_of(path), Some(Hold::Closing));
            assert_eq!(PortHold::take(path.to_owned()).err(), Some(Hold::Closing));
            drop(sender);
            until("the port to be free", || async {
                hold_of(path).map_or(Ok(()), Err)
            })
            .await;
        });
        done.send(()).unwrap();
    });
    let others = ended.recv_timeout(Duration::from_secs(30));
    others.expect("others wait for the port");
}

#[test]
fn without_a_runtime_a_port_is_closed_at_once() {
    let path = Path::new("/dev/ttySlow1");
    let (sender, sending) = channel();
    let port = slow_port(path, sending);
    assert_eq!(hold_of(path), Some(Hold::Open));
    drop(sender);
    drop(port);
    assert_eq!(hold_of(path), None);
}

/// The clock advances whenever nothing is running.
#[tokio::test(start_paused = true)]
async fn a_port_that_is_being_closed_is_waited_for_but_not_for_long() {
    let terminal = PseudoTerminal::open();
    let name = terminal.name();
    let path = std::fs::canonicalize(name).unwrap();
    let jobs = BlockingShare::default();
    // Not by a thread, which would keep the clock from advancing.
    let hold = PortHold::take(path.clone()).ok().unwrap();
    HOLDS.lock().insert(path, Hold::Closing);
    let begin = Instant::now();
    let busy = Port::open(name, SETTINGS, &jobs).await.err();
    assert!(matches!(busy, Some(SerialError::Busy(_))), "{busy:?}");
    assert!(begin.elapsed() >= CLOSED_WITHIN);
    let close = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(hold);
    };
    let open = Port::open(name, SETTINGS, &jobs);
    let (port, ()) = tokio::join!(open, close);
    assert_eq!(port.err(), None);
}

#[tokio::test]
async fn a_file_that_is_not_a_serial_port_is_not_opened() {
    let missing = try_open("/dev/ttyMissing0", SETTINGS).err();
    assert!(
        matches!(missing, Some(SerialError::NotFound(_))),
        "{missing:?}"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let plain = try_open(file.path().to_str().unwrap(), SETTINGS).err();
    assert!(matches!(plain, Some(SerialError::Other(_))), "{plain:?}");
    assert_eq!(hold_of(file.path()), None);
}

#[test]
fn settings_that_no_port_can_have_are_named() {
    assert_eq!(check(SETTINGS), Ok(()));
    for (settings, expected) in [
        (
            SerialSettings {
                baud: 0,
                ..SETTINGS
            },
            "`baud` is 0",
        ),
        (
            SerialSettings {
                baud: 5_000_000,
                ..SETTINGS
            },
            "`baud` is 5000000",
        ),
        (
            SerialSettings {
                data_bits: 9,
                ..SETTINGS
            },
            "`data-bits` is 9",
        ),
        (
            SerialSettings {
                stop_bits: 3,
                ..SETTINGS
            },
            "`stop-bits` is 3",
        ),
    ] {
        let error = check(settings).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
