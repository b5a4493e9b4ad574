//! The quotas there are, each declared once, and what the cloud's configuration says of them.

use serde::Deserialize;

/// Each line has the name that requests, settings and messages have for a quota, the type of its number, what that is
/// unless the configuration says otherwise, the quota, and its title.
macro_rules! quotas {
    ($($(#[$about:meta])* $name:ident: $number:ty = $default:literal, $quota:ident $title:literal;)*) => {
        /// What an organization may keep, unless it is given others.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Quotas {
            $($(#[$about])* pub $name: $number,)*
        }

        impl Default for Quotas {
            fn default() -> Self {
                Quotas { $($name: $default,)* }
            }
        }

        /// One of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Quota {
            $(#[doc = concat!("[`Quotas::", stringify!($name), "`]")] $quota,)*
        }

        impl Quota {
            /// As requests, settings and messages call it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Quota::$quota => stringify!($name),)*
                }
            }

            /// As people read it.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Quota::$quota => $title,)*
                }
            }

            /// What an organization has of it that was given no other.
            #[must_use]
            pub fn default(self, quotas: &Quotas) -> u64 {
                match self {
                    $(Quota::$quota => quotas.$name.into(),)*
                }
            }
        }
    };
}

quotas! {
    /// Fleets of an organization.
    fleets: u32 = 1000, Fleets "Fleets";
    /// Devices in all of its fleets.
    devices: u32 = 50_000, Devices "Devices";
    /// Releases of all of its fleets.
    releases: u32 = 50_000, Releases "Releases";
    /// Images of the services of all of its fleets.
    images: u32 = 200_000, Images "Images";
    /// Files beside them.
    release_assets: u32 = 10_000, ReleaseAssets "Files beside releases";
    /// Bytes of these files.
    release_asset_bytes: u64 = 20_000_000_000, ReleaseAssetBytes "Bytes of these files";
    /// Its members; and people with whom one of its fleets is shared.
    members: u32 = 5_000, Members "Members; people with whom a fleet is shared";
    /// Invites to it that nobody has accepted yet; and those to one of its fleets.
    invites: u32 = 1_000, Invites "Open invites; those to a fleet";
    /// Its teams.
    teams: u32 = 500, Teams "Teams";
    /// Lines of logs that all of its devices send in a second, at each replica.
    organization_log_lines_per_second: u32 = 20_000,
        OrganizationLogLines "Lines of logs a second, of all devices";
    /// Lines of logs that one device sends in a second, at each replica.
    log_lines_per_second: u32 = 100, LogLines "Lines of logs a second, of a device";
    /// Services of one fleet.
    services: u32 = 1_000, Services "Services of a fleet";
    /// Tags of one device, fleet or release.
    tags: u32 = 500, Tags "Tags of a device, fleet or release";
    /// Bytes of their values.
    tag_bytes: u64 = 1_048_576, TagBytes "Bytes of these tags";
    /// Variables or labels of one kind of one device, fleet, service or image.
    variables: u32 = 1000, Variables "Variables of a device, fleet, service or image";
    /// Bytes of their values.
    variable_bytes: u64 = 4_194_304, VariableBytes "Bytes of these variables";
    /// Keys of one user, fleet or device.
    keys: u32 = 1_000, Keys "Keys of a user, fleet or device";
    /// SSH keys of one user.
    public_keys: u32 = 200, PublicKeys "SSH keys of a user";
    /// Organizations that one user is a member of.
    organizations: u32 = 500, Organizations "Organizations of a user";
}

impl Quota {
    /// Those of organizations; what is counted for the whole of one comes first.
    pub const ALL: [Quota; 16] = [
        Quota::Fleets,
        Quota::Devices,
        Quota::Releases,
        Quota::Images,
        Quota::ReleaseAssets,
        Quota::ReleaseAssetBytes,
        Quota::Members,
        Quota::Invites,
        Quota::Teams,
        Quota::OrganizationLogLines,
        Quota::LogLines,
        Quota::Services,
        Quota::Tags,
        Quota::TagBytes,
        Quota::Variables,
        Quota::VariableBytes,
    ];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Quota::ALL.into_iter().find(|quota| quota.name() == name)
    }
}
