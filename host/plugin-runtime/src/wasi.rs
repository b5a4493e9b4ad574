//! The part of WASI that is visible to a plugin: only what a standard library needs to start, and what its grants add,
//! interface by interface. The context behind it is in [`crate::guest`].

use std::collections::BTreeSet;

use plugin_protocol::Capability;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView as _};
use wasmtime_wasi_io::bindings::wasi::io;

use crate::guest::Guest;
use crate::wasi_http;

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links what every plugin gets, and what `grants` add.
pub(crate) fn link(
    linker: &mut Linker<Guest>,
    grants: &BTreeSet<Capability>,
) -> wasmtime::Result<()> {
    io::error::add_to_linker::<Guest, Table>(linker, |guest| &mut guest.table)?;
    io::poll::add_to_linker::<Guest, Table>(linker, |guest| &mut guest.table)?;
    io::streams::add_to_linker::<Guest, Table>(linker, |guest| &mut guest.table)?;
    cli::environment::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::exit::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_input::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_output::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    random::insecure_seed::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;

    let granted = |capability| grants.contains(&capability);
    if granted(Capability::Clock) {
        clocks::monotonic_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    }
    if granted(Capability::Clock) || granted(Capability::Files) {
        clocks::wall_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    }
    if granted(Capability::Random) {
        random::random::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
        random::insecure::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    }
    if granted(Capability::Files) {
        filesystem::types::add_to_linker::<Guest, WasiFilesystem>(linker, Guest::filesystem)?;
        filesystem::preopens::add_to_linker::<Guest, WasiFilesystem>(linker, Guest::filesystem)?;
    }
    wasi_http::link(linker, grants)
}
