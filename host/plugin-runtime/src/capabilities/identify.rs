//! `wit/identify.wit`: the window for plugins that identify the device, and the action for plugins that request it.

use plugin_protocol::{Identify, IdentifyWindow};

use crate::bindings::platform::supervisor::{identify, identify_window};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl identify_window::Host for &mut Guest {
    async fn remaining_ms(&mut self) -> wasmtime::Result<u32> {
        self.host.ask(IdentifyWindow {}).await
    }
}

impl identify::Host for &mut Guest {}

impl identify::HostWithStore<Guest> for GuestData {
    async fn identify(access: &GuestAccess) -> Answer<(), String> {
        host(access).try_ask(Identify {}).await
    }
}
