//! Links what is granted. [`crate::grants`] has checked before that nothing else is asked for.

use wasmtime::Engine;
use wasmtime::component::Linker;

use crate::bindings::platform::supervisor::{
    config, device, identify, identify_window, led, log, store, timer, types,
};
use crate::capability::Capability;
use crate::guest::{Guest, ThisGuest};
use crate::policy::Grants;
use crate::wasi;

/// A linker with all that a plugin with these grants gets, and nothing else.
pub(crate) fn granted(engine: &Engine, grants: &Grants) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine);
    wasi::link(&mut linker, grants)?;
    types::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    log::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    config::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    timer::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    identify_window::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?;
    for capability in &grants.grants {
        match capability {
            Capability::Device => {
                device::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Store => {
                store::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            Capability::Led => led::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?,
            Capability::Identify => {
                identify::add_to_linker::<Guest, ThisGuest>(&mut linker, |guest| guest)?
            }
            // WASI's own, linked above.
            Capability::Clock | Capability::Random | Capability::Files => {}
        }
    }
    Ok(linker)
}
