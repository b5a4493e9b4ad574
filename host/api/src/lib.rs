//! The device's HTTP API: [`App`] answers one request, [`serve`] connects it to sockets.
//!
//! A request passes the layers of `app` in order: access log, `request_site`, `auth`, then a core route from `routes::ROUTES` or
//! a plugin's. Handlers are those of axum: their arguments are the parts of the request that they need, and they call
//! the device once through [`Device`] or [`Endpoints`]. The state endpoints are computed from the last published
//! [`model::DeviceStatus`] and never query an engine. Only the core endpoint families are known here: all others come
//! from the manifests of plugins.

#![warn(missing_docs)]

mod access_log;
mod action_body;
mod answer;
mod app;
mod auth;
mod body;
mod bounds;
mod cached_json;
mod caller;
mod client_connection;
mod connection;
mod device;
mod events;
mod extract;
mod large_body;
mod listener;
mod listening;
mod message;
mod metrics;
mod openapi;
mod operation;
mod peer_process;
mod ping;
mod places;
mod route;
mod routes;
mod serve;
mod service_keys;
mod services;
mod socket;
mod state;
mod unread;
mod v1;
mod v2;
mod v3;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use app::App;
pub use axum::body::Body;
pub use bounds::GRACE;
pub use caller::Requester;
pub use device::{Device, EndpointMatch, Endpoints, Facts, PluginUpload};
pub use events::Events;
pub use listener::{KeylessAccess, Listener, LocalModeAuth, LocalModeProcesses};
pub use listening::{ListenSwitch, Pause};
pub use message::{Request, Response};
pub use route::Route;
pub use routes::core_routes;
pub use serve::serve;
pub use service_keys::ServiceKeys;
pub use state::Settings;
pub use v1::device::write as device_state_json;
