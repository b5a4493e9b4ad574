//! What `run` serves at present.

use plugin_manifest::Manifest;
use plugin_test_host::RunningHost;

use super::identify_requests::IdentifyRequests;

/// What is currently served.
pub(crate) enum ServedPlugin {
    /// Nothing has been built yet.
    Nothing,
    /// The device on which the plugin runs.
    Device(Box<ServedDevice>),
    /// A version that a device would refuse, and the reason.
    Refused(String),
}

/// A device that runs the plugin.
pub(crate) struct ServedDevice {
    pub(crate) host: RunningHost,
    /// The plugin's manifest.
    pub(crate) manifest: Manifest,
    pub(crate) identify: IdentifyRequests,
}

impl ServedPlugin {
    /// Returns the device.
    ///
    /// # Errors
    /// The reason why there is none at present, for people.
    pub(super) fn device(&self) -> Result<&ServedDevice, &str> {
        match self {
            ServedPlugin::Device(device) => Ok(device),
            ServedPlugin::Refused(reason) => Err(reason),
            ServedPlugin::Nothing => Err("the plugin is being built"),
        }
    }
}
