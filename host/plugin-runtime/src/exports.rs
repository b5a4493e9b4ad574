//! A plugin's exports: found once when it is loaded, and looked up again in each instance.

use std::collections::BTreeSet;

use plugin_protocol::Action;
use wasmtime::Store;
use wasmtime::component::{Instance, InstancePre};
use wasmtime_wasi_http::p2::bindings::exports::wasi::http::incoming_handler;

use crate::bindings::exports::platform::supervisor::{
    action_provider, boot_config, events, handler, identify, os_update, proxy_redirector,
};
use crate::guest::Guest;

/// Each row is an exported interface, with the action that a component provides through it.
macro_rules! exports {
    ($($export:ident $(provides $action:ident)?;)*) => {
        /// The positions of a component's exports.
        pub(crate) struct ExportIndices {
            $(pub(crate) $export: Option<$export::GuestIndices>,)*
        }

        /// The exports of one instance.
        pub(crate) struct Exports {
            $(pub(crate) $export: Option<$export::Guest>,)*
        }

        impl ExportIndices {
            pub(crate) fn new(component: &InstancePre<Guest>) -> ExportIndices {
                ExportIndices {
                    $($export: $export::GuestIndices::new(component).ok(),)*
                }
            }

            /// Returns whether the component answers requests, in either way.
            pub(crate) fn answers_requests(&self) -> bool {
                self.handler.is_some() || self.incoming_handler.is_some()
            }

            /// Returns the actions that the component exports.
            pub(crate) fn actions(&self) -> BTreeSet<Action> {
                let rows = [$($((Action::$action, self.$export.is_some()),)?)*];
                let exported = rows.into_iter().filter(|(_, is_there)| *is_there);
                exported.map(|(action, _)| action).collect()
            }

            pub(crate) fn load(
                &self,
                store: &mut Store<Guest>,
                instance: &Instance,
            ) -> wasmtime::Result<Exports> {
                $(let $export = self.$export.as_ref().map(|at| at.load(&mut *store, instance));)*
                Ok(Exports {
                    $($export: $export.transpose()?,)*
                })
            }
        }
    };
}

exports! {
    handler;
    incoming_handler;
    identify provides Identify;
    proxy_redirector provides ProxyRedirector;
    boot_config provides BootConfig;
    os_update provides OsUpdate;
    events provides Events;
    action_provider provides ActionProvider;
}
