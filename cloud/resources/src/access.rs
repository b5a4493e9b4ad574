//! Who may do what with which rows (docs/spec/cloud.md#rights).

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What a credential makes of its holder, in the words of `api_key.role` and of the requests that make keys
/// (docs/spec/cloud.md#credentials-keys). Everybody is a guest as well.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// Anybody, without a credential.
    Guest,
    /// A person who signed in.
    User,
    /// A named key of a person.
    #[strum(serialize = "named-user-api-key")]
    UserKey,
    /// A key of a fleet, which makes devices in it.
    #[strum(serialize = "provisioning-api-key")]
    ProvisioningKey,
    /// A key of a device.
    #[strum(serialize = "device-api-key")]
    DeviceKey,
    /// The key of tunnel servers beside this cloud.
    TunnelServer,
}

impl Role {
    /// What `api_key.role` says of keys.
    pub(crate) const OF_KEYS: &[&'static str] = &[
        "named-user-api-key",
        "provisioning-api-key",
        "device-api-key",
    ];

    /// The role of a key with this word; none of a word that no key has.
    #[must_use]
    pub fn of_key(word: &str) -> Option<Role> {
        [Role::UserKey, Role::ProvisioningKey, Role::DeviceKey]
            .into_iter()
            .find(|role| word == <&str>::from(role))
    }
}

/// What is done with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET.
    Read,
    /// POST.
    Create,
    /// PATCH.
    Update,
    /// DELETE.
    Delete,
}

/// A set of methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Methods(u8);

impl Methods {
    /// R
    pub const READ: Methods = Methods(1);
    /// C
    pub const CREATE: Methods = Methods(2);
    /// U
    pub const UPDATE: Methods = Methods(4);
    /// D
    pub const DELETE: Methods = Methods(8);
    /// Everything.
    pub const ALL: Methods = Methods(15);

    /// These and the others.
    #[must_use]
    pub const fn and(self, others: Methods) -> Methods {
        Methods(self.0 | others.0)
    }

    /// Whether a method is among them.
    #[must_use]
    pub const fn has(self, method: Method) -> bool {
        let bit = match method {
            Method::Read => 1,
            Method::Create => 2,
            Method::Update => 4,
            Method::Delete => 8,
        };
        self.0 & bit != 0
    }
}

/// What may be done to a row beside the methods, mostly outside of the data API; `canAccess` asks about it by these
/// names (docs/spec/cloud.md#odata-actions).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, Display, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    /// Send its supervisor requests that are no GET or HEAD.
    SupervisorProxyWrite,
    /// Open a tunnel to its SSH server.
    #[strum(serialize = "tunnel-22222")]
    Tunnel,
    /// Get a shell of its host.
    SshHost,
    /// Upload logs.
    WriteLog,
    /// Hold the connection on which the cloud calls it.
    #[strum(serialize = "cloudlink")]
    CloudLink,
    /// Make a key of a device.
    #[strum(serialize = "create-device-api-key")]
    CreateDeviceKey,
    /// Make a provisioning key of a fleet.
    #[strum(serialize = "create-provisioning-api-key")]
    CreateProvisioningKey,
    /// Make a named key of a user.
    #[strum(serialize = "create-user-api-key")]
    CreateUserKey,
    /// Read what devices of a fleet should run, with all variables, settings and labels that it is made of.
    ReadTargetState,
}

/// That a role may do something with some rows of a resource. What it may do with a resource is what all of
/// its grants allow together, and those of [`Role::Guest`]. A row that is made or changed must be one that
/// the role may do that with afterwards as well, and a link that is written must lead to a row that the
/// role may read.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Who.
    pub role: Role,
    /// What.
    pub methods: Methods,
    /// With which rows.
    pub rows: Rows,
}

/// That a role may do something else with some rows of a resource.
#[derive(Debug, Clone)]
pub struct Permit {
    /// Who.
    pub role: Role,
    /// What.
    pub action: Action,
    /// With which rows; [`Rows::Through`] as for changing the row.
    pub rows: Rows,
}

/// Some rows of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Every one.
    All,
    /// Those that a filter of the query language holds for. `@actor` is the actor of the credential, `@user`
    /// its user (null where it is none). The filter sees every row of every resource, whoever asks.
    Where(&'static str),
    /// Those whose link of this name leads to a row of which the same role may do the same; to create,
    /// change and delete the row, it must be allowed to change the one that the link leads to.
    Through(&'static str),
}
