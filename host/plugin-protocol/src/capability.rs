//! The capabilities that a manifest can ask for and a policy can grant: the rows of `wit/capabilities.rs`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The interfaces of which a component that imports one takes a row's capability.
macro_rules! imports {
    (ours $name:literal) => {
        &[concat!("platform:supervisor/", $name)]
    };
    (wasi $name:literal $imports:tt) => {
        &$imports
    };
    (policy $name:literal) => {
        &[]
    };
}

macro_rules! capabilities {
    ($(
        $(#[$doc:meta])*
        $origin:ident $capability:ident $module:ident $name:literal $([$($import:literal),*])? may $may:literal;
    )*) => {
        /// What a plugin may reach beside its own memory.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Capability {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                $capability,
            )*
        }

        impl Capability {
            /// All that there are.
            pub const ALL: &[Capability] = &[$(Capability::$capability,)*];

            /// The name in manifests and policies.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Capability::$capability => $name,)*
                }
            }

            /// What a plugin that has it may do: the end of a sentence that begins "It may".
            #[must_use]
            pub fn may(self) -> &'static str {
                match self {
                    $(Capability::$capability => $may,)*
                }
            }

            /// The interfaces that it stands for, without a version: a component that imports one has to have it, or
            /// another capability that stands for the same interface.
            #[must_use]
            pub fn imports(self) -> &'static [&'static str] {
                match self {
                    $(Capability::$capability => imports!($origin $name $([$($import),*])?),)*
                }
            }
        }
    };
}

include!("../../../wit/capabilities.rs");

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
