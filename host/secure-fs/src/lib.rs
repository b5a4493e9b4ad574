//! Folders that this process can trust, although others can write next to them.
//!
//! A path is looked up again each time it is used, and whoever may write to one of its folders decides what it
//! refers to by then. A [`SecureDir`] is looked up once: the folder is opened without following a link, its owner
//! and mode are checked on the descriptor, and everything in it is reached from that descriptor by a single name. A
//! folder that has another owner, or that others can write to, is refused ([`DirError`]), or moved away if it is in
//! a folder that everybody can write to, such as `/tmp`.

#![warn(missing_docs)]

mod dir;
mod entry;
mod error;
mod location;
mod name;

pub use dir::{Access, SecureDir};
pub use entry::{SecureFile, read_beginning, read_bounded, read_dir_names};
pub use error::DirError;
pub use location::{LocationError, check_location};
pub use name::random_hex;

#[cfg(test)]
mod tests;
