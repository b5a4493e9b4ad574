//! What a plugin exports: found once when it is loaded, and got hold of again in each instance.

use std::collections::BTreeSet;

use plugin_protocol::Action;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};

use crate::bindings::exports::platform::supervisor::{
    boot_config, handler, identify, proxy_redirector,
};
use crate::guest::Guest;

/// Where a component's exports are.
pub(crate) struct ExportIndices {
    pub(crate) handler: Option<handler::GuestIndices>,
    identify: Option<identify::GuestIndices>,
    proxy_redirector: Option<proxy_redirector::GuestIndices>,
    boot_config: Option<boot_config::GuestIndices>,
}

/// The exports of one instance.
pub(crate) struct Exports {
    pub(crate) handler: Option<handler::Guest>,
    pub(crate) identify: Option<identify::Guest>,
    pub(crate) proxy_redirector: Option<proxy_redirector::Guest>,
    pub(crate) boot_config: Option<boot_config::Guest>,
}

impl ExportIndices {
    pub(crate) fn of(component: &InstancePre<Guest>) -> ExportIndices {
        ExportIndices {
            handler: handler::GuestIndices::new(component).ok(),
            identify: identify::GuestIndices::new(component).ok(),
            proxy_redirector: proxy_redirector::GuestIndices::new(component).ok(),
            boot_config: boot_config::GuestIndices::new(component).ok(),
        }
    }

    /// The actions that the component exports.
    pub(crate) fn actions(&self) -> BTreeSet<Action> {
        let exported = [
            (Action::Identify, self.identify.is_some()),
            (Action::ProxyRedirector, self.proxy_redirector.is_some()),
            (Action::BootConfig, self.boot_config.is_some()),
        ];
        let exported = exported.into_iter().filter(|(_, is_there)| *is_there);
        exported.map(|(action, _)| action).collect()
    }

    pub(crate) fn load(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<Exports> {
        let handler = self.handler.as_ref();
        let identify = self.identify.as_ref();
        let proxy_redirector = self.proxy_redirector.as_ref();
        let boot_config = self.boot_config.as_ref();
        Ok(Exports {
            handler: handler
                .map(|at| at.load(&mut *store, instance))
                .transpose()?,
            identify: identify
                .map(|at| at.load(&mut *store, instance))
                .transpose()?,
            proxy_redirector: proxy_redirector
                .map(|at| at.load(&mut *store, instance))
                .transpose()?,
            boot_config: boot_config
                .map(|at| at.load(&mut *store, instance))
                .transpose()?,
        })
    }
}
