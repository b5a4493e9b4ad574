//! `wit/caller.wit`: on whose behalf the plugin is called.

use plugin_protocol::CallerScope;

use crate::bindings::platform::supervisor::caller;
use crate::guest::Guest;

impl caller::Host for &mut Guest {
    fn scope(&mut self) -> wasmtime::Result<caller::CallerScope> {
        Ok(match &self.host.serving.origin.caller.scope {
            CallerScope::Device => caller::CallerScope::Device,
            CallerScope::DeviceKey => caller::CallerScope::DeviceKey,
            CallerScope::LocalMode => caller::CallerScope::LocalMode,
            CallerScope::Service { app_id, service } => {
                caller::CallerScope::Service(caller::AppService {
                    app_id: *app_id,
                    service: service.clone(),
                })
            }
            CallerScope::NoCall => {
                caller::CallerScope::Other("the instance starts, and serves no call".to_owned())
            }
        })
    }

    fn plugin(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.host.serving.origin.caller.plugin.clone())
    }
}
