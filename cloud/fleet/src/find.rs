//! Finds what people refer to: fleets by slug, name or id, devices by uuid (or its beginning), name or id, releases by
//! commit (or its beginning), version or id. If the text is ambiguous, the error lists all candidates.

use serde::Deserialize;

use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::odata::literal;
use crate::output::short;

/// The maximum number of candidates that are requested and listed.
const MOST: usize = 10;
/// The minimum number of characters of the beginning of a uuid or commit: fewer would match names.
const FEWEST: usize = 4;

/// The fields of a [`Device`].
const DEVICE: &str = "id,uuid,device_name,belongs_to__application";

/// A fleet that was found.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) id: i64,
    pub(crate) slug: String,
    pub(crate) actor: Link,
}

/// A link to another row that is not expanded.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Link {
    #[serde(rename = "__id")]
    pub(crate) id: i64,
}

/// A device that was found.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Device {
    pub(crate) id: i64,
    pub(crate) uuid: String,
    pub(crate) device_name: String,
    #[serde(rename = "belongs_to__application")]
    pub(crate) fleet: Option<Link>,
}

impl Fleet {
    /// Returns the address of its row.
    pub(crate) fn address(&self) -> String {
        format!("application({})", self.id)
    }
}

impl Device {
    /// Returns the address of its row.
    pub(crate) fn address(&self) -> String {
        format!("device({})", self.id)
    }

    /// Returns its name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", self.device_name, short(&self.uuid))
    }

    /// Returns the fleet that it belongs to.
    ///
    /// # Errors
    /// If it does not belong to one.
    pub(crate) fn fleet(&self) -> Result<i64> {
        match self.fleet {
            Some(fleet) => Ok(fleet.id),
            None => Err(Failure::failed(format!(
                "the device `{}` is not in a fleet",
                self.device_name
            ))
            .hint("move it into one with `fleet device move`")),
        }
    }
}

/// A release that was found.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Release {
    pub(crate) id: i64,
    pub(crate) commit: String,
    pub(crate) raw_version: String,
    #[serde(rename = "belongs_to__application")]
    pub(crate) fleet: Link,
}

impl Release {
    /// Returns the address of its row.
    pub(crate) fn address(&self) -> String {
        format!("release({})", self.id)
    }

    /// Returns its name for people.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", short(&self.commit), self.raw_version)
    }
}

/// Finds a fleet by its slug, name, uuid or id.
///
/// # Errors
/// If there is none, or there are several.
pub(crate) async fn fleet(cloud: &Cloud, text: &str) -> Result<Fleet> {
    let fleets = fleets(cloud, text).await?;
    one("fleet", text, fleets, |fleet| {
        format!("{} (id {})", fleet.slug, fleet.id)
    })
    .map_err(|failure| failure.or_hint("`fleet fleets` lists them"))
}

/// Like [`fleet`], if a text is given.
pub(crate) async fn optional_fleet(cloud: &Cloud, text: Option<&str>) -> Result<Option<Fleet>> {
    Ok(match text {
        Some(text) => Some(fleet(cloud, text).await?),
        None => None,
    })
}

async fn fleets(cloud: &Cloud, text: &str) -> Result<Vec<Fleet>> {
    let query = format!(
        "$select=id,slug,actor&$filter=slug eq {} or app_name eq {1} or uuid eq {1}{2}&$orderby=slug asc&$top=11",
        literal(&text.to_lowercase()),
        literal(text),
        or_id(text)
    );
    cloud.rows("application", &query).await
}

/// Finds a device by its uuid, the beginning of it, its name or id.
///
/// # Errors
/// If there is none, or there are several.
pub(crate) async fn device(cloud: &Cloud, text: &str) -> Result<Device> {
    let devices = devices(cloud, text).await?;
    one("device", text, devices, |device| {
        format!("{} {} (id {})", device.uuid, device.device_name, device.id)
    })
    .map_err(|failure| failure.or_hint("`fleet devices` lists them"))
}

/// Returns the devices that a filter selects, sorted by name.
pub(crate) async fn devices_where(cloud: &Cloud, filter: &str) -> Result<Vec<Device>> {
    let query = format!("$select={DEVICE}&$filter={filter}&$orderby=device_name asc");
    cloud.rows("device", &query).await
}

/// Returns a device by its id.
///
/// # Errors
/// If it does not exist.
pub(crate) async fn device_of(cloud: &Cloud, id: i64) -> Result<Device> {
    let path = format!("device({id})");
    let device = cloud.row(&path, &format!("$select={DEVICE}")).await?;
    device.ok_or_else(|| Failure::not_found(format!("there is no device with the id {id}")))
}

async fn devices(cloud: &Cloud, text: &str) -> Result<Vec<Device>> {
    let mut filter = format!("device_name eq {}{}", literal(text), or_id(text));
    if let Some(beginning) = beginning(text) {
        filter.push_str(&format!(" or startswith(uuid,{})", literal(&beginning)));
    }
    let query = format!("$select={DEVICE}&$filter={filter}&$orderby=uuid asc&$top=11");
    let mut devices: Vec<Device> = cloud.rows("device", &query).await?;
    // A complete uuid takes precedence, whatever other devices are called.
    if devices.iter().any(|device| device.uuid == text) {
        devices.retain(|device| device.uuid == text);
    }
    Ok(devices)
}

/// Finds a release by its commit, the beginning of it, its version or id, in one fleet if it is given.
///
/// # Errors
/// If there is none, or there are several.
pub(crate) async fn release(cloud: &Cloud, text: &str, fleet: Option<i64>) -> Result<Release> {
    // A draft can also be named by the version that it was deployed as: its own version has a number at its end.
    let mut filter = format!(
        "raw_version eq {0} or (semver eq {0} and is_final eq false){1}",
        literal(text),
        or_id(text)
    );
    if let Some(beginning) = beginning(text) {
        filter.push_str(&format!(" or startswith(commit,{})", literal(&beginning)));
    }
    if let Some(fleet) = fleet {
        filter = format!("belongs_to__application eq {fleet} and ({filter})");
    }
    let query = format!(
        "$select=id,commit,raw_version,belongs_to__application&$filter={filter}&$orderby=id desc&$top=11"
    );
    let mut releases: Vec<Release> = cloud.rows("release", &query).await?;
    if releases.iter().any(|release| release.raw_version == text) {
        releases.retain(|release| release.raw_version == text);
    }
    one("release", text, releases, |release| {
        format!("{} {} (id {})", release.commit, release.raw_version, release.id)
    })
    .map_err(|failure| {
        failure.or_hint(match fleet {
            Some(_) => "a release must belong to the fleet or the device's fleet: `fleet releases --fleet F` lists them",
            None => "`fleet releases --fleet F` lists the releases of a fleet",
        })
    })
}

/// A device or fleet, which can be pinned and has variables.
pub(crate) enum Target {
    Device(Device),
    Fleet(Fleet),
}

impl Target {
    /// Returns its name for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::Device(device) => device.name(),
            Target::Fleet(_) => self.described(),
        }
    }

    /// Returns its kind and name for people.
    pub(crate) fn described(&self) -> String {
        match self {
            Target::Device(device) => format!("the device {}", device.device_name),
            Target::Fleet(fleet) => format!("the fleet {}", fleet.slug),
        }
    }

    /// Returns the address of its row.
    pub(crate) fn address(&self) -> String {
        match self {
            Target::Device(device) => device.address(),
            Target::Fleet(fleet) => fleet.address(),
        }
    }

    /// Returns its kind, and its uuid or slug, for JSON output.
    pub(crate) fn identity(&self) -> (&'static str, &str) {
        match self {
            Target::Device(device) => ("device", &device.uuid),
            Target::Fleet(fleet) => ("fleet", &fleet.slug),
        }
    }
}

/// Finds a device or a fleet.
///
/// # Errors
/// If there is neither, or both.
pub(crate) async fn target(cloud: &Cloud, text: &str) -> Result<Target> {
    let devices = devices(cloud, text).await?.into_iter().map(Target::Device);
    let fleets = fleets(cloud, text).await?.into_iter().map(Target::Fleet);
    let targets = devices.chain(fleets).collect();
    one("device or fleet", text, targets, |target| match target {
        Target::Device(device) => format!("device {} {}", device.uuid, device.device_name),
        Target::Fleet(fleet) => format!("fleet {}", fleet.slug),
    })
    .map_err(|failure| failure.or_hint("`fleet devices` and `fleet fleets` list them"))
}

/// A service that was found.
#[derive(Deserialize)]
pub(crate) struct FleetService {
    pub(crate) id: i64,
    pub(crate) service_name: String,
}

/// Returns the services of a fleet, sorted by name.
pub(crate) async fn services(cloud: &Cloud, fleet: i64) -> Result<Vec<FleetService>> {
    let query =
        format!("$select=id,service_name&$filter=application eq {fleet}&$orderby=service_name asc");
    cloud.rows("service", &query).await
}

/// Returns the id of a service of a fleet.
///
/// # Errors
/// If the fleet has none of that name; the error lists the existing ones.
pub(crate) async fn service(cloud: &Cloud, fleet: i64, name: &str) -> Result<i64> {
    let services = services(cloud, fleet).await?;
    match services.iter().find(|service| service.service_name == name) {
        Some(service) => Ok(service.id),
        None => {
            let names: Vec<&str> = services.iter().map(|s| s.service_name.as_str()).collect();
            let failure = Failure::not_found(format!("the fleet has no service `{name}`"));
            Err(if names.is_empty() {
                failure.hint("it gets its services with its first release")
            } else {
                failure.hint(format!("it has {}", names.join(", ")))
            })
        }
    }
}

/// Returns the only candidate.
fn one<T>(kind: &str, text: &str, candidates: Vec<T>, name: impl Fn(&T) -> String) -> Result<T> {
    let count = candidates.len();
    let names: Vec<String> = candidates.iter().take(MOST).map(name).collect();
    let mut candidates = candidates.into_iter();
    match (candidates.next(), count) {
        (Some(only), 1) => Ok(only),
        (None, _) => Err(Failure::not_found(format!("there is no {kind} `{text}`"))),
        (Some(_), _) => {
            let more = if count > MOST { "\n  and more" } else { "" };
            let list = names.join("\n  ");
            Err(
                Failure::usage(format!("`{text}` matches several:\n  {list}{more}"))
                    .hint("give enough of it to identify one"),
            )
        }
    }
}

/// Returns a text that may be the beginning of a uuid or commit.
fn beginning(text: &str) -> Option<String> {
    let fits = (FEWEST..=62).contains(&text.len());
    let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (fits && hexadecimal).then(|| text.to_ascii_lowercase())
}

/// Returns the end of a filter that also matches the row with this id, if the text is a number.
fn or_id(text: &str) -> String {
    number(text).map_or_else(String::new, |id| format!(" or id eq {id}"))
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind;

    #[test]
    fn the_beginning_of_a_uuid_is_long_enough_and_hexadecimal() {
        for (text, expected) in [
            ("7cf02a6", Some("7cf02a6")),
            ("7CF02A6", Some("7cf02a6")),
            ("7cf", None),
            ("pump", None),
            ("", None),
        ] {
            assert_eq!(beginning(text).as_deref(), expected, "{text}");
        }
        assert_eq!(number("7"), Some(7));
        assert_eq!(number("-7"), None);
        assert_eq!(number("7a"), None);
    }

    #[test]
    fn an_ambiguous_name_is_reported_with_all_matches() {
        let found = |found: Vec<i32>| one("device", "x", found, ToString::to_string);
        assert_eq!(found(vec![1]).ok(), Some(1));
        assert_eq!(found(vec![]).err().map(|f| f.kind), Some(Kind::NotFound));
        let several = found(vec![1, 2]).expect_err("several");
        assert_eq!(several.kind, Kind::Usage);
        assert_eq!(several.to_string(), "`x` matches several:\n  1\n  2");
    }
}
