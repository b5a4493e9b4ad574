//! Who makes a request, and what the cloud does for itself, and so by no caller's rights.

use resources::{KeyLimits, Method, Resource, Role};
use sea_query::Value;

use crate::statement::{BuiltStatement, SeaQuery, Sql, SystemStatement, sql};

/// Who makes a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The cloud itself, which may do everything, and does it for a purpose.
    Platform(SystemPurpose),
    /// Somebody with a credential, or without one.
    Holder {
        /// What the credential makes of its holder.
        role: Role,
        /// The actor that it stands for.
        actor: Option<i64>,
        /// The user, where the actor is one.
        user: Option<i64>,
    },
    /// Somebody with a named key that is limited.
    LimitedKey {
        /// The actor of the user.
        actor: Option<i64>,
        /// The user.
        user: Option<i64>,
        /// To what.
        limits: KeyLimits,
    },
}

impl Caller {
    /// Anybody, without a credential.
    #[must_use]
    pub fn guest() -> Self {
        Caller::Holder {
            role: Role::Guest,
            actor: None,
            user: None,
        }
    }

    /// Whether it has no credential.
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

    /// What its credential makes of it; none of the cloud itself.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { role, .. } => Some(*role),
            Caller::LimitedKey { .. } => Some(Role::UserKey),
        }
    }

    /// The actor that its credential stands for.
    #[must_use]
    pub fn actor(&self) -> Option<i64> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { actor, .. } | Caller::LimitedKey { actor, .. } => *actor,
        }
    }

    /// The user, where the actor is one.
    #[must_use]
    pub fn user(&self) -> Option<i64> {
        match self {
            Caller::Platform(_) => None,
            Caller::Holder { user, .. } | Caller::LimitedKey { user, .. } => *user,
        }
    }

    /// What the rights of its own role are limited to, where it is a named key.
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

    /// The roles whose rights it has together; none where it needs no rights.
    pub(crate) fn roles(&self) -> Option<impl Iterator<Item = Role> + use<>> {
        let role = self.role()?;
        let own = (role != Role::Guest).then_some(role);
        Some(std::iter::once(Role::Guest).chain(own))
    }

    /// The number that a parameter of a rule stands for; none where there is no such parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<i64> {
        let number = match name {
            "actor" => self.actor(),
            "user" => self.user(),
            "fleet" => self.limits().and_then(|limits| limits.fleet),
            _ => return None,
        };
        // No row has this number, and null would be the same as null.
        Some(number.unwrap_or(-1))
    }

    /// Whether any of its roles may do this with some rows of a resource.
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
            /// All of them, by their names.
            pub const ALL: &[(&str, SystemPurpose)] =
                &[$((stringify!($purpose), SystemPurpose::$purpose),)*];

            /// The cloud itself, doing this.
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
    /// Why a statement that the server writes by hand needs no right of whoever makes the request.
    ///
    /// Rows are answered by statements that [`crate::query`] compiles the caller's rights into, and by those of a
    /// [`crate::RowRight`]. Every other statement of the server, and every change that it makes as the cloud itself, names
    /// one of these. docs/security.md lists how often each is named, and a test compares.
    pub enum SystemPurpose {
        /// Who makes a request: keys, sessions and passwords, and the name of whoever has signed in.
        Credentials,
        /// The number of a row that a request names by something else (a uuid, a place in the registry), so that the right
        /// to it can be asked. Nothing of the row is answered before that.
        Lookup,
        /// What a device says of itself, once the right to change the device was found.
        Report,
        /// When devices polled, and who is late.
        Heartbeat,
        /// What a device should run, made and kept before somebody asks. It is shown to whoever has the right
        /// `read-target-state`.
        TargetState,
        /// Which replica holds the tunnel of a device.
        Presence,
        /// Devices that are told to look for a new state.
        Push,
        /// Lines that devices log: kept, counted and deleted.
        Logs,
        /// Device types, which everybody may read.
        Catalogue,
        /// SSH keys that a device lets in: those of the members of its organization.
        DeviceAccess,
        /// A device that registers, once the right to add to the fleet was found.
        Registration,
        /// Keys that are made, once the right to make them was found.
        Keys,
        /// New users, new passwords, sessions that begin and end: of the user who asks, or whom an administrator makes.
        Accounts,
        /// The invite that a token names, for the user whom it is for.
        Invitations,
        /// What administrators of the cloud do.
        Administration,
        /// The program itself: its first start, its health, commands of the operator.
        Operation,
        /// What follows from a change that somebody had the right to make (`crate::rules`), and what the cloud has from its
        /// first start on.
        Rules,
    }
}

impl SystemPurpose {
    /// A statement whose values follow, in their order.
    #[must_use]
    pub fn sql(self, text: &'static str) -> Sql {
        sql(text)
    }

    /// A statement that sea-query builds.
    #[must_use]
    pub fn statement<S: SeaQuery>(self, statement: S) -> SystemStatement<S> {
        SystemStatement(statement)
    }

    /// A text for one database, with its parameters (`?` or `$1`). Nothing that a request says may be in the text.
    #[must_use]
    pub fn text(
        self,
        text: impl Into<String>,
        values: impl IntoIterator<Item = Value>,
    ) -> BuiltStatement {
        BuiltStatement::new(text, values)
    }
}
