//! Who may do what with which rows (cloud behaviour 3.2).

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
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] = [
        Role::Guest,
        Role::User,
        Role::UserKey,
        Role::ProvisioningKey,
        Role::DeviceKey,
    ];
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

/// That a role may do something with some rows of a resource.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Who.
    pub role: Role,
    /// What.
    pub methods: Methods,
    /// With which rows.
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
