//! What wit-bindgen makes of `wit/`, once for every plugin.
//!
//! The rest of the SDK wraps all of it, so that a plugin's author never sees these types, needs no copy
//! of the `.wit` files and no tool beside cargo. Each world is generated on its own: the custom section
//! that names a world's exports is put in by that world's export macro, so that a plugin which exports
//! only `identify` is not asked for a `handler`. Imports that nothing calls are dropped by the linker,
//! so a component asks its host only for what it uses.

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

/// The world of a plugin that answers HTTP requests.
pub mod endpoint {
    wit_bindgen::generate!({
        path: "../wit",
        world: "endpoint",
        pub_export_macro: true,
        export_macro_name: "export_endpoint",
        with: {
            "platform:supervisor/types@1.1.0": generate,
            "platform:supervisor/log@1.1.0": super::capabilities::platform::supervisor::log,
            "platform:supervisor/config@1.1.0": super::capabilities::platform::supervisor::config,
            "platform:supervisor/timer@1.1.0": super::capabilities::platform::supervisor::timer,
            "platform:supervisor/caller@1.1.0": super::capabilities::platform::supervisor::caller,
            "platform:supervisor/device@1.1.0": super::capabilities::platform::supervisor::device,
            "platform:supervisor/store@1.1.0": super::capabilities::platform::supervisor::store,
            "platform:supervisor/led@1.1.0": super::capabilities::platform::supervisor::led,
            "platform:supervisor/units@1.1.0": super::capabilities::platform::supervisor::units,
            "platform:supervisor/journal@1.1.0": super::capabilities::platform::supervisor::journal,
            "platform:supervisor/identify@1.1.0": super::capabilities::platform::supervisor::identify,
            "platform:supervisor/proxy-types@1.1.0": super::capabilities::platform::supervisor::proxy_types,
            "platform:supervisor/proxy-redirector@1.1.0": super::capabilities::platform::supervisor::proxy_redirector,
            "platform:supervisor/cloud@1.1.0": super::capabilities::platform::supervisor::cloud,
            "platform:supervisor/update-lock@1.1.0": super::capabilities::platform::supervisor::update_lock,
            "platform:supervisor/host-name@1.1.0": super::capabilities::platform::supervisor::host_name,
        },
    });
}

/// The world of a plugin that provides the action `identify`.
pub mod identifier {
    wit_bindgen::generate!({
        path: "../wit",
        world: "identifier",
        pub_export_macro: true,
        export_macro_name: "export_identifier",
        with: {
            "platform:supervisor/log@1.1.0": super::capabilities::platform::supervisor::log,
            "platform:supervisor/config@1.1.0": super::capabilities::platform::supervisor::config,
            "platform:supervisor/timer@1.1.0": super::capabilities::platform::supervisor::timer,
            "platform:supervisor/caller@1.1.0": super::capabilities::platform::supervisor::caller,
            "platform:supervisor/device@1.1.0": super::capabilities::platform::supervisor::device,
            "platform:supervisor/store@1.1.0": super::capabilities::platform::supervisor::store,
            "platform:supervisor/led@1.1.0": super::capabilities::platform::supervisor::led,
            "platform:supervisor/units@1.1.0": super::capabilities::platform::supervisor::units,
            "platform:supervisor/journal@1.1.0": super::capabilities::platform::supervisor::journal,
            "platform:supervisor/identify@1.1.0": super::capabilities::platform::supervisor::identify,
            "platform:supervisor/proxy-types@1.1.0": super::capabilities::platform::supervisor::proxy_types,
            "platform:supervisor/proxy-redirector@1.1.0": super::capabilities::platform::supervisor::proxy_redirector,
            "platform:supervisor/cloud@1.1.0": super::capabilities::platform::supervisor::cloud,
            "platform:supervisor/update-lock@1.1.0": super::capabilities::platform::supervisor::update_lock,
            "platform:supervisor/host-name@1.1.0": super::capabilities::platform::supervisor::host_name,
            "platform:supervisor/identify-window@1.1.0": generate,
        },
    });
}

/// The world of a plugin that provides the action `proxy-redirector`.
pub mod proxy {
    wit_bindgen::generate!({
        path: "../wit",
        world: "proxy",
        pub_export_macro: true,
        export_macro_name: "export_proxy",
        with: {
            "platform:supervisor/log@1.1.0": super::capabilities::platform::supervisor::log,
            "platform:supervisor/config@1.1.0": super::capabilities::platform::supervisor::config,
            "platform:supervisor/timer@1.1.0": super::capabilities::platform::supervisor::timer,
            "platform:supervisor/caller@1.1.0": super::capabilities::platform::supervisor::caller,
            "platform:supervisor/device@1.1.0": super::capabilities::platform::supervisor::device,
            "platform:supervisor/store@1.1.0": super::capabilities::platform::supervisor::store,
            "platform:supervisor/led@1.1.0": super::capabilities::platform::supervisor::led,
            "platform:supervisor/units@1.1.0": super::capabilities::platform::supervisor::units,
            "platform:supervisor/journal@1.1.0": super::capabilities::platform::supervisor::journal,
            "platform:supervisor/identify@1.1.0": super::capabilities::platform::supervisor::identify,
            "platform:supervisor/proxy-types@1.1.0": super::capabilities::platform::supervisor::proxy_types,
            "platform:supervisor/proxy-redirector@1.1.0": super::capabilities::platform::supervisor::proxy_redirector,
            "platform:supervisor/cloud@1.1.0": super::capabilities::platform::supervisor::cloud,
            "platform:supervisor/update-lock@1.1.0": super::capabilities::platform::supervisor::update_lock,
            "platform:supervisor/host-name@1.1.0": super::capabilities::platform::supervisor::host_name,
        },
    });
}

/// The world of a plugin that provides the action `boot-config`.
pub mod boot {
    wit_bindgen::generate!({
        path: "../wit",
        world: "boot",
        pub_export_macro: true,
        export_macro_name: "export_boot",
        with: {
            "platform:supervisor/log@1.1.0": super::capabilities::platform::supervisor::log,
            "platform:supervisor/config@1.1.0": super::capabilities::platform::supervisor::config,
            "platform:supervisor/timer@1.1.0": super::capabilities::platform::supervisor::timer,
            "platform:supervisor/caller@1.1.0": super::capabilities::platform::supervisor::caller,
            "platform:supervisor/device@1.1.0": super::capabilities::platform::supervisor::device,
            "platform:supervisor/store@1.1.0": super::capabilities::platform::supervisor::store,
            "platform:supervisor/led@1.1.0": super::capabilities::platform::supervisor::led,
            "platform:supervisor/units@1.1.0": super::capabilities::platform::supervisor::units,
            "platform:supervisor/journal@1.1.0": super::capabilities::platform::supervisor::journal,
            "platform:supervisor/identify@1.1.0": super::capabilities::platform::supervisor::identify,
            "platform:supervisor/proxy-types@1.1.0": super::capabilities::platform::supervisor::proxy_types,
            "platform:supervisor/proxy-redirector@1.1.0": super::capabilities::platform::supervisor::proxy_redirector,
            "platform:supervisor/cloud@1.1.0": super::capabilities::platform::supervisor::cloud,
            "platform:supervisor/update-lock@1.1.0": super::capabilities::platform::supervisor::update_lock,
            "platform:supervisor/host-name@1.1.0": super::capabilities::platform::supervisor::host_name,
            "platform:supervisor/boot-config@1.1.0": generate,
        },
    });
}
