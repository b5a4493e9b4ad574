//! Checks that a component's exports have the types of our interfaces.
//!
//! wasmtime checks this when a function is looked up in an instance, which is at the first call, after the component's
//! own start functions have run. Here only the types are compared, when the component is loaded.

use wasmtime::Engine;
use wasmtime::component::types::{Component, ComponentFunc, ComponentItem};
use wasmtime::component::{ComponentNamedList, Lift, Lower};

use crate::bindings::exports::platform::supervisor::boot_config::{Comparison, Setting};
use crate::bindings::exports::platform::supervisor::events;
use crate::bindings::exports::platform::supervisor::os_update::OsStatus;
use crate::bindings::exports::platform::supervisor::proxy_redirector::{
    ProxyError, ProxyState, Redirection,
};
use crate::bindings::platform::supervisor::types::{Error, Request, Response};

/// Compares the type of a function in a component of this type with ours.
type Check = fn(&ComponentFunc, &Component) -> wasmtime::Result<()>;

/// The functions of an interface that a component may export.
struct Interface {
    name: &'static str,
    functions: &'static [(&'static str, Check)],
}

/// Everything in `wit/` that is exported.
const INTERFACES: &[Interface] = &[
    Interface {
        name: "handler",
        functions: &[("handle", check::<(Request,), (Result<Response, Error>,)>)],
    },
    Interface {
        name: "action-provider",
        functions: &[(
            "call",
            check::<(String, Vec<u8>), (Result<Vec<u8>, String>,)>,
        )],
    },
    Interface {
        name: "events",
        functions: &[(
            "handle",
            check::<(events::Event,), (Result<events::Answer, String>,)>,
        )],
    },
    Interface {
        name: "identify",
        functions: &[("identify", check::<(), (Result<(), String>,)>)],
    },
    Interface {
        name: "proxy-redirector",
        functions: &[
            ("get", check::<(), (Result<ProxyState, ProxyError>,)>),
            (
                "set",
                check::<(Option<Redirection>,), (Result<(), ProxyError>,)>,
            ),
            ("no-proxy", check::<(), (Result<Vec<String>, ProxyError>,)>),
            (
                "set-no-proxy",
                check::<(Vec<String>,), (Result<(), ProxyError>,)>,
            ),
            ("apply", check::<(), (Result<(), ProxyError>,)>),
        ],
    },
    Interface {
        name: "boot-config",
        functions: &[
            ("get", check::<(), (Result<Vec<Setting>, String>,)>),
            (
                "compare",
                check::<(Vec<Setting>,), (Result<Comparison, String>,)>,
            ),
            (
                "set",
                check::<(Vec<Setting>,), (Result<Comparison, String>,)>,
            ),
        ],
    },
    Interface {
        name: "os-update",
        functions: &[
            ("status", check::<(), (Result<OsStatus, String>,)>),
            ("stage", check::<(String, String), (Result<(), String>,)>),
            ("activate", check::<(), (Result<(), String>,)>),
            ("commit", check::<(), (Result<(), String>,)>),
            ("roll-back", check::<(), (Result<(), String>,)>),
        ],
    },
];

fn check<P: ComponentNamedList + Lower, R: ComponentNamedList + Lift>(
    function: &ComponentFunc,
    component: &Component,
) -> wasmtime::Result<()> {
    function.typecheck::<P, R>(&component.instance_type())
}

/// Describes the first export that differs from our interface of the same name.
pub(crate) fn mismatch(engine: &Engine, component: &Component) -> Option<String> {
    component.exports(engine).find_map(|(export, item)| {
        let (name, version) = export
            .strip_prefix("platform:supervisor/")?
            .split_once('@')?;
        let interface = INTERFACES.iter().find(|ours| ours.name == name)?;
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            return None;
        };
        // Another major version is not ours, and counts as not exported.
        if !version.starts_with("1.") {
            return None;
        }
        interface.functions.iter().find_map(|(function, check)| {
            let exported = instance.get_export(engine, function).map(|item| item.ty);
            let Some(ComponentItem::ComponentFunc(exported)) = exported else {
                return Some(format!("its export `{export}` has no function `{function}`"));
            };
            let error = check(&exported, component).err()?;
            Some(format!(
                "its export `{export}` has another type than this supervisor's: `{function}`: {error:#}"
            ))
        })
    })
}
