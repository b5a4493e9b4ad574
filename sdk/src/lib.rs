//! The SDK for plugins of the device supervisor.
//!
//! A plugin is one WebAssembly component. Its crate is a `cdylib` that calls [`plugin!`] once and has one `async fn`
//! for each route; `cargo build --profile wasm --target wasm32-wasip2` builds it. docs/plugins.md describes how to
//! grant, install and test it.
//!
//! ```
//! use supervisor_sdk::{Path, plugin};
//!
//! plugin! {
//!     routes: { GET "/v3/hello/:name" => hello }
//! }
//!
//! async fn hello(Path(name): Path<String>) -> String {
//!     format!("Hello, {name}!\n")
//! }
//! ```
//!
//! - **In**: a handler's arguments say what it needs from the request: [`Path`], [`Query`], [`Json`], [`Fields`],
//!   [`Headers`], [`Body`], [`Caller`] or the whole [`Request`]. A request that does not fit is answered with a 400
//!   that names the field, before the handler runs.
//! - **Out**: a handler returns anything that is an [`Answer`]: [`Json`], text, `()`, a [`Response`] (also a streaming
//!   one), or a `Result` of these with [`Error`] or with an error format of the plugin's own.
//! - **Capabilities**: [`device`], [`store`], [`led`], [`units`], [`journal`], [`http`], [`actions::call`] and others
//!   need a line in `capabilities` of [`plugin!`] and a grant in the device's policy; [`log`], [`config`], [`timer`]
//!   and [`caller`] do not.
//!
//! A plugin keeps nothing in memory from one call to the next: each call runs in a fresh instance. The crate compiles
//! natively too, so a plugin's pure parts can be tested with `cargo test`; there the capability modules and streams
//! panic, since no host implements them.

#![warn(missing_docs)]

// The macros and the bindings name this crate from outside; so do the tests in here.
extern crate self as supervisor_sdk;

include!("../../wit/capabilities.rs");
include!("../../wit/mirror.rs");
include!("../../wit/modules.rs");

capabilities!(modules [pub]);

mod answer;
#[doc(hidden)]
pub mod bindings;
mod body;
pub mod boot_config;
pub mod caller;
mod capability_error;
pub mod config;
mod error;
pub mod events;
mod extract;
pub mod folder;
mod handler;
mod headers;
mod json_text;
pub mod log;
pub mod os_update;
mod pairs;
mod plugin_macro;
mod request;
mod response;
pub mod timer;
mod whole_answer;

pub use answer::Answer;
pub use body::{Body, BodyWriter, ReaderLeft};
pub use caller::Caller;
pub use error::Error;
pub use extract::{Fields, FromRequest, Json, Path, Query};
pub use headers::Headers;
pub use lenient;
pub use plugin_macro::plugin;
pub use request::Request;
pub use response::Response;

/// What [`plugin!`] expands to; not to be used directly.
#[doc(hidden)]
pub mod expansion {
    pub use crate::actions::perform as own_action;
    pub use crate::boot_config::provide::BootExports;
    pub use crate::events::handle as event;
    pub use crate::handler::names::{UnknownNumber, arguments, fits};
    pub use crate::handler::{call, identify, unknown};
    pub use crate::os_update::provide::OsExports;
    pub use crate::proxy_redirector::provide::ProxyExports;
}

/// The code of the README is compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
