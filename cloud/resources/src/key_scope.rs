//! The limits of named keys, compared with the rights of their users.
//!
//! A key never creates or changes people, organizations, sessions or keys. Beyond that it may be limited to a scope,
//! and to one fleet. No limit grants a right: a key can do only what its user may do as well.

use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::access::{Action, Method};

/// The purpose of a named key, in the words of `api_key.scope`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum KeyScope {
    /// Read only.
    Read,
    /// Read, and create releases and their parts.
    Deploy,
    /// Read, change devices and send them requests.
    Device,
    /// `Deploy` and `Device` together, and change fleets.
    Fleet,
}

/// The limits of a key; both are `None` if its user created it without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeyLimits {
    /// The purpose of the key.
    pub scope: Option<KeyScope>,
    /// The only fleet that the key can access.
    pub fleet: Option<i64>,
}

/// People, organizations and credentials.
const PEOPLE: &[&str] = &[
    "actor",
    "api_key",
    "application_invite",
    "invitee",
    "organization",
    "organization_invite",
    "organization_membership",
    "team",
    "team_application_access",
    "team_membership",
    "user",
    "user_application_membership",
    "user_session",
];

/// The parts of a release.
const DEPLOY: &[&str] = &[
    "image",
    "image_environment_variable",
    "image_label",
    "release",
    "release_asset",
    "release_image",
    "release_tag",
    "service",
    "service_label",
];

const DEVICE: &[&str] = &[
    "device",
    "device_config_variable",
    "device_environment_variable",
    "device_service_environment_variable",
    "device_tag",
    "service_install",
];

const FLEET: &[&str] = &[
    "application",
    "application__can_use__application_as_host",
    "application_config_variable",
    "application_environment_variable",
    "application_tag",
    "build_environment_variable",
    "service_environment_variable",
];

impl KeyScope {
    fn writes(self, resource: &str) -> bool {
        let deploys = DEPLOY.contains(&resource);
        let changes_devices = DEVICE.contains(&resource);
        match self {
            KeyScope::Read => false,
            KeyScope::Deploy => deploys,
            KeyScope::Device => changes_devices,
            KeyScope::Fleet => deploys || changes_devices || FLEET.contains(&resource),
        }
    }
}

impl KeyLimits {
    /// Returns whether a key with these limits may use a method on rows of a resource, if its user may.
    #[must_use]
    pub fn permit(self, resource: &str, method: Method) -> bool {
        if method == Method::Read {
            return true;
        }
        if PEOPLE.contains(&resource)
            || (self.fleet.is_some() && find_fleet_filter(resource).is_none())
        {
            return false;
        }
        self.scope.is_none_or(|scope| scope.writes(resource))
    }

    /// Returns whether a key with these limits may perform an action, if its user may.
    #[must_use]
    pub fn permit_action(self, action: Action) -> bool {
        match action {
            Action::CreateDeviceKey | Action::CreateProvisioningKey => self.scope.is_none(),
            Action::CreateUserKey => false,
            Action::ReadTargetState => true,
            Action::SupervisorProxyWrite
            | Action::Tunnel
            | Action::SshHost
            | Action::WriteLog
            | Action::CloudLink => {
                matches!(self.scope, None | Some(KeyScope::Device | KeyScope::Fleet))
            }
        }
    }
}

/// Returns a filter of the query language for the rows of a resource that belong to the fleet `@fleet`; `None` for a
/// resource whose rows belong to no fleet.
#[must_use]
pub fn find_fleet_filter(resource: &str) -> Option<&'static str> {
    Some(match resource {
        "application" => "id eq @fleet",
        "application_tag"
        | "application_config_variable"
        | "application_environment_variable"
        | "build_environment_variable"
        | "service" => "application eq @fleet",
        "device" | "release" | "device_history" => "belongs_to__application eq @fleet",
        "device_tag"
        | "device_config_variable"
        | "device_environment_variable"
        | "service_install"
        | "image_install" => "device/any(d:d/belongs_to__application eq @fleet)",
        "device_service_environment_variable" => {
            "service_install/any(i:i/device/any(d:d/belongs_to__application eq @fleet))"
        }
        "release_tag" | "release_asset" => "release/any(r:r/belongs_to__application eq @fleet)",
        "release_image" => "is_part_of__release/any(r:r/belongs_to__application eq @fleet)",
        "image_label" | "image_environment_variable" => {
            "release_image/any(i:i/is_part_of__release/any(r:r/belongs_to__application eq @fleet))"
        }
        "image" => "is_a_build_of__service/any(s:s/application eq @fleet)",
        "service_label" | "service_environment_variable" => {
            "service/any(s:s/application eq @fleet)"
        }
        _ => return None,
    })
}
