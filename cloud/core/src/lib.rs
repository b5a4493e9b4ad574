//! What the server of the cloud and its dashboard share: who may make a request, how devices are reached, and what
//! replicas tell each other. It knows no address of the API and no page.
//!
//! ```text
//! cloud ─┬─ auth       who asks (session token or key, remembered for minutes), and how often
//!        ├─ tunnels    tunnels of devices, requests to them, and push
//!        ├─ logs       log lines of devices, kept and followed
//!        └─ bus        what replicas tell and ask each other
//! accounts             passwords, sessions, keys: what is done with them, by whichever door
//! answer               refusals, as every family of addresses gives them
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
