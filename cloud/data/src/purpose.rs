//! What the cloud does for itself, and so by no caller's rights.

use sea_query::Value;

use crate::query::Caller;
use crate::statement::{BuiltStatement, SeaQuery, Sql, sql};

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

/// A statement of the server's own; see [`SystemPurpose::statement`].
#[derive(Debug, Clone)]
pub struct SystemStatement<S>(pub(crate) S);
