//! Links what is granted. The host has checked before that nothing else is asked for.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use plugin_protocol::Capability;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::bindings::platform::supervisor::{
    caller, cloud, config, device, host_name, identify, identify_window, journal, led, log,
    proxy_redirector, proxy_types, store, timer, types, units, update_lock,
};
use crate::guest::{Guest, ThisGuest};
use crate::wasi;

/// The linkers made so far, one for each set of capabilities: plugins that may do the same share one.
#[derive(Default)]
pub(crate) struct Linkers(Mutex<HashMap<BTreeSet<Capability>, Linker<Guest>>>);

impl Linkers {
    /// Links with all that a plugin with these grants gets, and nothing else.
    pub(crate) fn granted<R>(
        &self,
        engine: &Engine,
        grants: &BTreeSet<Capability>,
        link: impl FnOnce(&Linker<Guest>) -> wasmtime::Result<R>,
    ) -> wasmtime::Result<R> {
        let mut linkers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = linkers.get(grants) {
            return link(linker);
        }
        let linker = linker(engine, grants)?;
        link(linkers.entry(grants.clone()).or_insert(linker))
    }
}

fn linker(engine: &Engine, grants: &BTreeSet<Capability>) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasi::link(&mut linker, grants)?;
    types::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    log::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    config::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    timer::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    caller::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    identify_window::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    proxy_types::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    for capability in grants {
        match capability {
            Capability::Device => {
                device::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Store => {
                store::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Led => led::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?,
            Capability::Cloud => {
                cloud::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Units => {
                units::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Journal => {
                journal::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Identify => {
                identify::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::ProxyRedirector => {
                proxy_redirector::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::UpdateLock => {
                update_lock::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::HostName => {
                host_name::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            // Asked for when a lock is overridden.
            Capability::UpdateLockForce => {}
            // WASI's own, linked above.
            Capability::Clock | Capability::Random | Capability::Files => {}
        }
    }
    Ok(linker)
}
