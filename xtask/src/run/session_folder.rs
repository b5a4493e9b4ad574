//! The folder in which a session of `cargo xtask run` stores its data for the next one: the device's state and its
//! `config.json`, the cloud's database, the registry's images, and information that only the session has about them.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use held_port::HeldPort;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::engine_choice::Engine;
use super::registry::ImagesIn;

/// The file with the session's information.
const RECORD: &str = "session.json";

/// The session's folder and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionFolder {
    pub(super) folder: PathBuf,
}

/// Information about this session's cloud that the next session needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    /// The address of the registry, which is part of the images' names.
    pub(super) registry: SocketAddr,
    /// The device's engine, for which the fleet's releases are built.
    pub(super) engine: String,
    /// The fleet, once it exists.
    #[serde(flatten)]
    pub(super) fleet: Option<SampleFleet>,
}

/// The fleet in the cloud.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SampleFleet {
    #[serde(rename = "fleet")]
    pub(super) id: i64,
    /// The key that its devices register with.
    #[serde(rename = "provisioningKey")]
    pub(super) key: String,
}

impl SessionFolder {
    /// Returns the supervisor's folder.
    pub(super) fn device(&self) -> PathBuf {
        self.folder.join("device")
    }

    /// Returns the root of the host's file system as the device sees it, with its `config.json`.
    pub(super) fn host_root(&self) -> PathBuf {
        self.folder.join("host")
    }

    pub(super) fn device_config(&self) -> PathBuf {
        self.host_root().join("mnt/boot/config.json")
    }

    /// Returns the cloud's database, in the form of the cloud's argument.
    pub(super) fn database(&self) -> String {
        format!("sqlite:{}", self.folder.join("cloud.sqlite").display())
    }

    pub(super) fn registry(&self) -> PathBuf {
        self.folder.join("registry")
    }

    /// Returns the previous session, or the initial values of a new one.
    ///
    /// # Errors
    /// If the previous session cannot be continued like this.
    pub(super) fn session(&self, engine: &Engine) -> Result<Session> {
        let file = self.folder.join(RECORD);
        let Ok(text) = fs::read_to_string(&file) else {
            return Ok(Session {
                registry: HeldPort::new()?.keep(),
                engine: engine.name().to_owned(),
                fleet: None,
            });
        };
        let session: Session = serde_json::from_str(&text).with_context(|| {
            format!(
                "`{}` cannot be read; remove `{}` to start afresh",
                file.display(),
                self.folder.display()
            )
        })?;
        if session.engine != engine.name() {
            bail!(
                "the releases in `{}` are for the engine {}, but the device would have {}: use `--engine {1}` or another `--state-dir`",
                self.folder.display(),
                session.engine,
                engine.name()
            );
        }
        let held = HeldPort::at(session.registry).with_context(|| {
            format!(
                "the registry in `{}` must be at {}, which is part of the names of its images; stop what uses that address",
                self.folder.display(),
                session.registry
            )
        })?;
        held.keep();
        Ok(session)
    }

    /// Stores the session for the next one. The file contains a key.
    pub(super) fn keep(&self, session: &Session) -> Result<()> {
        let file = self.folder.join(RECORD);
        let text = serde_json::to_string(session)?;
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&file)
            .and_then(|mut open| open.write_all(text.as_bytes()));
        written.with_context(|| format!("failed to write `{}`", file.display()))
    }

    /// Writes the current address of the cloud into the device's `config.json`; the device manages the rest of it.
    pub(super) fn point_device_at(&self, url: &str, registry: &ImagesIn) -> Result<()> {
        change_config(&self.device_config(), |config| {
            config["apiEndpoint"] = json!(url);
            config["registryEndpoint"] = json!(registry.to_string());
        })
    }
}

fn change_config(file: &Path, change: impl FnOnce(&mut Value)) -> Result<()> {
    let failed = || format!("failed to change `{}`", file.display());
    let text = fs::read_to_string(file).with_context(failed)?;
    let mut config: Value = serde_json::from_str(&text).with_context(failed)?;
    change(&mut config);
    fs::write(file, config.to_string()).with_context(failed)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn kept(folder: &tempfile::TempDir) -> SessionFolder {
        SessionFolder {
            folder: folder.path().to_owned(),
        }
    }

    #[test]
    fn the_next_session_goes_on_with_the_registry_and_the_fleet_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut session = kept(&folder).session(&Engine::Wasm).unwrap();
        assert_eq!(session.fleet, None);
        session.fleet = Some(SampleFleet {
            id: 7,
            key: "key".into(),
        });
        kept(&folder).keep(&session).unwrap();
        assert_eq!(kept(&folder).session(&Engine::Wasm).unwrap(), session);
    }

    #[test]
    fn a_session_that_cannot_go_on_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let session = kept(&folder).session(&Engine::Wasm).unwrap();
        kept(&folder).keep(&session).unwrap();
        let why = |engine: &Engine| format!("{:#}", kept(&folder).session(engine).unwrap_err());
        assert!(why(&Engine::Docker("unix:///x".into())).contains("--engine wasm"));
        let _taken = TcpListener::bind(session.registry).unwrap();
        assert!(why(&Engine::Wasm).contains(&session.registry.to_string()));
        fs::write(folder.path().join(RECORD), "nonsense").unwrap();
        assert!(why(&Engine::Wasm).contains("to start afresh"));
    }

    #[test]
    fn a_device_that_has_joined_stays_who_it_is_where_the_cloud_has_another_address() {
        let folder = tempfile::tempdir().unwrap();
        let kept = kept(&folder);
        fs::create_dir_all(kept.host_root().join("mnt/boot")).unwrap();
        fs::write(
            kept.device_config(),
            r#"{"uuid":"ab","apiEndpoint":"http://127.0.0.1:1"}"#,
        )
        .unwrap();
        let registry = ImagesIn::Named("127.0.0.1:2".into());
        kept.point_device_at("http://127.0.0.1:3", &registry)
            .unwrap();
        let config: Value =
            serde_json::from_str(&fs::read_to_string(kept.device_config()).unwrap()).unwrap();
        assert_eq!(
            config,
            json!({ "uuid": "ab", "apiEndpoint": "http://127.0.0.1:3", "registryEndpoint": "127.0.0.1:2" })
        );
    }
}
