//! Actions that devices can perform on request, by the buttons of a device and for several devices of a fleet.

/// An action that a device can perform on request.
#[derive(Debug)]
pub(crate) struct DeviceAction {
    /// Its name in forms, and at the end of its path on the device's own API.
    pub(crate) name: &'static str,
    /// The label of its button.
    pub(crate) label: &'static str,
    /// The message after it was done.
    pub(crate) done: &'static str,
    /// Update locks may prevent it, and can be overridden.
    pub(crate) locked: bool,
    /// The warning that people see before they press the button, if something can be lost.
    pub(crate) careful: Option<&'static str>,
    /// The ways in which several devices of a fleet can be asked at once: `false` respects update locks, `true`
    /// overrides them from the start.
    pub(crate) together: &'static [bool],
}

impl DeviceAction {
    /// Returns its path on the device's own API, for all services or the device itself.
    pub(crate) fn path(&self) -> String {
        format!("/v1/{}", self.name)
    }

    /// Returns its path on the device's own API, for one service of a device of a fleet.
    pub(crate) fn path_of_service(&self, fleet: i64) -> String {
        format!("/v2/applications/{fleet}/{}", self.name)
    }
}

/// The properties that most actions share.
const DEFAULTS: DeviceAction = DeviceAction {
    name: "",
    label: "",
    done: "",
    locked: true,
    careful: None,
    together: &[],
};

/// The actions for all services of a device, or the device itself.
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

/// The actions for one service of a device.
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
