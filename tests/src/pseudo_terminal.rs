//! A serial port without hardware: a pseudo terminal of the kernel's.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::until::DEADLINE;

/// The end at which the device is that is connected to the port. Programs open the other end by its [`name`](Self::name).
pub struct PseudoTerminal {
    device: Arc<OwnedFd>,
    name: String,
    /// So that what the device says is not lost while no program has the port open.
    _port: OwnedFd,
}

impl PseudoTerminal {
    /// Makes a port.
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
        // A terminal would say back what it is told.
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

    /// The path of the port, such as `/dev/pts/3`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads until so many bytes have come from the port.
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

    /// Says this to whoever has the port open.
    ///
    /// # Panics
    /// If the port is gone, or does not take it whole.
    pub fn write(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(&self.device, bytes), Ok(bytes.len()));
    }
}
