//! `wit/config.wit`: the plugin's own configuration.

use crate::bindings::platform::supervisor::config;
use crate::guest::Guest;

impl config::Host for &mut Guest {
    fn json(&mut self) -> wasmtime::Result<String> {
        Ok(self.blueprint.config.clone())
    }
}
