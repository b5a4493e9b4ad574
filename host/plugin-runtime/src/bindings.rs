//! Generated from `wit/`: one world of our own that contains each interface once, so one set of types works for
//! components with any of the exports, or all of them. The types behind its resources are below.

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
            include platform:supervisor/capabilities@1.4.0;
            import platform:supervisor/identify-window@1.4.0;
            import platform:supervisor/identify@1.4.0;
            export platform:supervisor/handler@1.4.0;
            export platform:supervisor/identify@1.4.0;
            export platform:supervisor/proxy-redirector@1.4.0;
            export platform:supervisor/boot-config@1.4.0;
            export platform:supervisor/os-update@1.4.0;
            export platform:supervisor/events@1.4.0;
            export platform:supervisor/action-provider@1.4.0;
        }
    ",
    world: "platform:host/everything",
    imports: {
        // These calls are answered at once, here. All other calls go to the host, which takes time, and trap if the
        // plugin may not make them.
        "platform:supervisor/caller": trappable,
        "platform:supervisor/config": trappable,
        "platform:supervisor/log": trappable,
        default: async | trappable,
    },
    with: {
        "platform:supervisor/led.light": plugin_protocol::OpenLed,
        "platform:supervisor/serial.port": crate::bindings::Port,
        "platform:supervisor/update-lock.lock": crate::bindings::Lock,
    },
});

/// A serial port that a call holds: the host's handle for it.
pub struct Port(pub(crate) plugin_protocol::Handle);

/// The update locks that a call holds: the host's handle for them.
pub struct Lock(pub(crate) plugin_protocol::Handle);
