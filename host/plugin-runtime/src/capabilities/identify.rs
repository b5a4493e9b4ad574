//! `wit/identify.wit`: the window for those who identify the device, and the action for those who want
//! it identified.

use plugin_protocol::{Identify, IdentifyWindow};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::{identify, identify_window};
use crate::guest::{Guest, ThisGuest, host};

impl identify_window::Host for &mut Guest {
    async fn remaining_ms(&mut self) -> wasmtime::Result<u32> {
        self.host.ask(IdentifyWindow {}).await
    }
}

impl identify::Host for &mut Guest {}

impl identify::HostWithStore<Guest> for ThisGuest {
    async fn identify(accessor: &Accessor<Guest, Self>) -> wasmtime::Result<Result<(), String>> {
        host(accessor).ask(Identify {}).await
    }
}
