//! The mounts of a service: volumes, memory and devices. Compose files may not name folders of the
//! host; the supervisor adds its own.

use std::collections::BTreeMap;

use serde_json::Value;

use super::reader::{Reader, scalar};
use crate::ids::is_name;
use crate::{AppId, DeviceMapping, Mount};

/// Returns the engine's name of a volume of an app (docs/spec/device.md#compose-volumes).
pub(super) fn volume_name(app: AppId, name: &str) -> String {
    format!("{app}_{name}")
}

/// Returns the volumes and memory that a service mounts, and the release's names of its volumes.
pub(super) fn volumes(reader: &mut Reader<'_>, app: AppId) -> (Vec<Mount>, Vec<String>) {
    let mut table = MountTable::default();
    match reader.take("volumes") {
        None => {}
        Some(Value::Array(items)) => {
            for item in items {
                match item {
                    Value::Object(fields) => {
                        reader.within("volumes", fields, |long| long_form(long, item))
                    }
                    other => match scalar(other) {
                        Some(text) => short_form(reader, &text),
                        None => {
                            reader.problem("volumes", other, EXPECTED);
                            None
                        }
                    },
                }
                .into_iter()
                .for_each(|mount| table.add(reader, app, mount));
            }
        }
        Some(other) => reader.problem("volumes", other, "a list of mounts"),
    }
    (table.mounts.into_values().collect(), table.names)
}

const EXPECTED: &str = "a mount `[volume:]/path[:ro]` or its long form";

#[derive(Default)]
struct MountTable {
    /// By target: of two mounts at one path the last one counts, as in compose.
    mounts: BTreeMap<String, Mount>,
    names: Vec<String>,
}

impl MountTable {
    fn add(&mut self, reader: &mut Reader<'_>, app: AppId, mount: Mount) {
        let mount = match mount {
            Mount::Volume {
                source,
                target,
                read_only,
            } => {
                let engine_name = volume_name(app, &source);
                self.names.push(source);
                Mount::Volume {
                    source: engine_name,
                    target,
                    read_only,
                }
            }
            other => other,
        };
        let target = target_of(&mount).to_owned();
        if self.mounts.insert(target.clone(), mount).is_some() {
            let what = format!("mounts twice at `{target}`: the last mount is used");
            reader.warn("volumes", &what);
        }
    }
}

/// Returns the path of a mount in the container.
pub(super) fn target_of(mount: &Mount) -> &str {
    match mount {
        Mount::Volume { target, .. }
        | Mount::Anonymous { target }
        | Mount::Tmpfs { target, .. }
        | Mount::Bind { target, .. } => target,
    }
}

/// Reads `[source:]target[:options]`.
fn short_form(reader: &mut Reader<'_>, text: &str) -> Option<Mount> {
    let mut parts = text.split(':');
    let (first, second, options, more) = (
        parts.next().unwrap_or_default(),
        parts.next(),
        parts.next(),
        parts.next(),
    );
    if more.is_some() {
        reader.problem_text("volumes", text, EXPECTED);
        return None;
    }
    let Some(target) = second else {
        let Some(target) = absolute(first) else {
            reader.problem_text("volumes", text, EXPECTED);
            return None;
        };
        return Some(Mount::Anonymous { target });
    };
    if first.starts_with(['/', '.', '~']) {
        bind_dropped(reader, first);
        return None;
    }
    let (true, Some(target)) = (is_name(first), absolute(target)) else {
        reader.problem_text("volumes", text, EXPECTED);
        return None;
    };
    Some(Mount::Volume {
        source: first.to_owned(),
        target,
        // `rw`, `z`, `Z` and `nocopy` change nothing here.
        read_only: options.is_some_and(|options| options.split(',').any(|one| one == "ro")),
    })
}

/// Reads `{ type, source, target, read_only, tmpfs: { size }, … }`.
fn long_form(reader: &mut Reader<'_>, item: &Value) -> Option<Mount> {
    let kind = reader.text("type").unwrap_or_else(|| "volume".into());
    let source = reader
        .text("source")
        .or_else(|| reader.text("src"))
        .filter(|source| !source.is_empty());
    let target = ["target", "dst", "destination"]
        .iter()
        .find_map(|field| reader.text(field));
    let read_only = reader.flag("read_only") || reader.flag("readonly");
    let tmpfs = reader.take("tmpfs");
    match kind.as_str() {
        "bind" => {
            // Its options are dropped with it.
            for field in ["bind", "consistency"] {
                reader.take(field);
            }
            bind_dropped(reader, source.as_deref().unwrap_or_default());
            return None;
        }
        "volume" | "tmpfs" => {}
        other => {
            reader.unsupported(&format!("type: {other}"));
            return None;
        }
    }
    let Some(target) = target.as_deref().and_then(absolute) else {
        reader.problem(
            "target",
            item,
            "a mount with an absolute path as its target",
        );
        return None;
    };
    if kind == "tmpfs" {
        let size = match tmpfs {
            Some(Value::Object(fields)) => {
                reader.within("tmpfs", fields, |options| options.size("size", 0))
            }
            _ => 0,
        };
        return Some(Mount::Tmpfs { target, size });
    }
    match source {
        None => Some(Mount::Anonymous { target }),
        Some(source) if is_name(&source) => Some(Mount::Volume {
            source,
            target,
            read_only,
        }),
        Some(source) if source.starts_with(['/', '.', '~']) => {
            bind_dropped(reader, &source);
            None
        }
        Some(_) => {
            reader.problem("source", item, "a mount with a volume's name as its source");
            None
        }
    }
}

fn bind_dropped(reader: &mut Reader<'_>, source: &str) {
    let source = crate::excerpt::cut(source);
    reader.warn(
        "volumes",
        &format!("mounts `{source}` of the host, which is not allowed: it was ignored"),
    );
}

fn absolute(path: &str) -> Option<String> {
    if !path.starts_with('/') {
        return None;
    }
    let trimmed = path.trim_end_matches('/');
    // The root itself cannot be mounted over.
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Reads memory mounts with their options by path: `/run`, `/run:size=64m`.
pub(super) fn tmpfs(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for text in reader.texts("tmpfs") {
        let (path, options) = text.split_once(':').unwrap_or((&text, ""));
        match absolute(path) {
            Some(path) => {
                all.insert(path, options.to_owned());
            }
            None => {
                let expected = "an absolute path, with options behind a colon";
                reader.problem_text("tmpfs", &text, expected);
            }
        }
    }
    all
}

/// Reads devices: `host[:container[:permissions]]`, or the long form.
pub(super) fn devices(reader: &mut Reader<'_>) -> Vec<DeviceMapping> {
    const EXPECTED: &str = "a device `/dev/path[:/dev/path[:rwm]]`";
    let mut devices = Vec::new();
    for item in reader.items("devices") {
        let parsed = match item {
            Value::Object(fields) => reader.within("devices", fields, |long| {
                let host = long.text("source").unwrap_or_default();
                let container = long.text("target");
                let permissions = long.text("permissions");
                device(&host, container.as_deref(), permissions.as_deref())
            }),
            other => scalar(other).and_then(|text| {
                let mut parts = text.splitn(3, ':');
                let host = parts.next().unwrap_or_default();
                match (parts.next(), parts.next()) {
                    // As in `docker run --device`: `/dev/x:rw`.
                    (Some(permissions), None) if are_permissions(permissions) => {
                        device(host, None, Some(permissions))
                    }
                    (container, permissions) => device(host, container, permissions),
                }
            }),
        };
        match parsed {
            Some(device) => devices.push(device),
            None => reader.problem("devices", item, EXPECTED),
        }
    }
    devices.sort_unstable();
    devices.dedup();
    devices
}

fn device(host: &str, container: Option<&str>, permissions: Option<&str>) -> Option<DeviceMapping> {
    let host = absolute(host)?;
    Some(DeviceMapping {
        container: match container.filter(|path| !path.is_empty()) {
            None => host.clone(),
            Some(path) => absolute(path)?,
        },
        permissions: match permissions.filter(|text| !text.is_empty()) {
            None => "rwm".to_owned(),
            Some(text) => are_permissions(text).then(|| text.to_owned())?,
        },
        host,
    })
}

fn are_permissions(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| matches!(c, 'r' | 'w' | 'm'))
}
