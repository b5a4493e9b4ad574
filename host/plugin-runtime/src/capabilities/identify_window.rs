//! `wit/identify.wit`: the window for plugins that identify the device.

use plugin_protocol::IdentifyWindow;

use crate::bindings::platform::supervisor::identify_window;
use crate::guest::Guest;

impl identify_window::Host for &mut Guest {
    async fn remaining_ms(&mut self) -> wasmtime::Result<u32> {
        self.host.ask(IdentifyWindow {}).await
    }
}
