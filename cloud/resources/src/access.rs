//! Who may do what with which rows (docs/spec/cloud.md#rights).

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The role that a credential gives its holder, in the words of `api_key.role` and of the requests that create keys
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
    /// Anyone, without a credential.
    Guest,
    /// A person who signed in.
    User,
    /// A named key of a person.
    #[strum(serialize = "named-user-api-key")]
    UserKey,
    /// A key of a fleet, which creates devices in it.
    #[strum(serialize = "provisioning-api-key")]
    ProvisioningKey,
    /// A key of a device.
    #[strum(serialize = "device-api-key")]
    DeviceKey,
    /// The key of tunnel servers that run alongside this cloud.
    TunnelServer,
}

impl Role {
    /// The values of `api_key.role`.
    pub(crate) const OF_KEYS: &[&'static str] = &[
        "named-user-api-key",
        "provisioning-api-key",
        "device-api-key",
    ];

    /// Returns the role of a key with this word; `None` if no key has it.
    #[must_use]
    pub fn from_key_word(word: &str) -> Option<Role> {
        [Role::UserKey, Role::ProvisioningKey, Role::DeviceKey]
            .into_iter()
            .find(|role| word == <&str>::from(role))
    }
}

/// An operation on a row.
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

    /// Returns the union of the two sets.
    #[must_use]
    pub const fn and(self, others: Methods) -> Methods {
        Methods(self.0 | others.0)
    }

    /// Returns whether the set contains a method.
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

/// Operations on a row other than the methods, mostly outside the data API; `canAccess` uses these names
/// (docs/spec/cloud.md#odata-actions).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, Display, VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    /// Send its supervisor requests other than GET and HEAD.
    SupervisorProxyWrite,
    /// Open a tunnel to its SSH server.
    #[strum(serialize = "tunnel-22222")]
    Tunnel,
    /// Get a shell of its host.
    SshHost,
    /// Upload logs.
    WriteLog,
    /// Hold the connection through which the cloud sends it requests.
    #[strum(serialize = "cloudlink")]
    CloudLink,
    /// Create a key of a device.
    #[strum(serialize = "create-device-api-key")]
    CreateDeviceKey,
    /// Create a provisioning key of a fleet.
    #[strum(serialize = "create-provisioning-api-key")]
    CreateProvisioningKey,
    /// Create a named key of a user.
    #[strum(serialize = "create-user-api-key")]
    CreateUserKey,
    /// Read what devices of a fleet should run, with all variables, settings and labels that are part of it.
    ReadTargetState,
}

/// A role's right to use methods on some rows of a resource. A role may do what any of its grants, or those of
/// [`Role::Guest`], allow. For a row that is created or changed, the right must also apply to the new state, and a link
/// that is written must lead to a row that the role may read.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// The methods.
    pub methods: Methods,
    /// The rows to which it applies.
    pub rows: Rows,
}

/// A role's right to perform an action on some rows of a resource.
#[derive(Debug, Clone)]
pub struct Permit {
    /// The role.
    pub role: Role,
    /// The action.
    pub action: Action,
    /// The rows to which it applies; [`Rows::Through`] as for changing the row.
    pub rows: Rows,
}

/// Some rows of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Every row.
    All,
    /// Those for which a filter of the query language holds. `@actor` is the actor of the credential, `@user` its user
    /// (null if the actor is not a user). The filter sees every row of every resource, whoever the caller is.
    Where(&'static str),
    /// Those whose link of this name leads to a row on which the role has the same right; to create, change or delete
    /// the row, the role must be allowed to change the linked row.
    Through(&'static str),
}
