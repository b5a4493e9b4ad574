//! `wit/identify.wit`: the window for those who identify the device, and the action for those who want
//! it identified.

use std::sync::Arc;

use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::{identify, identify_window};
use crate::guest::{Guest, ThisGuest};

impl identify_window::Host for &mut Guest {
    fn remaining_ms(&mut self) -> u32 {
        self.around.identify.remaining_ms()
    }
}

impl identify::Host for &mut Guest {}

impl identify::HostWithStore<Guest> for ThisGuest {
    async fn identify(accessor: &Accessor<Guest, Self>) -> Result<(), String> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        around.identify.start();
        around.identify.ended().await
    }
}
