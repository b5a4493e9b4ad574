//! The capabilities that a manifest can ask for and a policy can grant: the rows of `wit/capabilities.rs`.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The interfaces of which a component that imports one takes a row's capability.
macro_rules! imports {
    (ours $name:literal $([$($import:literal),*])?) => {
        &[concat!("platform:supervisor/", $name) $($(, $import)*)?]
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
        /// What a plugin may reach beside its own memory, by its name in manifests and policies.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(Display, IntoStaticStr, EnumString, VariantArray)]
        pub enum Capability {
            $(
                $(#[$doc])*
                #[serde(rename = $name)]
                #[strum(serialize = $name)]
                $capability,
            )*
        }

        impl Capability {
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

            /// All of them.
            #[must_use]
            pub fn all() -> &'static [Capability] {
                Capability::VARIANTS
            }

            /// Whether a manifest can ask for it. What stands for no interface is for policies alone.
            #[must_use]
            pub fn is_for_manifests(self) -> bool {
                !self.imports().is_empty()
            }
        }
    };
}

include!("../../../wit/capabilities.rs");
