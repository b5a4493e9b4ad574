//! Code shared by the server of the cloud and its dashboard: who may make a request, how devices are reached, and how
//! replicas communicate. It contains no address of the API and no page.
//!
//! ```text
//! cloud ─┬─ auth       the caller (session token or key, cached for minutes), and how often it calls
//!        ├─ tunnels    tunnels of devices, requests to them, and push
//!        ├─ logs       log lines of devices, kept and followed
//!        └─ bus        messages and requests between replicas
//! accounts             passwords, sessions, keys: all operations on them
//! answer               refusals, in the format of each family of addresses
//! ```

pub mod accounts;
pub mod answer;
pub mod auth;
pub mod body;
pub mod bus;
pub mod charge;
pub mod clock;
pub mod cloud;
pub mod concurrency;
pub mod configuration;
pub mod credential;
pub mod device;
pub mod download_config;
pub mod generation;
pub mod lease;
pub mod limits;
pub mod logs;
pub mod password;
pub mod pools;
pub mod public_url;
pub mod random;
mod rights;
pub mod session;
pub mod tunnels;
mod unreadable;
