//! Black-box suites: the real programs, over HTTP.
//!
//! [`Supervisor`] starts the program of the layout that `cargo xtask build` creates (`SUPERVISOR_DIST`, otherwise
//! `target/dist`) on a free port with a temporary state folder and host root. When dropped, it ends the program and
//! everything that it started. The suites are in `tests/`.

#![expect(
    clippy::expect_used,
    reason = "a test that cannot be set up fails with what was missing"
)]

mod answer;
mod client;
mod compiled;
mod connection;
mod description;
mod event_reader;
mod fleet_cloud;
mod guest_plugin;
mod host_journal;
mod kept_plugins;
mod layout;
mod log_reader;
mod network_namespace;
mod never_compiled;
mod processes;
mod pseudo_terminal;
mod rauc;
mod recorded_cloud;
mod registry;
mod stage;
mod supervisor;
mod system_bus;
mod target;
mod until;
mod virtual_machine;

pub use answer::Answer;
pub use client::client;
pub use connection::{Connection, StreamBody};
pub use description::Description;
pub use event_reader::{Event, EventReader};
pub use fleet_cloud::FleetCloud;
pub use guest_plugin::{GUEST_CAPABILITIES, guest_plugin};
pub use host_journal::HostJournal;
pub use kept_plugins::{kept_plugin, kept_plugins};
pub use layout::{distribution, guest, repository};
pub use log_reader::LogReader;
pub use network_namespace::NetworkNamespace;
pub use never_compiled::never_compiled;
pub use processes::{children_of, services_of};
pub use pseudo_terminal::PseudoTerminal;
pub use rauc::Rauc;
pub use recorded_cloud::{
    CloudBehaviour, DEVICE, DEVICE_KEY, PROVISIONING_KEY, RecordedCloud, RecordedRequest,
};
pub use registry::Registry;
pub use stage::Stage;
pub use supervisor::{Builder, ProgramExit, Supervisor, subcommand};
pub use system_bus::SystemBus;
pub use target::{service, target};
pub use until::{DEADLINE, until, until_within};
pub use virtual_machine::VirtualMachine;
