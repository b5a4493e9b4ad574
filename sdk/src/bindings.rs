//! What wit-bindgen makes of `wit/`, once for every plugin.
//!
//! The rest of the SDK wraps all of it, so that a plugin's author never sees these types, needs no copy
//! of the `.wit` files and no tool beside cargo. What a plugin exports is generated apart from what it
//! imports, a world for each action: the custom section that names a world's exports is put in by that
//! world's export macro, so that a plugin which exports only `identify` is not asked for a `handler`.
//! Imports that nothing calls are dropped by the linker, so a component asks its host only for what it uses.

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

/// What a plugin exports that answers HTTP requests.
pub mod endpoint {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world endpoint {
                export platform:supervisor/handler@1.4.0;
            }
        ",
        world: "platform:sdk/endpoint",
        pub_export_macro: true,
        export_macro_name: "export_endpoint",
        generate_all,
    });
}

/// What a plugin exports that provides the action `identify`, and the one import that only it has.
pub mod identifier {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world identifier {
                import platform:supervisor/identify-window@1.4.0;
                export platform:supervisor/identify@1.4.0;
            }
        ",
        world: "platform:sdk/identifier",
        pub_export_macro: true,
        export_macro_name: "export_identifier",
        generate_all,
    });
}

/// What a plugin exports that provides the action `proxy-redirector`.
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

/// What a plugin exports that provides the action `boot-config`.
pub mod boot {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world boot {
                export platform:supervisor/boot-config@1.4.0;
            }
        ",
        world: "platform:sdk/boot",
        pub_export_macro: true,
        export_macro_name: "export_boot",
        generate_all,
    });
}

/// What a plugin exports that provides the action `os-update`.
pub mod os_updater {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world os-updater {
                export platform:supervisor/os-update@1.4.0;
            }
        ",
        world: "platform:sdk/os-updater",
        pub_export_macro: true,
        export_macro_name: "export_os_updater",
        generate_all,
    });
}

/// What a plugin exports that is called for events.
pub mod watcher {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world watcher {
                export platform:supervisor/events@1.4.0;
            }
        ",
        world: "platform:sdk/watcher",
        pub_export_macro: true,
        export_macro_name: "export_watcher",
        generate_all,
    });
}

/// What a plugin exports that does actions of its own.
pub mod provider {
    wit_bindgen::generate!({
        path: "../wit",
        inline: "
            package platform:sdk;
            world provider {
                export platform:supervisor/action-provider@1.4.0;
            }
        ",
        world: "platform:sdk/provider",
        pub_export_macro: true,
        export_macro_name: "export_provider",
        generate_all,
    });
}
