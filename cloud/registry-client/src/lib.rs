//! A client of image registries over the OCI distribution protocol, for command-line tools: it reads from any registry,
//! and writes to those that allow it. `fleet` copies images with it, `supervisor-plugin` pushes and pulls plugins.
//!
//! Every answer is bounded. Credentials are those that `docker login` has stored, or come from a [`TokenSource`]; they
//! are sent only to the registry that they are for, and over plain HTTP only to this machine. Image names and the
//! refusals of registries are interpreted by `registry-protocol`, which devices use as well.

#![warn(missing_docs)]

mod access;
mod answer;
mod authorization;
mod checked_blob;
mod credentials;
mod error;
mod manifest;
mod referrers;
mod repository;
mod upload;
mod wasm_artifact;

pub use access::{Access, Account, Token, TokenSource};
pub use checked_blob::CheckedBlob;
pub use error::{ErrorKind, RegistryError};
pub use manifest::{
    Blob, Content, Image, Index, IndexEntry, ListedPlatform, MANIFEST_TYPE, Manifest, sha256,
};
pub use repository::{Registries, Repository};
pub use wasm_artifact::{CONFIG_TYPE, LAYER_TYPE, WasmArtifact};
