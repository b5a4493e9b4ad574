//! Finds what people mean: fleets by slug, name or id, devices by uuid (or its beginning), name or id,
//! releases by commit (or its beginning), version or id. What could be several is told with all of them.

use serde::Deserialize;

use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::odata::literal;
use crate::output::short;

/// So many candidates are asked for; more are not told.
const MOST: usize = 10;
/// The fewest characters that count as the beginning of a uuid or commit: fewer would be found in names.
const FEWEST: usize = 4;

/// A fleet that was found.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) id: i64,
    pub(crate) slug: String,
    pub(crate) actor: Link,
}

/// A link to another row, where that is not expanded.
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

impl Device {
    /// The fleet that it is in.
    ///
    /// # Errors
    /// Where it is in none.
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
    /// As people call it.
    pub(crate) fn name(&self) -> String {
        format!("{} ({})", short(&self.commit), self.raw_version)
    }
}

/// A fleet by its slug, name, uuid or id.
///
/// # Errors
/// Where there is none, or there are several.
pub(crate) async fn fleet(cloud: &Cloud, text: &str) -> Result<Fleet> {
    let found = fleets(cloud, text).await?;
    one("fleet", text, found, |fleet| {
        format!("{} (id {})", fleet.slug, fleet.id)
    })
    .map_err(|failure| match failure.hint {
        Some(_) => failure,
        None => failure.hint("`fleet fleets` lists them"),
    })
}

async fn fleets(cloud: &Cloud, text: &str) -> Result<Vec<Fleet>> {
    let mut filter = format!(
        "slug eq {} or app_name eq {} or uuid eq {}",
        literal(&text.to_lowercase()),
        literal(text),
        literal(text)
    );
    if let Some(id) = number(text) {
        filter.push_str(&format!(" or id eq {id}"));
    }
    let options = [
        ("$select", "id,slug,actor"),
        ("$filter", &filter),
        ("$orderby", "slug asc"),
        ("$top", "11"),
    ];
    cloud.rows("application", &options).await
}

/// A device by its uuid, the beginning of that, its name or id; of one fleet, where that is said.
///
/// # Errors
/// Where there is none, or there are several.
pub(crate) async fn device(cloud: &Cloud, text: &str) -> Result<Device> {
    let found = devices(cloud, text).await?;
    one("device", text, found, |device| {
        format!("{} {} (id {})", device.uuid, device.device_name, device.id)
    })
    .map_err(|failure| match failure.hint {
        Some(_) => failure,
        None => failure.hint("`fleet devices` lists them"),
    })
}

/// A device by its number alone.
///
/// # Errors
/// Where it is not there.
pub(crate) async fn device_of(cloud: &Cloud, id: i64) -> Result<Device> {
    let options = [("$select", "id,uuid,device_name,belongs_to__application")];
    let device = cloud.row(&format!("device({id})"), &options).await?;
    device.ok_or_else(|| Failure::not_found(format!("there is no device with the id {id}")))
}

async fn devices(cloud: &Cloud, text: &str) -> Result<Vec<Device>> {
    let mut filter = format!("device_name eq {}", literal(text));
    if let Some(beginning) = beginning(text) {
        filter.push_str(&format!(" or startswith(uuid,{})", literal(&beginning)));
    }
    if let Some(id) = number(text) {
        filter.push_str(&format!(" or id eq {id}"));
    }
    let options = [
        ("$select", "id,uuid,device_name,belongs_to__application"),
        ("$filter", &filter),
        ("$orderby", "uuid asc"),
        ("$top", "11"),
    ];
    let found: Vec<Device> = cloud.rows("device", &options).await?;
    // A whole uuid is meant whole, whatever else is called so.
    match found.iter().position(|device| device.uuid == text) {
        Some(at) => Ok(found.into_iter().skip(at).take(1).collect()),
        None => Ok(found),
    }
}

/// A release by its commit, the beginning of that, its version or id; of one fleet, where that is said.
///
/// # Errors
/// Where there is none, or there are several.
pub(crate) async fn release(cloud: &Cloud, text: &str, fleet: Option<i64>) -> Result<Release> {
    // A draft is called by what it was deployed as, too: its version ends with a number of its own.
    let mut filter = format!(
        "raw_version eq {0} or (semver eq {0} and is_final eq false)",
        literal(text)
    );
    if let Some(beginning) = beginning(text) {
        filter.push_str(&format!(" or startswith(commit,{})", literal(&beginning)));
    }
    if let Some(id) = number(text) {
        filter.push_str(&format!(" or id eq {id}"));
    }
    if let Some(fleet) = fleet {
        filter = format!("belongs_to__application eq {fleet} and ({filter})");
    }
    let options = [
        ("$select", "id,commit,raw_version,belongs_to__application"),
        ("$filter", &filter),
        ("$orderby", "id desc"),
        ("$top", "11"),
    ];
    let mut found: Vec<Release> = cloud.rows("release", &options).await?;
    if found.iter().any(|release| release.raw_version == text) {
        found.retain(|release| release.raw_version == text);
    }
    one("release", text, found, |release| {
        format!("{} {} (id {})", release.commit, release.raw_version, release.id)
    })
    .map_err(|failure| match (&failure.hint, fleet) {
        (Some(_), _) => failure,
        (None, Some(_)) => failure.hint("a release must belong to the fleet or the device's fleet: `fleet releases --fleet F` lists them"),
        (None, None) => failure.hint("`fleet releases --fleet F` lists the releases of a fleet"),
    })
}

/// What can be pinned.
pub(crate) enum Target {
    Device(Device),
    Fleet(Fleet),
}

/// A device or a fleet.
///
/// # Errors
/// Where there is neither, or both.
pub(crate) async fn target(cloud: &Cloud, text: &str) -> Result<Target> {
    let (devices, fleets) = (devices(cloud, text).await?, fleets(cloud, text).await?);
    let found: Vec<Target> = devices
        .into_iter()
        .map(Target::Device)
        .chain(fleets.into_iter().map(Target::Fleet))
        .collect();
    one("device or fleet", text, found, |target| match target {
        Target::Device(device) => format!("device {} {}", device.uuid, device.device_name),
        Target::Fleet(fleet) => format!("fleet {}", fleet.slug),
    })
    .map_err(|failure| match failure.hint {
        Some(_) => failure,
        None => failure.hint("`fleet devices` and `fleet fleets` list them"),
    })
}

/// A service of a fleet.
///
/// # Errors
/// Where the fleet has none of that name; it names those that it has.
pub(crate) async fn service(cloud: &Cloud, fleet: i64, name: &str) -> Result<i64> {
    #[derive(Deserialize)]
    struct Service {
        id: i64,
        service_name: String,
    }
    let filter = format!("application eq {fleet}");
    let options = [
        ("$select", "id,service_name"),
        ("$filter", &filter),
        ("$orderby", "service_name asc"),
    ];
    let services: Vec<Service> = cloud.rows("service", &options).await?;
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

/// The one that is meant.
fn one<T>(kind: &str, text: &str, found: Vec<T>, named: impl Fn(&T) -> String) -> Result<T> {
    let several = found.len();
    let names: Vec<String> = found.iter().take(MOST).map(named).collect();
    let mut found = found.into_iter();
    match (found.next(), several) {
        (Some(only), 1) => Ok(only),
        (None, _) => Err(Failure::not_found(format!("there is no {kind} `{text}`"))),
        (Some(_), _) => {
            let more = if several > MOST { "\n  and more" } else { "" };
            let list = names.join("\n  ");
            Err(
                Failure::usage(format!("`{text}` matches several:\n  {list}{more}"))
                    .hint("give enough of it to identify one"),
            )
        }
    }
}

/// What may begin a uuid or commit.
fn beginning(text: &str) -> Option<String> {
    let fits = (FEWEST..=62).contains(&text.len());
    let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (fits && hexadecimal).then(|| text.to_ascii_lowercase())
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
    fn what_may_be_several_is_told_with_all_of_them() {
        let found = |found: Vec<i32>| one("device", "x", found, ToString::to_string);
        assert_eq!(found(vec![1]).ok(), Some(1));
        assert_eq!(found(vec![]).err().map(|f| f.kind), Some(Kind::NotFound));
        let several = found(vec![1, 2]).expect_err("several");
        assert_eq!(several.kind, Kind::Usage);
        assert_eq!(several.to_string(), "`x` matches several:\n  1\n  2");
    }
}
