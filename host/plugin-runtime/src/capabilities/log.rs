//! `wit/log.wit`: lines of the supervisor's log.

use plugin_protocol::LogLevel;

use crate::bindings::platform::supervisor::log;
use crate::guest::Guest;

impl log::Host for &mut Guest {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            // Release builds of the host have no level below `debug`.
            log::Level::Trace | log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        self.log.write(level, &message);
        Ok(())
    }
}
