//! The code that wit-bindgen generates from `wit/`, once for every plugin.
//!
//! The rest of the SDK wraps all of it, so a plugin's author never sees these types, and needs no copy of
//! the `.wit` files and no tool other than cargo. A plugin's exports are generated separately from its
//! imports, a world for each action: each world's export macro inserts the custom section that names the
//! world's exports, so a plugin that exports only `identify` needs no `handler`. The linker drops imports
//! that nothing calls, so a component imports only what it uses.

#![allow(
    missing_docs,
    unused_qualifications,
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    reason = "generated from wit/, where it is documented"
)]

/// The interfaces that every plugin may import.
pub mod capabilities {
    wit_bindgen::generate!({
        path: "../wit",
        world: "capabilities",
        pub_export_macro: true,
        generate_all,
    });
}

/// Generates the bindings of a world that a plugin exports, in a module, with the macro that exports it. What is passed on
/// to wit-bindgen must be literals, so the name of the world and of the macro cannot be made from that of the module.
macro_rules! exported_world {
    ($(#[$doc:meta])* $module:ident, $export_macro:tt, $world:tt, $declaration:tt) => {
        $(#[$doc])*
        pub mod $module {
            wit_bindgen::generate!({
                path: "../wit",
                inline: $declaration,
                world: $world,
                pub_export_macro: true,
                export_macro_name: $export_macro,
                generate_all,
            });
        }
    };
}

exported_world! {
    /// The exports of a plugin that answers HTTP requests.
    endpoint, "export_endpoint", "platform:sdk/endpoint",
    "package platform:sdk; world endpoint { export platform:supervisor/handler@1.4.0; }"
}

exported_world! {
    /// The exports of a plugin that provides the action `identify`, and the one import that only it has.
    identifier, "export_identifier", "platform:sdk/identifier",
    "package platform:sdk; world identifier {
        import platform:supervisor/identify-window@1.4.0;
        export platform:supervisor/identify@1.4.0;
    }"
}

exported_world! {
    /// The exports of a plugin that provides the action `boot-config`.
    boot, "export_boot", "platform:sdk/boot",
    "package platform:sdk; world boot { export platform:supervisor/boot-config@1.4.0; }"
}

exported_world! {
    /// The exports of a plugin that provides the action `os-update`.
    os_updater, "export_os_updater", "platform:sdk/os-updater",
    "package platform:sdk; world os-updater { export platform:supervisor/os-update@1.4.0; }"
}

exported_world! {
    /// The exports of a plugin that is called for events.
    watcher, "export_watcher", "platform:sdk/watcher",
    "package platform:sdk; world watcher { export platform:supervisor/events@1.4.0; }"
}

exported_world! {
    /// The exports of a plugin that performs its own actions.
    provider, "export_provider", "platform:sdk/provider",
    "package platform:sdk; world provider { export platform:supervisor/action-provider@1.4.0; }"
}

/// The exports of a plugin that provides the action `proxy-redirector`. Unlike the others it takes the types of the
/// imports, so that a plugin can pass on what it reads.
pub mod proxy {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world proxy {
                export platform:supervisor/proxy-redirector@1.4.0;
            }
        ",
        world: "platform:sdk/proxy",
        pub_export_macro: true,
        export_macro_name: "export_proxy",
        with: {
            "platform:supervisor/proxy-types@1.4.0": super::capabilities::platform::supervisor::proxy_types,
        },
    });
}
