//! The data model of the fleet cloud: resources, their fields and links, uniqueness constraints, and access rights
//! (docs/spec/cloud.md#model, docs/spec/cloud.md#rights). Everything else is derived from it: tables and migrations,
//! queries, the checks of written values, the description at `$metadata`, the older versions of the API and the tables
//! of docs/cloud-api.md.
//!
//! A resource is declared once, in a file under `declared/`; a field is one line of it. This crate only declares them:
//! it contains no SQL except the text of views, and performs no I/O.
#![warn(missing_docs)]

mod access;
mod branding;
mod change;
mod check;
mod compat;
mod declared;
mod field;
mod key_scope;
mod metadata;
mod model;
mod release_version;
mod resource;
mod translated;
mod value;
mod version;

pub use access::{Action, Grant, Method, Methods, Permit, Role, Rows};
pub use branding::Branding;
pub use check::Check;
pub use field::{Column, Constant, Default, Field, Input, OnDelete, Readers, Type, Writer};
pub use key_scope::{KeyLimits, KeyScope, find_fleet_filter};
pub use model::{Model, v7};
pub use release_version::{ReleaseVersion, ReleaseVersionError, split_os_version};
pub use resource::{Navigation, Resource, Source, Step};
pub use translated::{Lookup, TranslatedWrite};
pub use value::{MAX_JSON_DEPTH, StoredValue, ValueError, moment};
pub use version::{Shape, Version};
