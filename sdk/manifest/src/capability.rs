//! The capabilities that a manifest can ask for and a policy can grant: the rows of `wit/capabilities.rs`.

use std::sync::LazyLock;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The interfaces of a row: a component that imports one of them needs the row's capability.
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

macro_rules! capability_enum {
    ($(
        $(#[$doc:meta])*
        $origin:ident $capability:ident $module:ident $name:literal $([$($import:literal),*])? may $may:literal;
    )*) => {
        /// Something outside its own memory that a plugin may use, by its name in manifests and policies.
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
            /// Returns what a plugin with this capability may do: the end of a sentence that begins with "It may".
            #[must_use]
            pub fn may(self) -> &'static str {
                match self {
                    $(Capability::$capability => $may,)*
                }
            }

            /// Returns the interfaces that belong to the capability, without a version: a component that imports one
            /// of them needs this capability, or another one that has the same interface.
            #[must_use]
            pub fn imports(self) -> &'static [&'static str] {
                match self {
                    $(Capability::$capability => imports!($origin $name $([$($import),*])?),)*
                }
            }

            /// Returns all capabilities.
            #[must_use]
            pub fn all() -> &'static [Capability] {
                Capability::VARIANTS
            }

            /// Returns whether a manifest can ask for it. A capability without interfaces is only for policies.
            #[must_use]
            pub fn is_for_manifests(self) -> bool {
                !self.imports().is_empty()
            }

            /// Returns the error for an author whose manifest names it although it is only for policies.
            #[must_use]
            pub fn only_from_policy(self) -> String {
                format!("only a policy gives `{self}`: leave it out here")
            }
        }
    };
}

include!("../../../wit/capabilities.rs");
capabilities!(capability_enum);

/// The names of the capabilities that a manifest can ask for.
static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let all = Capability::all().iter();
    let needed = all.filter(|capability| capability.is_for_manifests());
    needed.map(|capability| (*capability).into()).collect()
});

/// A capability that an author asks for. Those that are only for policies are an error, and an error about another name
/// does not offer them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeededCapability(pub Capability);

impl<'de> Deserialize<'de> for NeededCapability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.parse::<Capability>() {
            Ok(capability) if capability.is_for_manifests() => Ok(NeededCapability(capability)),
            Ok(capability) => Err(D::Error::custom(capability.only_from_policy())),
            Err(_) => Err(D::Error::unknown_variant(&name, &NAMES)),
        }
    }
}
