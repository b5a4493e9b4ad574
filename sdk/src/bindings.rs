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

/// The exports of a plugin that answers HTTP requests.
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

/// The exports of a plugin that provides the action `identify`, and the one import that only it has.
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

/// The exports of a plugin that provides the action `proxy-redirector`.
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

/// The exports of a plugin that provides the action `boot-config`.
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

/// The exports of a plugin that provides the action `os-update`.
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

/// The exports of a plugin that is called for events.
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

/// The exports of a plugin that performs its own actions.
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
