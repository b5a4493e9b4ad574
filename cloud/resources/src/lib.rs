//! What the fleet cloud keeps: resources, their fields and links, what is unique, and who may do what with
//! which rows (cloud behaviour 1 and 3.2). Everything else follows from it: tables and migrations, queries,
//! the checks of what is written, the description at `$metadata`, the older versions of the API and the
//! tables of docs/cloud-api.md.
//!
//! A resource is declared once, in a file of [`declared`]; a field is a line of it. This crate does nothing
//! with them: it holds no SQL beside the text of views, and reads nothing.
#![warn(missing_docs)]

mod access;
mod declared;
mod field;
mod model;
mod resource;

pub use access::{Action, Grant, Method, Methods, Permit, Role, Rows};
pub use field::{Column, Constant, Default, Field, OnDelete, Type, Writer};
pub use model::{Model, v7};
pub use resource::{Navigation, Resource, Source, Step};
