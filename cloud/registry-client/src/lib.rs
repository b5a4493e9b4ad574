//! A client of image registries over the OCI distribution protocol, for people's command lines: it reads from any
//! registry and writes to those that let it. `fleet` copies images with it, `supervisor-plugin` pushes and pulls plugins.
//!
//! Every answer has a bound. Credentials are those that `docker login` has stored, or come from a [`TokenSource`]; they
//! are sent to the registry that they are for and to no other, and over plain HTTP to this machine alone. What names and
//! refusals of registries mean is in `registry-protocol`, which devices use as well.

#![warn(missing_docs)]

mod access;
mod answer;
mod checked_blob;
mod credentials;
mod error;
mod manifest;
mod referrers;
mod repository;
mod wasm_artifact;

pub use access::{Access, Account, Token, TokenSource};
pub use checked_blob::CheckedBlob;
pub use error::{ErrorKind, RegistryError};
pub use manifest::{
    Blob, Content, Image, Index, IndexEntry, ListedPlatform, MANIFEST_TYPE, Manifest, sha256,
};
pub use repository::{Registries, Repository};
pub use wasm_artifact::{CONFIG_TYPE, LAYER_TYPE, WasmArtifact};
