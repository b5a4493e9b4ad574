//! The host's name: read from the host's own file, and set both in the device's `config.json`, from
//! which an image of the operating system reads it at its start, and in the running system.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use futures::FutureExt;
use futures::future::BoxFuture;
use os::{Action, OsError};
use plugins::HostNameError;
use serde_json::Value;

use crate::host::Host;

/// The key of `config.json`.
const KEY: &str = "hostname";
/// The maximum number of bytes that are read of the file; a name has at most 64.
const SIZE: u64 = 4096;

/// The name of the host below one root folder.
pub(crate) struct HostName {
    file: PathBuf,
    host: Host,
    /// Allows one renaming at a time: one that fails restores the name that it has found.
    renaming: Arc<tokio::sync::Mutex<()>>,
}

impl HostName {
    pub(crate) fn new(host_root: &Path, host: &Host) -> Self {
        HostName {
            file: host_root.join("etc/hostname"),
            host: host.clone(),
            renaming: Arc::default(),
        }
    }
}

impl Host {
    /// Renames the host. `config.json` comes first: a host that loses power in between gets the name at its next start.
    /// If the running system refuses the name, the previous one is restored in `config.json`.
    async fn rename(&self, name: String) -> anyhow::Result<()> {
        let (config, new_name) = (self.config_json.clone(), name.clone());
        let update = move |value: Option<Value>| {
            config.update(|map| match value {
                Some(value) => map.insert(KEY.to_owned(), value),
                None => map.remove(KEY),
            })
        };
        let (update, before) = tokio::task::spawn_blocking(move || {
            let before = update(Some(Value::String(new_name)));
            (update, before)
        })
        .await?;
        let before = before?;
        let named = self.os.act(Action::SetHostName(name)).await;
        if named.is_err() {
            let undone = tokio::task::spawn_blocking(move || update(before)).await?;
            undone.context("failed to restore the host's name in `config.json`")?;
        }
        Ok(named?)
    }
}

impl plugins::HostName for HostName {
    fn get(&self) -> BoxFuture<'_, Result<Option<String>, HostNameError>> {
        let file = self.file.clone();
        async move {
            let path = file.display().to_string();
            let read = tokio::task::spawn_blocking(move || read(&file)).await;
            let read = read.map_err(|error| HostNameError::Other(error.to_string()))?;
            read.map_err(|error| HostNameError::Other(format!("failed to read `{path}`: {error}")))
        }
        .boxed()
    }

    fn set(&self, name: String) -> BoxFuture<'_, Result<(), HostNameError>> {
        async move {
            // Otherwise an invalid name would stay in `config.json` if the power fails before the system refuses it.
            os::check_host_name(&name).map_err(|error| host_name_error(&error.into()))?;
            let one_at_a_time = Arc::clone(&self.renaming).lock_owned().await;
            let host = self.host.clone();
            // Goes on if the caller leaves, or `config.json` could keep a name that the system has refused.
            let renamed = tokio::spawn(async move {
                let _one_at_a_time = one_at_a_time;
                host.rename(name).await
            });
            let renamed = renamed.await.unwrap_or_else(|error| Err(error.into()));
            renamed.map_err(|error| host_name_error(&error))
        }
        .boxed()
    }
}

fn host_name_error(error: &anyhow::Error) -> HostNameError {
    let text = format!("{error:#}");
    match error.downcast_ref() {
        Some(OsError::InvalidHostName(_)) => HostNameError::Invalid(text),
        _ => HostNameError::Other(text),
    }
}

fn read(file: &Path) -> io::Result<Option<String>> {
    let file = match File::open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut name = String::new();
    file.take(SIZE).read_to_string(&mut name)?;
    let name = name.trim();
    Ok((!name.is_empty()).then(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;
    use std::time::Duration;

    use os::{ConfigJson, DBus, HostOs, MethodCall, MethodError, Rehearsal, UnitName, UnitState};
    use plugins::HostName as _;
    use serde_json::json;

    use super::*;

    fn host_name(root: &Path, os: Arc<dyn HostOs>) -> HostName {
        let config_json = ConfigJson::open(root.join("config.json"));
        let journal = os::Journal::new("journalctl", root);
        let host = Host {
            os,
            config_json,
            journal,
        };
        HostName::new(root, &host)
    }

    #[tokio::test]
    async fn a_name_is_set_in_the_system_and_in_config_json_where_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let name = host_name(root.path(), Arc::new(Rehearsal::new(root.path())));
        assert_eq!(name.get().await.unwrap(), None);
        let config = root.path().join("config.json");
        fs::write(&config, r#"{"hostname":"before","uuid":"7"}"#).unwrap();
        name.set("gate-1".to_owned()).await.unwrap();
        assert_eq!(name.get().await.unwrap().as_deref(), Some("gate-1"));
        let read = |path| serde_json::from_slice::<Value>(&fs::read(path).unwrap()).unwrap();
        assert_eq!(read(&config), json!({"hostname": "gate-1", "uuid": "7"}));
    }

    #[tokio::test]
    async fn an_invalid_host_name_never_reaches_config_json() {
        let root = tempfile::tempdir().unwrap();
        let name = host_name(root.path(), Arc::new(Rehearsal::new(root.path())));
        let config = root.path().join("config.json");
        fs::write(&config, r#"{"hostname":"gate-1"}"#).unwrap();
        // It is replaced with each change, also with one that is undone.
        let file = || fs::metadata(&config).unwrap().ino();
        let before = file();
        for wrong in [
            "gate 2".to_owned(),
            "a\nb".to_owned(),
            "a".repeat(900 << 10),
        ] {
            let refused = name.set(wrong).await.unwrap_err();
            assert!(matches!(refused, HostNameError::Invalid(_)), "{refused}");
            assert_eq!(file(), before);
        }
        name.set("gate-2".to_owned()).await.unwrap();
        assert_ne!(file(), before);
    }

    /// A system that refuses names, as soon as a test lets it.
    struct RefusingOs {
        others: Rehearsal,
        refuses: tokio::sync::Semaphore,
    }

    impl HostOs for RefusingOs {
        fn describe(&self) -> String {
            self.others.describe()
        }

        fn act(&self, action: Action) -> BoxFuture<'_, Result<(), OsError>> {
            async move {
                let _ = self.refuses.acquire().await;
                Err(OsError::Refused {
                    call: format!("{action:?}"),
                    name: "org.acme.Error".to_owned(),
                    message: "not now".to_owned(),
                })
            }
            .boxed()
        }

        fn unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<UnitState, OsError>> {
            self.others.unit(unit)
        }

        fn call_method<'a>(
            &'a self,
            call: &'a MethodCall,
        ) -> BoxFuture<'a, Result<String, MethodError>> {
            self.others.call_method(call)
        }
    }

    #[tokio::test]
    async fn a_refused_name_is_undone_although_its_caller_has_left() {
        let root = tempfile::tempdir().unwrap();
        let os = Arc::new(RefusingOs {
            others: Rehearsal::new(root.path()),
            refuses: tokio::sync::Semaphore::new(0),
        });
        let name = host_name(root.path(), os.clone());
        let config = ConfigJson::open(root.path().join("config.json"));
        let until_named = async |expected: Option<&str>| {
            let expected = expected.map(|name| json!(name));
            let named = async {
                while config.get("hostname").unwrap() != expected {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(Duration::from_secs(30), named)
                .await
                .unwrap();
        };
        let setting = name.set("gate-1".to_owned());
        tokio::select! {
            set = setting => panic!("{set:?}"),
            () = until_named(Some("gate-1")) => {}
        }
        os.refuses.add_permits(1);
        until_named(None).await;
        // One that fails does not restore what the other has set.
        let both = [name.set("gate-2".to_owned()), name.set("gate-3".to_owned())];
        for set in futures::future::join_all(both).await {
            assert!(matches!(set, Err(HostNameError::Other(_))), "{set:?}");
        }
        assert_eq!(config.get("hostname").unwrap(), None);
    }

    #[tokio::test]
    async fn a_system_that_does_not_take_the_name_leaves_all_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let nowhere = format!("unix:path={}", root.path().join("no-bus").display());
        let name = host_name(root.path(), Arc::new(DBus::connect(&nowhere)));
        let refused = name.set("gate-1".to_owned()).await.unwrap_err();
        assert!(matches!(refused, HostNameError::Other(_)), "{refused}");
        let config = ConfigJson::open(root.path().join("config.json"));
        assert_eq!(config.get("hostname").unwrap(), None);
    }
}
