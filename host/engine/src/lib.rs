//! Where services run: the [`Engine`] trait, its two implementations, and [`Engines`], the set that a
//! device has.
//!
//! An engine lists its objects and carries out single steps. It makes no decisions, remembers
//! nothing that it could observe, and touches only objects of this device (see [`Ownership`]).

#![warn(missing_docs)]

mod disk;
pub mod docker;
mod engine;
mod engines;
mod error;
mod image_kind;
pub mod registry;
pub mod wasm;

pub use disk::{Disk, RESERVE};
pub use engine::{
    ConfinedService, ContainerSpec, Containers, CreatedContainer, Engine, EngineEvent, EngineInfo,
    Images, LogLine, LogsFrom, NetworkSpec, Networks, Ownership, PullProgress, RegistryAuth,
    VolumeSpec, Volumes,
};
pub use engines::Engines;
pub use error::EngineError;
pub use image_kind::{WASM_CONFIG_MEDIA_TYPE, ask as kind_of};
