//! What devices can be asked to do, by the buttons of a device and for several devices of a fleet.

/// Something that a device can be asked to do.
#[derive(Debug)]
pub(crate) struct DeviceAction {
    /// In forms.
    pub(crate) name: &'static str,
    /// On the button.
    pub(crate) label: &'static str,
    /// What is asked, on the device's own API; `{fleet}` is the number of its fleet.
    pub(crate) path: &'static str,
    /// What it did, once it has.
    pub(crate) done: &'static str,
    /// Update locks may be in the way, and can be overridden.
    pub(crate) locked: bool,
    /// What people are told before they press, where there is something to lose.
    pub(crate) careful: Option<&'static str>,
    /// Several devices of a fleet can be asked at once: as it is, and overriding update locks from the start.
    pub(crate) together: &'static [bool],
}

/// What most actions have in common.
const DEFAULTS: DeviceAction = DeviceAction {
    name: "",
    label: "",
    path: "",
    done: "",
    locked: true,
    careful: None,
    together: &[],
};

/// What a device can be asked to do with all of its services, or itself.
pub(crate) const ACTIONS: [DeviceAction; 6] = [
    DeviceAction {
        name: "update",
        label: "Update now",
        path: "/v1/update",
        done: "The device is checking for its target.",
        together: &[false, true],
        ..DEFAULTS
    },
    DeviceAction {
        name: "blink",
        label: "Blink",
        path: "/v1/blink",
        done: "The device is blinking.",
        locked: false,
        together: &[false],
        ..DEFAULTS
    },
    DeviceAction {
        name: "restart",
        label: "Restart services",
        path: "/v1/restart",
        done: "The services were restarted.",
        together: &[false],
        ..DEFAULTS
    },
    DeviceAction {
        name: "reboot",
        label: "Reboot",
        path: "/v1/reboot",
        done: "The device is rebooting.",
        careful: Some("All services stop, and start again after the reboot."),
        together: &[false, true],
        ..DEFAULTS
    },
    DeviceAction {
        name: "shutdown",
        label: "Shut down",
        path: "/v1/shutdown",
        done: "The device is shutting down.",
        careful: Some("The device stays off until somebody turns it on by hand."),
        ..DEFAULTS
    },
    DeviceAction {
        name: "purge",
        label: "Purge data",
        path: "/v1/purge",
        done: "The data of its services was deleted, and the services have started again.",
        careful: Some(
            "This deletes all data in the volumes of its services. This cannot be undone.",
        ),
        ..DEFAULTS
    },
];

/// What it can be asked to do with one of its services.
pub(crate) const SERVICE_ACTIONS: [DeviceAction; 3] = [
    DeviceAction {
        name: "start-service",
        label: "Start",
        path: "/v2/applications/{fleet}/start-service",
        done: "Started.",
        ..DEFAULTS
    },
    DeviceAction {
        name: "stop-service",
        label: "Stop",
        path: "/v2/applications/{fleet}/stop-service",
        done: "Stopped.",
        ..DEFAULTS
    },
    DeviceAction {
        name: "restart-service",
        label: "Restart",
        path: "/v2/applications/{fleet}/restart-service",
        done: "Restarted.",
        ..DEFAULTS
    },
];
