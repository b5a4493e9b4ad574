//! Who may do what with which rows (docs/spec/cloud.md#rights).

/// What a credential makes of its holder. Everybody is a guest as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Anybody, without a credential.
    Guest,
    /// A person who signed in.
    User,
    /// A named key of a person.
    UserKey,
    /// A key of a fleet, which makes devices in it.
    ProvisioningKey,
    /// A key of a device.
    DeviceKey,
    /// The key of tunnel servers beside this cloud.
    TunnelServer,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 6] = [
        Role::Guest,
        Role::User,
        Role::UserKey,
        Role::ProvisioningKey,
        Role::DeviceKey,
        Role::TunnelServer,
    ];

    /// What `api_key.role` says of keys.
    pub(crate) const OF_KEYS: &[&'static str] = &[
        Role::UserKey.word(),
        Role::ProvisioningKey.word(),
        Role::DeviceKey.word(),
    ];

    /// As `api_key.role` and the requests that make keys have it (docs/spec/cloud.md#credentials-keys).
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Role::Guest => "guest",
            Role::User => "user",
            Role::UserKey => "named-user-api-key",
            Role::ProvisioningKey => "provisioning-api-key",
            Role::DeviceKey => "device-api-key",
            Role::TunnelServer => "tunnel-server",
        }
    }

    /// The role of a key with this word; none of a word that no key has.
    #[must_use]
    pub fn of_key(word: &str) -> Option<Role> {
        [Role::UserKey, Role::ProvisioningKey, Role::DeviceKey]
            .into_iter()
            .find(|role| role.word() == word)
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

/// What may be done to a row beside the methods, mostly outside of the data API; `canAccess` asks about it
/// (docs/spec/cloud.md#odata-actions).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Send its supervisor requests that are no GET or HEAD.
    SupervisorProxyWrite,
    /// Open a tunnel to its SSH server.
    Tunnel,
    /// Get a shell of its host.
    SshHost,
    /// Upload logs.
    WriteLog,
    /// Hold the connection on which the cloud calls it.
    CloudLink,
    /// Make a key of a device.
    CreateDeviceKey,
    /// Make a provisioning key of a fleet.
    CreateProvisioningKey,
    /// Make a named key of a user.
    CreateUserKey,
    /// Read what devices of a fleet should run, with all variables, settings and labels that it is made of.
    ReadTargetState,
}

impl Action {
    /// All of them.
    pub const ALL: [Action; 9] = [
        Action::SupervisorProxyWrite,
        Action::Tunnel,
        Action::SshHost,
        Action::WriteLog,
        Action::CloudLink,
        Action::CreateDeviceKey,
        Action::CreateProvisioningKey,
        Action::CreateUserKey,
        Action::ReadTargetState,
    ];

    /// As requests call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Action::SupervisorProxyWrite => "supervisor-proxy-write",
            Action::Tunnel => "tunnel-22222",
            Action::SshHost => "ssh-host",
            Action::WriteLog => "write-log",
            Action::CloudLink => "cloudlink",
            Action::CreateDeviceKey => "create-device-api-key",
            Action::CreateProvisioningKey => "create-provisioning-api-key",
            Action::CreateUserKey => "create-user-api-key",
            Action::ReadTargetState => "read-target-state",
        }
    }

    /// The one that requests call so.
    #[must_use]
    pub fn named(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|one| one.name() == name)
    }
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
