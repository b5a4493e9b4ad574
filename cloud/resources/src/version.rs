//! The versions of the API.

use std::sync::LazyLock;

use strum::{Display, EnumString, VariantArray};

use crate::compat::{V5, V6};
use crate::model::Model;

/// A version of the API, which is the first part of a path.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, Display, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum Version {
    /// Answers as version 5.
    V1,
    /// Answers as version 5.
    V2,
    /// Answers as version 5.
    V3,
    /// Answers as version 5.
    V4,
    /// From before organizations, with names of boards in place of links.
    V5,
    /// With a device's pin named `should_be_running__release`.
    V6,
    /// The current one.
    V7,
}

/// The form of a version's responses, apart from their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Rows have `__metadata`, and unexpanded links `__deferred`, regardless of `$format`.
    pub addressed: bool,
    /// A success without content is answered with `"OK"`; otherwise the body is empty.
    pub says_ok: bool,
    /// Unknown names in `$select` and `$expand` are ignored; otherwise they are refused.
    pub lenient: bool,
    /// The status if a row would violate a uniqueness constraint.
    pub conflict: u16,
}

impl Version {
    /// Returns the first part of its paths: `/v7`.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Version::V1 => "/v1",
            Version::V2 => "/v2",
            Version::V3 => "/v3",
            Version::V4 => "/v4",
            Version::V5 => "/v5",
            Version::V6 => "/v6",
            Version::V7 => "/v7",
        }
    }

    /// Returns its resources.
    #[must_use]
    pub fn model(self) -> &'static Model {
        static OLDER: LazyLock<Model> = LazyLock::new(|| Version::V6.model().changed(V5));
        static SIXTH: LazyLock<Model> = LazyLock::new(|| crate::v7().changed(V6));
        match self {
            Version::V7 => crate::v7(),
            Version::V6 => &SIXTH,
            _ => &OLDER,
        }
    }

    /// Returns the form of its responses.
    #[must_use]
    pub const fn shape(self) -> Shape {
        let current = matches!(self, Version::V7);
        Shape {
            addressed: !current,
            says_ok: !current,
            lenient: !current,
            conflict: match self {
                Version::V6 | Version::V7 => 409,
                _ => 400,
            },
        }
    }
}
