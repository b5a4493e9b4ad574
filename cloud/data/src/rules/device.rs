//! Devices (docs/spec/cloud.md#model-device, docs/spec/cloud.md#rules).

use std::collections::HashSet;

use resources::{Method, StoredValue, Writer as Word, split_os_version};
use semver::Version;

use super::system_release::{self, os_version};
use super::{fleet, history, installs};
use crate::effect::DeviceGone;
use crate::query;
use crate::random;
use crate::statement::sql;
use crate::write::{Change, WriteError, WriteResult, Writer, altering, known};

pub(super) async fn before_create(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if change.text("device_name").is_none() {
        change.new.set_text("device_name", random::device_name()?);
    }
    take_os_variant(change);
    if let Some(fleet) = change.number("belongs_to__application") {
        if change.text("os_version").is_none() && change.text("supervisor_version").is_some() {
            return Err(WriteError::Forbidden(
                "`os_version` is required together with `supervisor_version`".to_owned(),
            ));
        }
        system_in_range(writer, change, fleet).await?;
    }
    check_pin(writer, change).await?;
    check_web_access(writer, change).await?;
    system_release::before_create(writer, change).await
}

pub(super) async fn after_create(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    installs::create_for_devices(writer, &[change.id]).await?;
    history::keep(writer, std::slice::from_ref(change)).await
}

pub(super) async fn before_change(writer: &mut Writer<'_>, changes: &mut [Change]) -> WriteResult {
    for change in changes.iter_mut() {
        before_one_change(writer, change).await?;
    }
    // Many devices are often pinned at once, most of them to one release.
    let mut checked = HashSet::new();
    for change in changes.iter() {
        if checked.insert(pin(change)) {
            check_pin(writer, change).await?;
        }
    }
    Ok(())
}

async fn before_one_change(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if writer.is_device() {
        only_while_it_is_set_up(change)?;
        leave_out_what_it_cannot_run(writer, change).await?;
    }
    take_os_variant(change);
    note_events(change, writer.now());
    if change.alters("belongs_to__application") {
        before_move(writer, change).await?;
    }
    check_web_access(writer, change).await?;
    if change.alters("is_of__device_type") && !change.new.has("should_be_operated_by__release") {
        change
            .new
            .set("should_be_operated_by__release", StoredValue::Null);
    }
    system_release::before_change(writer, change).await
}

pub(super) async fn after_change(writer: &mut Writer<'_>, changes: &[Change]) -> WriteResult {
    for change in changes {
        if change.alters("belongs_to__application")
            && let Some(before) = change.old.number("belongs_to__application")
        {
            installs::leave_fleet(writer, change.id, before).await?;
        }
    }
    history::keep(writer, changes).await?;
    let runs = [
        "belongs_to__application",
        "is_pinned_on__release",
        "should_be_managed_by__release",
        "should_be_operated_by__release",
    ];
    let retargeted = altering(changes, &runs);
    installs::create_for_devices(writer, &retargeted).await
}

/// Ignores the name and the pin from a device's initial configuration once it has requested its target state, like all
/// other fields that only people may write.
fn only_while_it_is_set_up(change: &mut Change) -> WriteResult {
    if change
        .old
        .number("changed_api_heartbeat_state_on__date")
        .is_some()
    {
        for field in known("device")?.fields.iter() {
            if field.writer == Word::Provisioning {
                change.new.remove(field.name);
            }
        }
    }
    Ok(())
}

/// Ignores a reported release that the device may not read: for the device it does not exist, so the device cannot run
/// it.
async fn leave_out_what_it_cannot_run(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    const FIELD: &str = "is_running__release";
    if !change.alters(FIELD) {
        return Ok(());
    }
    if let Some(release) = change.number(FIELD) {
        let select = query::permitted(&writer.context, "release", release, Method::Read)?;
        if writer.transaction.id(&select).await?.is_none() {
            change.new.remove(FIELD);
        }
    }
    Ok(())
}

/// Ends the history of devices that are deleted, and returns what is reported about them.
pub(super) async fn before_going(
    writer: &mut Writer<'_>,
    devices: &[i64],
) -> WriteResult<Vec<DeviceGone>> {
    history::end(writer, devices).await?;
    let select = sql("SELECT id, uuid FROM device WHERE id IN (?)");
    let rows = writer.transaction.rows_about(devices, select).await?;
    let gone = rows.into_iter().map(|row| {
        Ok(DeviceGone {
            id: row.id(0)?,
            uuid: row.some_text(1)?,
        })
    });
    gone.collect()
}

/// Splits `2.0.0 (prod)`: the variant is a separate field.
fn take_os_variant(change: &mut Change) {
    let Some(reported) = change.new.text("os_version").map(str::to_owned) else {
        return;
    };
    let (version, variant) = split_os_version(&reported);
    if let (Some(variant), false) = (variant, change.new.text("os_variant").is_some()) {
        change.new.set_text("os_version", version);
        change.new.set_text("os_variant", variant);
    }
}

/// Sets the times of events.
fn note_events(change: &mut Change, now: i64) {
    if change.alters("api_heartbeat_state") {
        change
            .new
            .set_number("changed_api_heartbeat_state_on__date", now);
    }
    if let Some(connected) = change.new.flag("is_connected_to_vpn") {
        change.new.set_number("last_vpn_event", now);
        change.new.set("is_online", StoredValue::Boolean(connected));
    }
    if change.new.has("is_online") {
        change.new.set_number("last_connectivity_event", now);
    }
    if change.new.has("update_status") {
        change.new.set_number("last_update_status_event", now);
    }
}

/// Checks that a device may move to another fleet, and removes its pin, which was to a release of the old one.
async fn before_move(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if !change.new.has("is_pinned_on__release") {
        change.new.set("is_pinned_on__release", StoredValue::Null);
    }
    let Some(fleet) = change.number("belongs_to__application") else {
        return Ok(());
    };
    system_in_range(writer, change, fleet).await?;
    let architectures = sql("SELECT d.slug, f.slug FROM device_type AS t \
         JOIN cpu_architecture AS d ON d.id = t.is_of__cpu_architecture, \
         application AS a JOIN device_type AS u ON u.id = a.is_for__device_type \
         JOIN cpu_architecture AS f ON f.id = u.is_of__cpu_architecture \
         WHERE t.id = ? AND a.id = ?")
    .with(change.number("is_of__device_type").unwrap_or_default())
    .with(fleet);
    if let Some(row) = writer.transaction.row(&architectures).await? {
        let (device, fleet) = (row.some_text(0)?, row.some_text(1)?);
        if !runs_on(&device, &fleet) {
            return Err(WriteError::Refused(format!(
                "a device with the architecture `{device}` cannot run what is built for `{fleet}`"
            )));
        }
    }
    Ok(())
}

/// Returns whether a device of one architecture can run what is built for another
/// (docs/spec/cloud.md#model-architectures).
fn runs_on(device: &str, built_for: &str) -> bool {
    device == built_for
        || matches!(
            (device, built_for),
            ("aarch64", "armv7hf" | "rpi") | ("armv7hf", "rpi")
        )
}

/// Returns the release to which a device is newly pinned, and the fleet that must own it.
fn pin(change: &Change) -> Option<(i64, Option<i64>)> {
    let is_new = change.alters_any(&["is_pinned_on__release", "belongs_to__application"]);
    let release = change.number("is_pinned_on__release").filter(|_| is_new)?;
    Some((release, change.number("belongs_to__application")))
}

async fn check_pin(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    match pin(change) {
        Some((release, fleet)) => {
            fleet::can_run(writer, release, fleet, "is_pinned_on__release").await
        }
        None => Ok(()),
    }
}

async fn check_web_access(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    if !change.alters("is_web_accessible") || !change.flag("is_web_accessible") {
        return Ok(());
    }
    let supports = sql(
        "SELECT a.id FROM application AS a JOIN application_type AS t ON t.id = a.application_type \
         WHERE a.id = ? AND t.supports_web_url = TRUE",
    )
    .with(change.number("belongs_to__application").unwrap_or_default());
    match writer.transaction.id(&supports).await? {
        Some(_) => Ok(()),
        None => Err(WriteError::Forbidden(
            "devices of this type of fleet have no web address".to_owned(),
        )),
    }
}

/// Checks the range of operating system versions that a type of fleet may require. Text that is not a version is not
/// checked.
async fn system_in_range(writer: &mut Writer<'_>, change: &Change, fleet: i64) -> WriteResult {
    let Some(version) = change.text("os_version").and_then(os_version) else {
        return Ok(());
    };
    let range = sql("SELECT t.needs__os_version_range FROM application AS a \
         JOIN application_type AS t ON t.id = a.application_type WHERE a.id = ?")
    .with(fleet);
    let Some(range) = writer.transaction.texts(&range).await?.pop().flatten() else {
        return Ok(());
    };
    if in_range(&version, &range) {
        Ok(())
    } else {
        Err(WriteError::Forbidden(format!(
            "the fleet is for operating systems of versions {range}, and this device has {version}"
        )))
    }
}

/// Checks a range such as `>=2.11.0 <3 || 4.x`.
fn in_range(version: &Version, range: &str) -> bool {
    // A pre-release counts as the release that it precedes.
    let version = Version::new(version.major, version.minor, version.patch);
    range.split("||").any(|part| {
        let comparators: Vec<&str> = part.split_whitespace().collect();
        let required = if comparators.is_empty() {
            semver::VersionReq::parse("*")
        } else {
            semver::VersionReq::parse(&comparators.join(","))
        };
        required.is_ok_and(|required| required.matches(&version))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_versions_are_those_of_package_managers() {
        for (version, range, expected) in [
            ("2.11.0", ">=2.11.0", true),
            ("2.10.9", ">=2.11.0", false),
            ("2.11.0-rc1", ">=2.11.0", true),
            ("3.0.0", ">=2.11.0 <3", false),
            ("4.5.6", ">=2.11.0 <3 || 4.x", true),
            ("1.0.0", "", true),
        ] {
            let version = version.parse().unwrap();
            assert_eq!(in_range(&version, range), expected, "{version} {range}");
        }
    }

    #[test]
    fn devices_run_what_is_built_for_lesser_ones_of_their_family() {
        assert!(
            runs_on("aarch64", "rpi") && runs_on("armv7hf", "rpi") && runs_on("amd64", "amd64")
        );
        assert!(!runs_on("rpi", "armv7hf") && !runs_on("amd64", "i386"));
    }
}
