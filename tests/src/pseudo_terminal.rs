//! A serial port without hardware: a pseudo terminal of the kernel.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::until::DEADLINE;

/// The device's end of the port. Programs open the other end by its [`name`](Self::name).
pub struct PseudoTerminal {
    device: Arc<OwnedFd>,
    name: String,
    /// Held so that output of the device is not lost while no program has the port open.
    _port: OwnedFd,
}

impl PseudoTerminal {
    /// Creates a port.
    ///
    /// # Panics
    /// If the machine has no pseudo terminals.
    #[must_use]
    pub fn open() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let device = openpt(flags).expect("the machine has pseudo terminals");
        grantpt(&device).expect("the machine has pseudo terminals");
        unlockpt(&device).expect("the machine has pseudo terminals");
        let name = ptsname(&device, Vec::new()).expect("the machine has pseudo terminals");
        let name = name
            .into_string()
            .expect("the machine has pseudo terminals");
        let port = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&name)
            .expect("the machine has pseudo terminals");
        // Otherwise a terminal would echo its input.
        let mut settings = tcgetattr(&port).expect("the machine has pseudo terminals");
        settings.make_raw();
        tcsetattr(&port, OptionalActions::Now, &settings)
            .expect("the machine has pseudo terminals");
        PseudoTerminal {
            device: Arc::new(device),
            name,
            _port: port.into(),
        }
    }

    /// Returns the path of the port, such as `/dev/pts/3`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads until this many bytes have come from the port.
    ///
    /// # Panics
    /// If they do not come in time.
    pub async fn read(&self, length: usize) -> Vec<u8> {
        let device = Arc::clone(&self.device);
        let reading = move || {
            let mut bytes = vec![0; length];
            let mut filled = 0;
            while filled < length {
                let mut waiting = [PollFd::new(&device, PollFlags::IN)];
                let within =
                    Timespec::try_from(DEADLINE).expect("the machine has pseudo terminals");
                let ready = rustix::event::poll(&mut waiting, Some(&within))
                    .expect("the machine has pseudo terminals");
                assert!(ready > 0, "the port said {:?}", &bytes[..filled]);
                filled += rustix::io::read(&device, &mut bytes[filled..])
                    .expect("the machine has pseudo terminals");
            }
            bytes
        };
        tokio::task::spawn_blocking(reading)
            .await
            .expect("the machine has pseudo terminals")
    }

    /// Sends these bytes to the program that has the port open.
    ///
    /// # Panics
    /// If the port is gone, or does not accept all bytes.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(&self.device, bytes), Ok(bytes.len()));
    }
}
