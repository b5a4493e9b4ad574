//! Links what is granted. The host has checked before that nothing else is requested.

use std::collections::{BTreeSet, HashMap};

use parking_lot::Mutex;
use plugin_protocol::Capability;
use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::bindings::platform::supervisor;
use crate::guest::{Guest, GuestData};
use crate::wasi;

/// The linkers created so far, one for each set of capabilities: plugins with the same grants share one.
#[derive(Default)]
pub(crate) struct Linkers(Mutex<HashMap<BTreeSet<Capability>, Linker<Guest>>>);

impl Linkers {
    /// Links with everything that a plugin with these grants gets, and nothing else.
    pub(crate) fn granted<R>(
        &self,
        engine: &Engine,
        grants: &BTreeSet<Capability>,
        link: impl FnOnce(&Linker<Guest>) -> wasmtime::Result<R>,
    ) -> wasmtime::Result<R> {
        let mut linkers = self.0.lock();
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
    for link in [
        supervisor::types::add_to_linker::<Guest, GuestData>,
        supervisor::log::add_to_linker::<Guest, GuestData>,
        supervisor::config::add_to_linker::<Guest, GuestData>,
        supervisor::timer::add_to_linker::<Guest, GuestData>,
        supervisor::caller::add_to_linker::<Guest, GuestData>,
        supervisor::identify_window::add_to_linker::<Guest, GuestData>,
        supervisor::proxy_types::add_to_linker::<Guest, GuestData>,
    ] {
        link(&mut linker, |guest| guest)?;
    }
    for capability in grants {
        link_capability(&mut linker, *capability)?;
    }
    Ok(linker)
}

/// Adds the interface of a capability if it is one of ours: WASI's own are linked with the rest of WASI.
macro_rules! link {
    (ours $module:ident $linker:ident) => {
        supervisor::$module::add_to_linker::<Guest, GuestData>($linker, |guest| guest)
    };
    ($origin:ident $module:ident $linker:ident) => {
        Ok(())
    };
}

macro_rules! link_function {
    ($(
        $(#[$doc:meta])*
        $origin:ident $capability:ident $module:ident $name:literal $([$($import:literal),*])? may $may:literal;
    )*) => {
        fn link_capability(linker: &mut Linker<Guest>, capability: Capability) -> wasmtime::Result<()> {
            match capability {
                $(Capability::$capability => link!($origin $module linker),)*
            }
        }
    };
}

include!("../../../wit/capabilities.rs");
capabilities!(link_function);
