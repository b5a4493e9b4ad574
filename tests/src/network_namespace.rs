//! A network of a test's own: nothing in it reaches the machine's network, and vice versa.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// An address of the machine in such a network, in addition to the loopback ones, so it has one for connections to
/// others.
const OWN: &str = "192.0.2.1";

/// A network namespace with only a loopback interface, to which everything is routed. It is removed with this value.
#[derive(Debug)]
pub struct NetworkNamespace {
    name: String,
}

impl NetworkNamespace {
    /// Creates a namespace in which the programs of `needed` run; returns `None`, and prints the reason, if this
    /// machine does not allow it or lacks one of them.
    #[must_use]
    pub fn make(needed: &[&str]) -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        for program in ["ip"].iter().chain(needed) {
            let found = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
                .iter()
                .any(|folder| Path::new(folder).join(program).exists());
            if !found {
                println!("SKIPPED: no network of the test's own ({program} is not installed)");
                return None;
            }
        }
        let name = format!("test-{}-{}", std::process::id(), COUNT.fetch_add(1, SeqCst));
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        match made {
            Ok(done) if done.status.success() => {}
            Ok(done) => {
                let why = String::from_utf8_lossy(&done.stderr);
                println!("SKIPPED: no network of the test's own ({})", why.trim());
                return None;
            }
            Err(error) => {
                println!("SKIPPED: no network of the test's own ({error})");
                return None;
            }
        }
        let namespace = NetworkNamespace { name };
        namespace.run("ip link set lo up");
        namespace.add_address(OWN);
        namespace.run(&format!("ip route add default dev lo src {OWN}"));
        Some(namespace)
    }

    /// Returns its name, as for `ip`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds an address to the machine of this network.
    ///
    /// # Panics
    /// If the address cannot be added.
    pub fn add_address(&self, address: &str) {
        self.run(&format!("ip address add {address}/32 dev lo"));
    }

    /// A command that runs in this network.
    #[must_use]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs a line of words to its end.
    ///
    /// # Panics
    /// If it fails.
    pub fn run(&self, line: &str) {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        let done = self
            .command(program)
            .args(words)
            .output()
            .unwrap_or_else(|error| panic!("`{line}` cannot be run: {error}"));
        let why = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "`{line}` failed: {why}");
    }

    /// Does `work` in this network, on its own thread: sockets that it creates stay in the network.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn inside<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> R {
        let file = Path::new("/run/netns").join(&self.name);
        let there = move || {
            let namespace = File::open(file).expect("a network namespace");
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("a place in it");
            work()
        };
        match thread::spawn(there).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        let _ = Command::new("ip")
            .args(["netns", "delete", &self.name])
            .status();
    }
}
