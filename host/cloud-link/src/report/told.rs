//! What the cloud has taken of the device's state, over a restart of the supervisor and not over a reboot.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// The longest file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// What was taken, and where that is kept.
pub(super) struct Told {
    /// None where it is in memory alone.
    path: Option<PathBuf>,
    uuid: String,
    fields: Map<String, Value>,
}

impl Told {
    /// What the file at `path` says of this device; nothing where it says something else, or nothing that can
    /// be read: then the cloud is told all once more.
    pub(super) async fn read(path: Option<PathBuf>, uuid: &str) -> Told {
        let mut fields = Map::new();
        if let Some(from) = path.clone() {
            let of = uuid.to_owned();
            let read = tokio::task::spawn_blocking(move || read(&from, &of));
            fields = read.await.ok().flatten().unwrap_or_default();
        }
        Told {
            path,
            uuid: uuid.to_owned(),
            fields,
        }
    }

    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The cloud has these as well.
    pub(super) async fn take(&mut self, changes: Map<String, Value>) {
        self.fields.extend(changes);
        let Some(path) = &self.path else { return };
        let text = json!({ self.uuid.as_str(): self.fields }).to_string();
        let to = path.clone();
        let written = tokio::task::spawn_blocking(move || write(&to, &text)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "failed to write `{}`", path.display());
        }
    }
}

fn read(path: &Path, uuid: &str) -> Option<Map<String, Value>> {
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    let mut held: Map<String, Value> = serde_json::from_slice(&text).ok()?;
    match held.remove(uuid)? {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

/// In one step, and for its owner alone: the key of the API is in it.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    options.open(&beside)?.write_all(text.as_bytes())?;
    fs::rename(beside, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn what_was_taken_is_read_back_by_the_same_device_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/state-report-cache");
        let mut told = Told::read(Some(path.clone()), "one").await;
        assert!(told.fields().is_empty());
        let fields = |value: Value| value.as_object().unwrap().clone();
        told.take(fields(json!({ "a": 1, "b": 2 }))).await;
        told.take(fields(json!({ "b": 3 }))).await;
        let same = Told::read(Some(path.clone()), "one").await;
        assert_eq!(Value::Object(same.fields), json!({ "a": 1, "b": 3 }));
        assert!(
            Told::read(Some(path.clone()), "other")
                .await
                .fields()
                .is_empty()
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        for damaged in ["", "[]", "{\"one\":1}", "{\"one\":"] {
            fs::write(&path, damaged).unwrap();
            assert!(
                Told::read(Some(path.clone()), "one")
                    .await
                    .fields()
                    .is_empty()
            );
        }
    }
}
