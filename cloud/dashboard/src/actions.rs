//! What devices can be asked to do, by the buttons of a device and for several devices of a fleet.

/// Something that a device can be asked to do.
#[derive(Debug)]
pub(crate) struct DeviceAction {
    /// In forms, and at the end of what is asked on the device's own API.
    pub(crate) name: &'static str,
    /// On the button.
    pub(crate) label: &'static str,
    /// What it did, once it has.
    pub(crate) done: &'static str,
    /// Update locks may be in the way, and can be overridden.
    pub(crate) locked: bool,
    /// What people are told before they press, where there is something to lose.
    pub(crate) careful: Option<&'static str>,
    /// Several devices of a fleet can be asked at once: as it is, and overriding update locks from the start.
    pub(crate) together: &'static [bool],
}

impl DeviceAction {
    /// What is asked of a device for all of its services, or itself, on its own API.
    pub(crate) fn path(&self) -> String {
        format!("/v1/{}", self.name)
    }

    /// What is asked of a device of a fleet for one of its services.
    pub(crate) fn path_of_service(&self, fleet: i64) -> String {
        format!("/v2/applications/{fleet}/{}", self.name)
    }
}

/// What most actions have in common.
const DEFAULTS: DeviceAction = DeviceAction {
    name: "",
    label: "",
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
        done: "The device is checking for its target.",
        together: &[false, true],
        ..DEFAULTS
    },
    DeviceAction {
        name: "blink",
        label: "Blink",
        done: "The device is blinking.",
        locked: false,
        together: &[false],
        ..DEFAULTS
    },
    DeviceAction {
        name: "restart",
        label: "Restart services",
        done: "The services were restarted.",
        together: &[false],
        ..DEFAULTS
    },
    DeviceAction {
        name: "reboot",
        label: "Reboot",
        done: "The device is rebooting.",
        careful: Some("All services stop, and start again after the reboot."),
        together: &[false, true],
        ..DEFAULTS
    },
    DeviceAction {
        name: "shutdown",
        label: "Shut down",
        done: "The device is shutting down.",
        careful: Some("The device stays off until somebody turns it on by hand."),
        ..DEFAULTS
    },
    DeviceAction {
        name: "purge",
        label: "Purge data",
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
        done: "Started.",
        ..DEFAULTS
    },
    DeviceAction {
        name: "stop-service",
        label: "Stop",
        done: "Stopped.",
        ..DEFAULTS
    },
    DeviceAction {
        name: "restart-service",
        label: "Restart",
        done: "Restarted.",
        ..DEFAULTS
    },
];
