//! The kinds of names with values, and their owners.

use serde::Deserialize;

use crate::page_error::{PageError, PageResult};

/// A kind of names with values, and of their owner. The number that goes with it is the owner's: of the fleet, the
/// service of the fleet, the device, the service on a device (`service_install`) or the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyValueKind {
    FleetVariable,
    FleetSetting,
    FleetTag,
    /// A variable of a service, on every device of its fleet.
    ServiceVariable,
    DeviceVariable,
    DeviceSetting,
    DeviceTag,
    /// A variable of a service, on one device.
    DeviceServiceVariable,
    ReleaseTag,
}

impl KeyValueKind {
    const ALL: [Self; 9] = [
        Self::FleetVariable,
        Self::FleetSetting,
        Self::FleetTag,
        Self::ServiceVariable,
        Self::DeviceVariable,
        Self::DeviceSetting,
        Self::DeviceTag,
        Self::DeviceServiceVariable,
        Self::ReleaseTag,
    ];

    /// Returns the resource, its link to the owner, and the word that people use for it.
    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::FleetVariable => (
                "application_environment_variable",
                "application",
                "variable",
            ),
            Self::FleetSetting => ("application_config_variable", "application", "setting"),
            Self::FleetTag => ("application_tag", "application", "tag"),
            Self::ServiceVariable => ("service_environment_variable", "service", "variable"),
            Self::DeviceVariable => ("device_environment_variable", "device", "variable"),
            Self::DeviceSetting => ("device_config_variable", "device", "setting"),
            Self::DeviceTag => ("device_tag", "device", "tag"),
            Self::DeviceServiceVariable => (
                "device_service_environment_variable",
                "service_install",
                "variable",
            ),
            Self::ReleaseTag => ("release_tag", "release", "tag"),
        }
    }

    /// Returns the resource.
    pub(crate) const fn resource(self) -> &'static str {
        self.row().0
    }

    /// Returns the resource's link to the owner.
    pub(super) const fn link(self) -> &'static str {
        self.row().1
    }

    /// Returns the word that people use for it.
    pub(super) const fn word(self) -> &'static str {
        self.row().2
    }

    const fn is_tag(self) -> bool {
        matches!(self, Self::FleetTag | Self::DeviceTag | Self::ReleaseTag)
    }

    /// Returns the field of the name.
    pub(super) const fn name(self) -> &'static str {
        if self.is_tag() { "tag_key" } else { "name" }
    }

    /// Returns whether a value may be secret, readable only by the devices that receive it.
    pub(super) const fn may_be_secret(self) -> bool {
        !self.is_tag()
    }

    /// Returns the fields to select.
    pub(super) const fn fields(self) -> &'static str {
        if self.is_tag() {
            "id,tag_key,value"
        } else {
            "id,name,value,is_secret"
        }
    }

    /// Returns the kind of a resource.
    ///
    /// # Errors
    /// 404 if the resource is not edited here.
    pub(super) fn named(resource: &str) -> PageResult<Self> {
        let mut all = Self::ALL.into_iter();
        let kind = all.find(|kind| kind.resource() == resource);
        kind.ok_or_else(PageError::nothing_here)
    }
}

/// A name with its value. Neither is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct KeyValue {
    pub(crate) id: i64,
    #[serde(alias = "tag_key")]
    pub(crate) name: String,
    /// `None` if the user may not see it.
    pub(crate) value: Option<String>,
    /// Only the devices that receive the value can read it.
    #[serde(default)]
    pub(crate) is_secret: bool,
}
