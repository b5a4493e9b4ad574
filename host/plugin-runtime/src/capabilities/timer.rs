//! `wit/timer.wit`: waiting.

use std::time::Duration;

use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::timer;
use crate::guest::{Guest, GuestData};

impl timer::Host for &mut Guest {}

impl timer::HostWithStore<Guest> for GuestData {
    async fn sleep(_: &Accessor<Guest, Self>, ms: u32) -> wasmtime::Result<()> {
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
        Ok(())
    }
}
