//! The system calls that a process may make, limited by seccomp: any other fails with `EPERM`.
//!
//! The lists contain the calls that a Rust program with threads, files and sockets makes while it runs, and no calls
//! that start programs, inspect other processes, change the user, mount, or reach another part of the kernel. Calls
//! that can do both are limited to their harmless half by their arguments: `clone` creates threads but not processes,
//! `socket` is only for the internet, `prlimit64` only reads.

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
))]
mod filter;
/// Elsewhere there are no lists.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
mod filter {
    pub(super) fn install(_: super::SystemCalls) -> Result<(), String> {
        let arch = std::env::consts::ARCH;
        Err(format!("there is no allow-list for {arch} processors"))
    }
}

/// What a process does in addition to computing, using memory, and using what is already open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCalls {
    /// It starts threads.
    pub threads: bool,
    /// It opens, creates and removes files by their paths.
    pub files: bool,
    /// It queries which pages of its own memory were written, through a file that it has open.
    pub page_map: bool,
    /// The sockets that it creates. Those that are already open can be used in any case.
    pub sockets: Sockets,
}

/// The sockets that a process creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// None.
    None,
    /// `AF_INET` and `AF_INET6`, with streams and datagrams.
    Internet,
}

impl SystemCalls {
    /// Computing, and reading and writing what is open.
    pub const COMPUTATION: SystemCalls = SystemCalls {
        threads: false,
        files: false,
        page_map: false,
        sockets: Sockets::None,
    };

    pub(crate) fn enforce(self) -> Result<(), String> {
        filter::install(self)
    }
}
