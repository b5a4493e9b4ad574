//! The system calls that a process may make, by seccomp: what is not listed fails with `EPERM`.
//!
//! The lists hold what a program of Rust with threads, files and sockets makes while it runs, and nothing that starts
//! programs, looks into other processes, changes who one is, mounts, or reaches another part of the kernel. Calls that
//! do both are held to their harmless half by their arguments: `clone` makes threads and no processes, `socket` is for
//! the internet alone, `prlimit64` reads.

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

/// What a process does beside computing, having memory, and using what is open already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCalls {
    /// It starts threads.
    pub threads: bool,
    /// It opens, makes and removes files by their paths.
    pub files: bool,
    /// It asks which pages of its own memory were written, of a file that it has open.
    pub page_map: bool,
    /// The sockets that it makes. Those that are open already are used in any case.
    pub sockets: Sockets,
}

/// The sockets that a process makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sockets {
    /// None.
    None,
    /// `AF_INET` and `AF_INET6`, of streams and datagrams.
    Internet,
}

impl SystemCalls {
    /// Computes, and reads and writes what is open.
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
