//! The state that the cloud has accepted, kept through a restart of the supervisor but not through a reboot.

use std::io;

use secure_fs::SecureFile;
use serde_json::{Map, Value, json};

/// The longest file that is read, in bytes.
const LONGEST: u64 = 4 << 20;

/// The accepted state, and its file.
pub(super) struct ReportCache {
    /// `None` if it is only in memory. The file contains the key of the API.
    file: Option<SecureFile>,
    uuid: String,
    fields: Map<String, Value>,
}

impl ReportCache {
    /// Reads this device's state from `file`; empty if that is of another device or unreadable: then everything is
    /// reported again.
    pub(super) async fn read(file: Option<SecureFile>, uuid: &str) -> ReportCache {
        let mut fields = Map::new();
        if let Some(from) = file.clone() {
            let of = uuid.to_owned();
            let read = tokio::task::spawn_blocking(move || read(&from, &of));
            fields = read.await.ok().flatten().unwrap_or_default();
        }
        ReportCache {
            file,
            uuid: uuid.to_owned(),
            fields,
        }
    }

    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Adds changes that the cloud has accepted.
    pub(super) async fn take(&mut self, changes: Map<String, Value>) {
        self.fields.extend(changes);
        let Some(file) = &self.file else { return };
        let text = json!({ self.uuid.as_str(): self.fields }).to_string();
        let to = file.clone();
        let writing = move || -> io::Result<()> { to.replace(text.as_bytes()) };
        if let Ok(Err(error)) = tokio::task::spawn_blocking(writing).await {
            tracing::warn!(
                %error,
                path = %file.path().display(),
                "failed to write `{}`",
                file.path().display()
            );
        }
    }
}

fn read(file: &SecureFile, uuid: &str) -> Option<Map<String, Value>> {
    let text = file.read(LONGEST).ok()??;
    let mut by_uuid: Map<String, Value> = serde_json::from_slice(&text).ok()?;
    match by_uuid.remove(uuid)? {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use secure_fs::{Access, SecureDir};

    use super::*;

    #[tokio::test]
    async fn only_the_same_device_reads_its_accepted_report_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/state-report-cache");
        let run = SecureDir::open(&folder.path().join("a"), Access::Private).unwrap();
        let file = run.file("state-report-cache");
        let mut cache = ReportCache::read(Some(file.clone()), "one").await;
        assert!(cache.fields().is_empty());
        let fields = |value: Value| value.as_object().unwrap().clone();
        cache.take(fields(json!({ "a": 1, "b": 2 }))).await;
        cache.take(fields(json!({ "b": 3 }))).await;
        let same = ReportCache::read(Some(file.clone()), "one").await;
        assert_eq!(Value::Object(same.fields), json!({ "a": 1, "b": 3 }));
        assert!(
            ReportCache::read(Some(file.clone()), "other")
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
                ReportCache::read(Some(file.clone()), "one")
                    .await
                    .fields()
                    .is_empty()
            );
        }
    }
}
