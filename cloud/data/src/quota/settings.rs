//! All quotas, each declared once, and their values in the cloud's configuration.

use serde::Deserialize;

/// Each line has the name of a quota in requests, settings and messages, the type of its number, the default unless
/// configured otherwise, the quota, and its title.
macro_rules! quotas {
    ($($(#[$about:meta])* $name:ident: $number:ty = $default:literal, $quota:ident $title:literal;)*) => {
        /// What an organization may store, unless it has other quotas.
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

        /// One of the quotas.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Quota {
            $(#[doc = concat!("[`Quotas::", stringify!($name), "`]")] $quota,)*
        }

        impl Quota {
            /// Returns its name in requests, settings and messages.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Quota::$quota => stringify!($name),)*
                }
            }

            /// Returns its title for people.
            #[must_use]
            pub fn title(self) -> &'static str {
                match self {
                    $(Quota::$quota => $title,)*
                }
            }

            /// Returns the limit of an organization that has no other one.
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
    /// Release assets of all of its fleets.
    release_assets: u32 = 10_000, ReleaseAssets "Files attached to releases";
    /// Total size of these files in bytes.
    release_asset_bytes: u64 = 20_000_000_000, ReleaseAssetBytes "Bytes of files attached to releases";
    /// Members of an organization; people with whom one fleet is shared.
    members: u32 = 5_000, Members "Members; people with whom a fleet is shared";
    /// Open invites to an organization; open invites to one fleet.
    invites: u32 = 1_000, Invites "Open invites to the organization; to one fleet";
    /// Teams of an organization.
    teams: u32 = 500, Teams "Teams";
    /// Log lines per second of all its devices, at each replica.
    organization_log_lines_per_second: u32 = 20_000,
        OrganizationLogLines "Log lines per second, all devices";
    /// Log lines per second of one device, at each replica.
    log_lines_per_second: u32 = 100, LogLines "Log lines per second, one device";
    /// Services of one fleet.
    services: u32 = 1_000, Services "Services of a fleet";
    /// Tags of one device, fleet or release.
    tags: u32 = 500, Tags "Tags of a device, fleet or release";
    /// Bytes of these tags' values.
    tag_bytes: u64 = 1_048_576, TagBytes "Bytes of tags of a device, fleet or release";
    /// Variables or labels of one kind of one device, fleet, service or image.
    variables: u32 = 1000, Variables "Variables of a device, fleet, service or image";
    /// Bytes of these variables' values.
    variable_bytes: u64 = 4_194_304,
        VariableBytes "Bytes of variables of a device, fleet, service or image";
    /// Keys of one user, fleet or device.
    keys: u32 = 1_000, Keys "Keys of a user, fleet or device";
    /// SSH keys of one user.
    public_keys: u32 = 200, PublicKeys "SSH keys of a user";
    /// Organizations that one user is a member of.
    organizations: u32 = 500, Organizations "Organizations of a user";
}

impl Quota {
    /// The quotas of organizations; those counted for a whole organization come first.
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

    /// Returns the quota with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Quota::ALL.into_iter().find(|quota| quota.name() == name)
    }
}
