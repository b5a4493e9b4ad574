//! The information that the device sends to a new cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloud_link::Description;
use futures::FutureExt;
use futures::future::BoxFuture;
use model::Branding;

use crate::facts::{Board, DeviceFacts};
use crate::host_settings::HostSettings;

/// The device, as it introduces itself.
pub(crate) struct DeviceIntroduction {
    pub(crate) board: Board,
    pub(crate) facts: Arc<DeviceFacts>,
    pub(crate) settings: HostSettings,
    pub(crate) branding: Branding,
}

impl cloud_link::IntroductionSource for DeviceIntroduction {
    fn description(&self) -> Description {
        Description {
            device_type: self.board.device_type.clone(),
            supervisor_version: self.branding.api_level.clone(),
            os_version: self.board.os_version.clone(),
            os_variant: self.board.variant.clone(),
            mac_address: self.facts.now().mac_address.clone(),
        }
    }

    fn configuration(&self) -> BoxFuture<'_, BTreeMap<String, String>> {
        self.settings.current().boxed()
    }

    fn prefix(&self) -> String {
        self.branding.env_prefix.clone()
    }
}
