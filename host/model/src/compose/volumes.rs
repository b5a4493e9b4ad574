//! The named volumes of a release.

use super::mounts::volume_name;
use super::reader::Reader;
use super::{digest, labels};
use crate::{DesiredVolume, DeviceFacts, TargetApp, VolumeConfig};

/// Reads one volume as the release defines it.
pub(super) fn volume(
    mut reader: Reader<'_>,
    name: &str,
    app: &TargetApp,
    facts: &DeviceFacts,
) -> DesiredVolume {
    let config = VolumeConfig {
        driver: reader.text("driver").unwrap_or_else(|| "local".into()),
        driver_opts: reader.pairs("driver_opts"),
        labels: labels::rewrite_user_labels(reader.pairs("labels"), &facts.branding),
    };
    reader.finish();
    finished(name, config, app, facts)
}

/// Returns a volume that services name but the release does not define.
pub(super) fn undefined(name: &str, app: &TargetApp, facts: &DeviceFacts) -> DesiredVolume {
    let config = VolumeConfig {
        driver: "local".into(),
        ..VolumeConfig::default()
    };
    finished(name, config, app, facts)
}

/// Adds digest and labels. The digest covers only the release's settings: a label of ours must not
/// cause the loss of data.
fn finished(
    name: &str,
    mut config: VolumeConfig,
    app: &TargetApp,
    facts: &DeviceFacts,
) -> DesiredVolume {
    let digest = digest::compute(&config);
    config.labels.extend(labels::app_labels(app, facts));
    config
        .labels
        .insert(digest::label(&facts.branding), digest.clone());
    DesiredVolume {
        engine_name: volume_name(app.id, name),
        config,
        digest,
    }
}
