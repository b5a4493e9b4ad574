//! Folders that this process can trust, although others write beside them.
//!
//! A path is looked up anew each time it is used, and whoever may write into one of its folders decides what it
//! names by then. A [`SecureDir`] is looked up once: the folder is opened without following a link, its owner and
//! mode are checked on the descriptor, and everything in it is reached from that descriptor by a single name. What
//! has another owner, or can be written by others, is refused ([`DirError`]), or moved away where the folder stands
//! in one that everybody writes into, such as `/tmp`.

#![warn(missing_docs)]

mod dir;
mod entry;
mod error;

pub use dir::{Access, SecureDir};
pub use entry::{SecureFile, random_hex, read_bounded, read_dir_names};
pub use error::DirError;

#[cfg(test)]
mod tests;
