//! The author of a request, and the cloud's own actions, which need no caller's rights.

use resources::{KeyLimits, Method, Resource, Role};
use sea_query::Value;

use crate::statement::{BuiltStatement, SeaQuery, Sql, SystemStatement, sql};

/// The author of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The cloud itself, which may do everything, for a stated purpose.
    Platform(SystemPurpose),
    /// Somebody with a credential, or without one.
    Holder {
        /// The role of the credential.
        role: Role,
        /// The actor of the credential.
        actor: Option<i64>,
        /// The user, if the actor is one.
        user: Option<i64>,
    },
    /// Somebody with a named key that is limited.
    LimitedKey {
        /// The actor of the user.
        actor: Option<i64>,
        /// The user.
        user: Option<i64>,
        /// The limits of the key.
        limits: KeyLimits,
    },
}

impl Caller {
    /// Returns the caller without a credential.
    #[must_use]
    pub fn guest() -> Self {
        Caller::Holder {
            role: Role::Guest,
            actor: None,
            user: None,
        }
    }

    /// Returns whether the caller has no credential.
    #[must_use]
    pub fn is_guest(&self) -> bool {
        matches!(
            self,
            Caller::Holder {
                role: Role::Guest,
                ..
            }
        )
    }

    /// Returns the role of its credential; `None` for the cloud itself.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { role, .. } => Some(*role),
            Caller::LimitedKey { .. } => Some(Role::UserKey),
        }
    }

    /// Returns the actor of its credential.
    #[must_use]
    pub fn actor(&self) -> Option<i64> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { actor, .. } | Caller::LimitedKey { actor, .. } => *actor,
        }
    }

    /// Returns the user, if the actor is one.
    #[must_use]
    pub fn user(&self) -> Option<i64> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { user, .. } | Caller::LimitedKey { user, .. } => *user,
        }
    }

    /// Returns the limits of its own role's rights, if it is a named key.
    pub(crate) fn limits(&self) -> Option<KeyLimits> {
        match self {
            Caller::LimitedKey { limits, .. } => Some(*limits),
            Caller::Holder {
                role: Role::UserKey,
                ..
            } => Some(KeyLimits::default()),
            Caller::Platform(_) | Caller::Holder { .. } => None,
        }
    }

    /// Returns the roles whose rights it has together; `None` if it needs no rights.
    pub(crate) fn roles(&self) -> Option<impl Iterator<Item = Role> + use<>> {
        let role = self.role()?;
        let own = (role != Role::Guest).then_some(role);
        Some(std::iter::once(Role::Guest).chain(own))
    }

    /// Returns the number that a parameter of a rule stands for; `None` if there is no such parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<i64> {
        let number = match name {
            "actor" => self.actor(),
            "user" => self.user(),
            "fleet" => self.limits().and_then(|limits| limits.fleet),
            _ => return None,
        };
        // No row has this number; null would match null.
        Some(number.unwrap_or(-1))
    }

    /// Returns whether any of its roles has the right on some rows of a resource.
    pub(crate) fn has_any(&self, resource: &Resource, method: Method) -> bool {
        let Some(own) = self.role() else {
            return true;
        };
        let limited = self
            .limits()
            .is_some_and(|limits| !limits.permit(resource.table, method));
        resource.grants.iter().any(|grant| {
            let is_own = grant.role == own && !limited;
            (grant.role == Role::Guest || is_own) && grant.methods.has(method)
        })
    }
}

macro_rules! purposes {
    ($(#[$of_all:meta])* pub enum SystemPurpose { $($(#[$of_one:meta])* $purpose:ident,)* }) => {
        $(#[$of_all])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SystemPurpose {
            $($(#[$of_one])* $purpose,)*
        }

        impl SystemPurpose {
            /// All purposes with their names.
            pub const ALL: &[(&str, SystemPurpose)] =
                &[$((stringify!($purpose), SystemPurpose::$purpose),)*];

            /// Returns the cloud itself as the caller, for this purpose.
            #[must_use]
            pub fn caller(self) -> &'static Caller {
                match self {
                    $(SystemPurpose::$purpose => &Caller::Platform(SystemPurpose::$purpose),)*
                }
            }
        }
    };
}

purposes! {
    /// Why a hand-written statement of the server needs no right of the request's author.
    ///
    /// Rows are returned by statements into which [`crate::query`] compiles the caller's rights, and by those of a
    /// [`crate::RowRight`]. Every other statement of the server, and every change that it makes as the cloud itself,
    /// names a purpose. docs/security.md lists how often each is named, and a test compares.
    pub enum SystemPurpose {
        /// The author of a request: keys, sessions and passwords, and the name of a user who has signed in.
        Credentials,
        /// The number of a row that a request identifies in another way (a uuid, a place in the registry), so that the
        /// right can be checked. Nothing of the row is returned before that.
        Lookup,
        /// A device's report about itself, after the check of the right to change the device.
        Report,
        /// When devices polled, and which are late.
        Heartbeat,
        /// A device's target state, computed and cached in advance. It is shown only with the right
        /// `read-target-state`.
        TargetState,
        /// The replica that holds the tunnel of a device.
        Presence,
        /// Devices that are notified of a new state.
        Push,
        /// Log lines of devices: stored, counted and deleted.
        Logs,
        /// Device types, which everybody may read.
        Catalogue,
        /// SSH keys that a device accepts: those of the members of its organization.
        DeviceAccess,
        /// A device that registers, after the check of the right to add to the fleet.
        Registration,
        /// New keys, after the check of the right to create them.
        Keys,
        /// New users, new passwords, the beginning and end of sessions: of the calling user, or of one created by an
        /// administrator.
        Accounts,
        /// The invite that a token identifies, for the invited user.
        Invitations,
        /// Actions of administrators of the cloud.
        Administration,
        /// The program itself: its first start, its health, commands of the operator.
        Operation,
        /// Consequences of a change that its author had the right to make (`crate::rules`), and the cloud's initial
        /// data.
        Rules,
    }
}

impl SystemPurpose {
    /// Creates a statement, to which values are then added in their order.
    #[must_use]
    pub fn sql(self, text: &'static str) -> Sql {
        sql(text)
    }

    /// Creates a statement built by sea-query.
    #[must_use]
    pub fn statement<S: SeaQuery>(self, statement: S) -> SystemStatement<S> {
        SystemStatement(statement)
    }

    /// Creates a statement for one database, with its parameters (`?` or `$1`). The text may not contain anything from
    /// a request.
    #[must_use]
    pub fn text(
        self,
        text: impl Into<String>,
        values: impl IntoIterator<Item = Value>,
    ) -> BuiltStatement {
        BuiltStatement::new(text, values)
    }
}
