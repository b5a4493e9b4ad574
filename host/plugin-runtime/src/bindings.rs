//! Generated from `wit/`: one world of ours that has each interface once, so that a component with any
//! of the exports, or all, is served by one set of types.

#![allow(
    clippy::all,
    unused_qualifications,
    unreachable_pub,
    missing_docs,
    reason = "generated code"
)]

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package platform:host;
        world everything {
            include platform:supervisor/capabilities@1.2.0;
            import platform:supervisor/identify-window@1.2.0;
            import platform:supervisor/identify@1.2.0;
            export platform:supervisor/handler@1.2.0;
            export platform:supervisor/identify@1.2.0;
            export platform:supervisor/proxy-redirector@1.2.0;
            export platform:supervisor/boot-config@1.2.0;
        }
    ",
    world: "platform:host/everything",
    imports: {
        // What the host is asked for takes its time, and traps where the plugin is not to ask for it.
        "platform:supervisor/cloud": trappable,
        "platform:supervisor/device": async | trappable,
        "platform:supervisor/host-name": trappable,
        "platform:supervisor/identify": trappable,
        "platform:supervisor/identify-window": async | trappable,
        "platform:supervisor/journal": trappable,
        "platform:supervisor/led": async | trappable,
        "platform:supervisor/metrics": trappable,
        "platform:supervisor/proxy-redirector": trappable,
        "platform:supervisor/store": trappable,
        "platform:supervisor/units": trappable,
        "platform:supervisor/update-lock": trappable,
    },
    with: {
        "platform:supervisor/led.light": crate::capabilities::led::Light,
        "platform:supervisor/update-lock.lock": crate::capabilities::update_lock::Lock,
    },
});
