//! The target releases of the supervisor and of the operating system of devices
//! (docs/spec/cloud.md#rule-supervisor-release, docs/spec/cloud.md#rule-os-release).

use resources::StoredValue;
use semver::Version;
use serde_json::{Map, Value};

use crate::error::DataError;
use crate::row::Row;
use crate::statement::{AT_ONCE, Sql, sql};
use crate::write::{Change, WriteError, WriteResult, Writer};

const SUPERVISOR: &str = "should_be_managed_by__release";
const SYSTEM: &str = "should_be_operated_by__release";

/// Returns the version in a device's report of its operating system (`Platform OS 2.88.4+rev1`).
pub(super) fn os_version(reported: &str) -> Option<Version> {
    let last = reported.split_whitespace().next_back()?;
    Version::parse(last.trim_start_matches('v')).ok()
}

/// Sets a new device's target releases to those that it reports.
pub(super) async fn before_create(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    check_supervisor(writer, change).await?;
    check_system(writer, change).await?;
    fill_in(writer, change).await?;
    if change.number(SYSTEM).is_none() {
        move_up(writer, change).await?;
    }
    Ok(())
}

pub(super) async fn before_change(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    if change.alters("belongs_to__application") {
        leave_behind(writer, change).await?;
    }
    check_supervisor(writer, change).await?;
    check_system(writer, change).await?;
    if change.alters("supervisor_version") {
        fill_in(writer, change).await?;
    }
    if change.alters("os_version") && !change.new.has(SYSTEM) {
        move_up(writer, change).await?;
    }
    Ok(())
}

/// The properties of a release that decide whether it is a supervisor or an operating system for a device.
struct Candidate {
    id: i64,
    version: Version,
    status: String,
    is_invalidated: bool,
    is_host: bool,
    is_public: bool,
    slug: String,
    device_type: i64,
    architecture: i64,
    maker: Maker,
}

/// The organization of a release's fleet, relative to the device. Organizations whose releases run next to the services
/// are identified by number, because a handle may have been chosen by anyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// The system's organization.
    System,
    /// The organization of the device.
    Own,
    /// Another organization.
    Stranger,
}

impl Candidate {
    fn read(row: &Row) -> Result<Self, DataError> {
        let number = |at| Ok::<_, DataError>(u64::try_from(row.id(at)?).unwrap_or_default());
        let mut version = Version::new(number(1)?, number(2)?, number(3)?);
        version.pre = row.some_text(4)?.parse().unwrap_or_default();
        let maker = match (row.flag(12)?, row.flag(13)?) {
            (Some(true), _) => Maker::System,
            (_, Some(true)) => Maker::Own,
            _ => Maker::Stranger,
        };
        Ok(Candidate {
            id: row.id(0)?,
            version,
            status: row.some_text(5)?,
            is_invalidated: row.flag(6)?.unwrap_or_default(),
            is_host: row.flag(7)?.unwrap_or_default(),
            is_public: row.flag(8)?.unwrap_or_default(),
            slug: row.some_text(9)?,
            device_type: row.id(10)?,
            architecture: row.id(11)?,
            maker,
        })
    }

    fn is_supervisor(&self, architecture: Option<i64>) -> bool {
        self.maker != Maker::Stranger
            && self.status == "success"
            && self.version > Version::new(0, 0, 0)
            && self.is_public
            && !self.is_host
            && self.slug.ends_with("-supervisor")
            && Some(self.architecture) == architecture
    }

    fn is_system(&self, device_type: Option<i64>) -> bool {
        self.maker != Maker::Stranger
            && self.status == "success"
            && self.is_host
            && Some(self.device_type) == device_type
    }
}

/// Returns the releases that meet a condition, for a device in its new fleet.
async fn candidates(
    writer: &mut Writer<'_>,
    change: &Change,
    condition: &str,
    values: impl IntoIterator<Item = sea_query::Value>,
) -> WriteResult<Vec<Candidate>> {
    let select = sql(format!(
        "SELECT r.id, r.semver_major, r.semver_minor, r.semver_patch, r.semver_prerelease, r.status, \
         r.is_invalidated, a.is_host, a.is_public, a.slug, t.id, t.is_of__cpu_architecture, o.is_system, \
         EXISTS (SELECT 1 FROM application AS f WHERE f.id = ? AND f.organization = a.organization) \
         FROM release AS r JOIN application AS a ON a.id = r.belongs_to__application \
         JOIN organization AS o ON o.id = a.organization \
         JOIN device_type AS t ON t.id = a.is_for__device_type WHERE {condition}"
    ));
    let fleet = change.number("belongs_to__application").unwrap_or(-1);
    let select = values.into_iter().fold(select.with(fleet), Sql::with);
    let rows = writer.transaction.rows(&select).await?;
    let candidates: Result<Vec<_>, _> = rows.iter().map(Candidate::read).collect();
    Ok(candidates?)
}

async fn candidate(
    writer: &mut Writer<'_>,
    change: &Change,
    id: i64,
) -> WriteResult<Option<Candidate>> {
    let candidates = candidates(writer, change, "r.id = ?", [id.into()]).await?;
    Ok(candidates.into_iter().next())
}

/// Returns the final releases of a version, the latest first.
async fn find_by_version(
    writer: &mut Writer<'_>,
    change: &Change,
    version: &Version,
) -> WriteResult<Vec<Candidate>> {
    let number = |part: u64| i64::try_from(part).unwrap_or(i64::MAX);
    let condition = "r.semver_major = ? AND r.semver_minor = ? AND r.semver_patch = ? AND r.semver_prerelease = ? \
         AND r.revision IS NOT NULL AND r.is_invalidated = FALSE ORDER BY r.revision DESC, r.id DESC";
    let values = [
        number(version.major).into(),
        number(version.minor).into(),
        number(version.patch).into(),
        version.pre.as_str().into(),
    ];
    candidates(writer, change, condition, values).await
}

async fn architecture(writer: &mut Writer<'_>, change: &Change) -> WriteResult<Option<i64>> {
    let select = sql("SELECT is_of__cpu_architecture FROM device_type WHERE id = ?")
        .with(change.number("is_of__device_type").unwrap_or_default());
    Ok(writer.transaction.id(&select).await?)
}

/// Returns the release that becomes the device's supervisor or system, if it changes.
async fn requested(
    writer: &mut Writer<'_>,
    change: &Change,
    field: &str,
) -> WriteResult<Option<Candidate>> {
    let release = change.number(field).filter(|_| change.alters(field));
    let Some(release) = release else {
        return Ok(None);
    };
    let requested = candidate(writer, change, release).await?;
    let requested = requested.ok_or_else(|| refusal(field, release, "is not there"))?;
    Ok(Some(requested))
}

fn refusal(field: &str, release: i64, why: &str) -> WriteError {
    WriteError::Refused(format!("`{field}`: release {release} {why}"))
}

/// Checks that a requested supervisor is one for this device, and not older than its current target.
async fn check_supervisor(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let Some(requested) = requested(writer, change, SUPERVISOR).await? else {
        return Ok(());
    };
    let refused = |why| Err(refusal(SUPERVISOR, requested.id, why));
    let architecture = architecture(writer, change).await?;
    if !requested.is_supervisor(architecture) {
        return refused("is not a release of the supervisor for this device");
    }
    if requested.is_invalidated {
        return refused("is invalidated");
    }
    if let Some(before) = change.old.number(SUPERVISOR)
        && let Some(before) = candidate(writer, change, before).await?
        && requested.version < before.version
    {
        return refused("is older than the one that the device should have");
    }
    Ok(())
}

/// Checks that a requested operating system is one for this device type, and not older than the installed one.
async fn check_system(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    let Some(requested) = requested(writer, change, SYSTEM).await? else {
        return Ok(());
    };
    let refused = |why| Err(refusal(SYSTEM, requested.id, why));
    if !requested.is_system(change.number("is_of__device_type")) {
        return refused("is not an operating system for this device type");
    }
    if requested.is_invalidated && !writer.is_platform() {
        return refused("is invalidated");
    }
    let has = change.text("os_version").and_then(os_version);
    if has.is_some_and(|has| requested.version < without_build(&has)) {
        return refused("is older than the operating system that the device has");
    }
    Ok(())
}

/// Makes the first supervisor that a device reports its target.
async fn fill_in(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    let reported = change.text("supervisor_version").and_then(os_version);
    let Some(version) = reported.filter(|_| change.number(SUPERVISOR).is_none()) else {
        return Ok(());
    };
    let architecture = architecture(writer, change).await?;
    let candidates = find_by_version(writer, change, &version).await?;
    // A supervisor of the device's own organization must be requested explicitly: someone who may create releases in
    // one of its fleets must not decide what manages the devices of the others.
    let mut candidates = candidates.iter();
    if let Some(one) =
        candidates.find(|one| one.maker == Maker::System && one.is_supervisor(architecture))
    {
        change.new.set_number(SUPERVISOR, one.id);
    }
    Ok(())
}

/// Moves the target up if the device has a newer operating system, because it was updated by hand.
async fn move_up(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    let Some(has) = change.text("os_version").and_then(os_version) else {
        return Ok(());
    };
    if let Some(target) = change.number(SYSTEM)
        && let Some(target) = candidate(writer, change, target).await?
        && target.version >= without_build(&has)
    {
        return Ok(());
    }
    let device_type = change.number("is_of__device_type");
    let candidates = find_by_version(writer, change, &has).await?;
    let of = |maker: Maker| {
        let mut candidates = candidates.iter();
        candidates.find(|one| one.maker == maker && one.is_system(device_type))
    };
    match of(Maker::System).or_else(|| of(Maker::Own)) {
        Some(one) => change.new.set_number(SYSTEM, one.id),
        None if change.number(SYSTEM).is_some() => change.new.set(SYSTEM, StoredValue::Null),
        None => {}
    }
    Ok(())
}

/// Removes targets that belong to the organization that the device leaves.
async fn leave_behind(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    for field in [SUPERVISOR, SYSTEM] {
        let stays = change.number(field).filter(|_| !change.new.has(field));
        if let Some(release) = stays
            && let Some(release) = candidate(writer, change, release).await?
            && release.maker == Maker::Stranger
        {
            change.new.set(field, StoredValue::Null);
        }
    }
    Ok(())
}

/// Removes targets that belong neither to the system's organization nor to the device's own, from all devices of these
/// fleets, or of the cloud. Returns how many were removed.
pub(crate) async fn drop_those_of_strangers(
    writer: &mut Writer<'_>,
    fleets: Option<&[i64]>,
) -> WriteResult<usize> {
    let mut dropped = 0;
    for field in [SUPERVISOR, SYSTEM] {
        let of_strangers = format!(
            "SELECT d.id FROM device AS d LEFT JOIN application AS f ON f.id = d.belongs_to__application \
             JOIN release AS r ON r.id = d.{field} JOIN application AS a ON a.id = r.belongs_to__application \
             JOIN organization AS o ON o.id = a.organization \
             WHERE o.is_system = FALSE AND a.organization <> coalesce(f.organization, -1)"
        );
        let select = match fleets {
            None => sql(of_strangers),
            Some(fleets) => sql(format!("{of_strangers} AND f.id IN (?)")).with_all(fleets),
        };
        let devices = writer.transaction.ids(&select).await?;
        dropped += devices.len();
        let nothing = Map::from_iter([(field.to_owned(), Value::Null)]);
        for devices in devices.chunks(AT_ONCE) {
            Box::pin(writer.as_platform().change("device", devices, &nothing)).await?;
        }
    }
    Ok(dropped)
}

/// Removes build metadata, since `+rev1` does not make a version greater here.
fn without_build(version: &Version) -> Version {
    Version {
        build: semver::BuildMetadata::EMPTY,
        ..version.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_last_word_of_what_a_device_says() {
        let version = |text| os_version(text).map(|version| version.to_string());
        assert_eq!(
            version("Platform OS 2.88.4+rev1").as_deref(),
            Some("2.88.4+rev1")
        );
        assert_eq!(version("v6.0.1").as_deref(), Some("6.0.1"));
        assert_eq!(version("Debian GNU/Linux 12"), None);
        assert_eq!(version(""), None);
    }
}
