//! Services in containers of a Docker engine, over its HTTP API.
//!
//! The supervisor creates one [`Docker`] and uses it through [`Engine`]. Each request opens its own
//! connection and only the negotiated version is remembered, so an engine that was restarted or
//! upgraded is noticed at the next request. [`Docker`] never starts an engine, and never touches
//! objects outside its [`Ownership`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use model::EngineKind;

use crate::{Disk, Engine, EngineError, EngineEvent, EngineInfo, Ownership};

mod connect;
mod containers;
mod create_request;
mod events;
mod images;
mod joins;
mod log_lines;
mod logs;
mod networks;
mod pull_progress;
mod room;
mod volumes;

use connect::Connection;

/// The default address of an engine.
pub const DEFAULT_URI: &str = "unix:///var/run/docker.sock";

/// How long a pull may continue without a byte of progress before it is given up, to be tried
/// again. An engine reports each half mebibyte, which can take minutes over a bad mobile
/// connection.
const PULL_PATIENCE: Duration = Duration::from_secs(600);

/// One Docker engine. Cheap to clone.
#[derive(Clone)]
pub struct Docker {
    connection: Arc<Connection>,
    ownership: Arc<Ownership>,
    pull_patience: Duration,
    disk: Disk,
    /// The root of the host's file system as this process sees it.
    host_root: PathBuf,
    /// Whether it was logged that the engine's folder is not visible from here.
    root_was_logged: Arc<AtomicBool>,
}

impl Docker {
    /// Accepts `unix:///path`, `tcp://host:port` or `http://host:port`. Sends nothing yet: call
    /// [`Engine::info`] to find out whether the engine answers.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if `uri` is none of these.
    pub fn connect(uri: &str, ownership: Ownership) -> Result<Self, EngineError> {
        Ok(Docker {
            connection: Arc::new(Connection::to(uri)?),
            ownership: Arc::new(ownership),
            pull_patience: PULL_PATIENCE,
            disk: Disk::default(),
            host_root: "/".into(),
            root_was_logged: Arc::default(),
        })
    }

    /// Gives up a pull after this long without progress, instead of after ten minutes.
    #[must_use]
    pub fn with_pull_patience(mut self, patience: Duration) -> Self {
        self.pull_patience = patience;
        self
    }

    /// Looks for the engine's folder below this root of the host as well, to determine the free
    /// space there.
    #[must_use]
    pub fn with_host_root(mut self, host_root: impl Into<PathBuf>) -> Self {
        self.host_root = host_root.into();
        self
    }

    /// Uses this disk to determine the free space, instead of asking the operating system.
    #[must_use]
    pub fn with_disk(mut self, disk: Disk) -> Self {
        self.disk = disk;
        self
    }
}

#[async_trait]
impl Engine for Docker {
    fn kind(&self) -> EngineKind {
        EngineKind::Docker
    }

    async fn info(&self) -> Result<EngineInfo, EngineError> {
        self.connection.info().await
    }

    async fn events(&self) -> Result<BoxStream<'static, EngineEvent>, EngineError> {
        events::follow_owned(&self.connection, &self.ownership).await
    }
}

impl Docker {
    /// Returns the client for the negotiated version.
    async fn api(&self) -> Result<bollard::Docker, EngineError> {
        Ok(self.connection.client().await?.api)
    }

    /// Translates a failure of the engine, or of the connection to it, for our caller.
    fn failed(&self, action: impl Into<String>, error: bollard::errors::Error) -> EngineError {
        self.connection.failed(action, error)
    }

    /// Returns whether an object with these labels is ours.
    fn covers(&self, labels: Option<HashMap<String, String>>) -> bool {
        let labels = labels.unwrap_or_default().into_iter().collect();
        self.ownership.covers(&labels)
    }

    /// Returns the filter that makes the engine list our objects; whether they are ours is checked again.
    fn ours(&self) -> Filters {
        Filters::from([("label".to_owned(), self.ownership.labels())])
    }
}

/// Docker's filters: all keys must match, each with any of its values, except labels, which must
/// all match.
type Filters = HashMap<String, Vec<String>>;

/// Checks a text that becomes part of a request's path: it may contain only characters of object
/// names, so no name can reach another resource.
fn path_part<'a>(what: &str, name: &'a str) -> Result<&'a str, EngineError> {
    let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
    if plain {
        Ok(name)
    } else {
        Err(EngineError::Invalid(format!(
            "`{name}` is not a {what} (letters, digits, `_`, `.` and `-`, beginning with a letter or digit)"
        )))
    }
}
