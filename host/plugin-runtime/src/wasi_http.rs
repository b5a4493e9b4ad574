//! Supports unmodified components that answer as `wasi:http` does (version 0.2, `incoming-handler`): a second way to
//! answer a request in addition to `wit/handler.wit`, with the same routes, grants and limits.
//!
//! The resources that the host holds for such a component are not in the component's memory, so all of them are limited:
//! their number together with everything else, and the size of headers, in [`crate::guest`], and the size of the others
//! below. Requests that it sends take the path of `wit/http.wit`, to the hosts that the policy names.

pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod response_body;

use std::collections::BTreeSet;

use plugin_protocol::{Capability, HTTP_URL};
use wasmtime::StoreContextMut;
use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::outgoing_handler;
use wasmtime_wasi_http::p2::bindings::http::types::{self, HostOutgoingRequest as _, Method};
use wasmtime_wasi_http::p2::types::{
    HostIncomingRequest, HostOutgoingRequest, HostResponseOutparam,
};
use wasmtime_wasi_http::{WasiHttp, WasiHttpCtxView, WasiHttpView};

use crate::guest::Guest;

/// The longest method of a request that a component writes, in bytes: no standard has a longer `HTTP_METHOD`.
const METHOD: usize = 32;
/// The export.
const INCOMING_HANDLER: &str = "wasi:http/incoming-handler";
/// The interface in which the functions below replace parts, as named by `wasmtime_wasi_http`.
const TYPES: &str = "wasi:http/types@0.2.12";

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView {
            hooks: &mut self.outgoing,
            table: &mut self.table,
            ctx: &mut self.wasi_http,
        }
    }
}

/// Links the types for every plugin, since nothing can be reached through them, and the sending of requests if it is
/// granted.
pub(crate) fn link(
    linker: &mut Linker<Guest>,
    grants: &BTreeSet<Capability>,
) -> wasmtime::Result<()> {
    let options = LinkOptions::default();
    types::add_to_linker::<Guest, WasiHttp>(linker, &(&options).into(), Guest::http)?;
    if grants.contains(&Capability::Http) {
        outgoing_handler::add_to_linker::<Guest, WasiHttp>(linker, Guest::http)?;
    }
    bound_requests(linker)
}

/// Limits the texts of requests that a component writes. `wasmtime_wasi_http` keeps them at any length. Each function has
/// its own type of text and its own setter, so each is written out.
fn bound_requests(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    type Request = Resource<HostOutgoingRequest>;
    type Set = Result<(), ()>;
    type Store<'a> = StoreContextMut<'a, Guest>;
    linker.allow_shadowing(true);
    let mut types = linker.instance(TYPES)?;
    types.func_wrap(
        "[method]outgoing-request.set-method",
        |mut store: Store<'_>, (request, method): (Request, Method)| {
            if matches!(&method, Method::Other(name) if name.len() > METHOD) {
                return Ok((Err(()),));
            }
            let set: Set = store.data_mut().http().set_method(request, method)?;
            Ok((set,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-path-with-query",
        |mut store: Store<'_>, (request, path): (Request, Option<String>)| {
            if path.as_ref().is_some_and(|path| path.len() > HTTP_URL) {
                return Ok((Err(()),));
            }
            let mut http = store.data_mut().http();
            let set: Set = http.set_path_with_query(request, path)?;
            Ok((set,))
        },
    )?;
    types.func_wrap(
        "[method]outgoing-request.set-authority",
        |mut store: Store<'_>, (request, authority): (Request, Option<String>)| {
            if authority.as_ref().is_some_and(|text| text.len() > HTTP_URL) {
                return Ok((Err(()),));
            }
            let mut http = store.data_mut().http();
            let set: Set = http.set_authority(request, authority)?;
            Ok((set,))
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Describes what is wrong with a component's `incoming-handler`, if it exports one: its function must accept a request
/// and the place for the answer, and these must be our resources, which the component imports. So its type must be that
/// which it has when it is linked. wasmtime checks this when an instance is called: each call would fail.
pub(crate) fn mismatch(
    engine: &wasmtime::Engine,
    component: &wasmtime::component::types::Component,
) -> Option<String> {
    component.exports(engine).find_map(|(export, item)| {
        let (name, version) = export.split_once('@')?;
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            return None;
        };
        if name != INCOMING_HANDLER || !version.starts_with("0.2.") {
            return None;
        }
        let handle = instance.get_export(engine, "handle").map(|item| item.ty);
        let Some(ComponentItem::ComponentFunc(handle)) = handle else {
            return Some(format!("its export `{export}` has no function `handle`"));
        };
        let parameters: Vec<Type> = handle.params().map(|(_, ty)| ty).collect();
        let expected = [
            Type::Own(ResourceType::host::<HostIncomingRequest>()),
            Type::Own(ResourceType::host::<HostResponseOutparam>()),
        ];
        let fits = parameters == expected && handle.results().len() == 0;
        (!fits).then(|| {
            format!("its export `{export}` has another type than that of wasi:http 0.2: `handle`")
        })
    })
}
