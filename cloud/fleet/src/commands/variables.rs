//! `variables` and `variable set`, `variable rm`: of a fleet or a device, of all services or one, and
//! configuration of devices, which is told by its name.

use std::io::{IsTerminal as _, Read as _};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::variables::{VariableCommand, VariableScope};
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::{self, Device, Fleet};
use crate::odata::literal;
use crate::output::{Output, plain, quiet};
use crate::rows::{Id, ServiceName};

/// In place of a value that nobody is shown.
const SECRET: &str = "(secret)";
/// Bytes that are read from standard input; the cloud takes 100,000 characters.
const MOST_BYTES: u64 = 1 << 20;

/// The fields of a [`Row`].
const SELECT: &str = "$select=name,value,is_secret";

enum Owner {
    Device(Device),
    Fleet(Fleet),
}

impl Owner {
    async fn of(cloud: &Cloud, of: &VariableScope) -> Result<Self> {
        match (&of.owner.device, &of.owner.fleet) {
            (Some(device), _) => Ok(Owner::Device(find::device(cloud, device).await?)),
            (None, Some(fleet)) => Ok(Owner::Fleet(find::fleet(cloud, fleet).await?)),
            (None, None) => Err(Failure::usage("give `--device` or `--fleet`")),
        }
    }

    fn name(&self) -> String {
        match self {
            Owner::Device(device) => format!("the device {}", device.device_name),
            Owner::Fleet(fleet) => format!("the fleet {}", fleet.slug),
        }
    }
}

/// A variable as the API gives it: of whatever it is, by the filter that found it.
#[derive(Deserialize)]
struct Row {
    name: String,
    /// Null to those who may not change it, and to all where it is secret.
    value: Option<String>,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    service: Vec<ServiceName>,
    #[serde(default)]
    service_install: Vec<Install>,
}

#[derive(Deserialize)]
struct Install {
    #[serde(rename = "installs__service")]
    service: Vec<ServiceName>,
}

/// A variable as it is told.
#[derive(Debug, Serialize)]
struct Variable {
    name: String,
    value: Option<String>,
    /// Nobody is shown the value but the devices that get it.
    secret: bool,
    /// `environment` or `config`.
    kind: &'static str,
    /// `fleet` or `device`: where it is set.
    of: &'static str,
    /// The one service that gets it.
    service: Option<String>,
    /// What is nearer to the device says otherwise, wherever this one would be given.
    overridden: bool,
}

impl Variable {
    /// How near to the device it is set: that of one service is nearer than that of all, and the device's own nearer
    /// than the fleet's.
    fn nearness(&self) -> (bool, bool) {
        (self.of == "device", self.service.is_some())
    }

    /// Whether this one is given in place of the other, wherever that would be.
    fn overrides(&self, other: &Variable) -> bool {
        (self.kind, &self.name) == (other.kind, &other.name)
            && self.nearness() > other.nearness()
            && (self.service.is_none() || self.service == other.service)
    }
}

pub(crate) async fn list(cloud: &Cloud, output: &Output, of: &VariableScope) -> Result<()> {
    let owner = Owner::of(cloud, of).await?;
    let fleet = match &owner {
        Owner::Fleet(fleet) => Some(fleet.id),
        Owner::Device(device) => device.fleet.map(|fleet| fleet.id),
    };
    let mut all = Vec::new();
    if let Some(fleet) = fleet {
        let by_fleet = format!("application eq {fleet}");
        let by_service = format!("service/any(s:s/application eq {fleet})");
        let service = "&$expand=service($select=service_name)";
        for (resource, filter, expand) in [
            ("application_config_variable", &by_fleet, ""),
            ("application_environment_variable", &by_fleet, ""),
            ("service_environment_variable", &by_service, service),
        ] {
            all.extend(read(cloud, resource, "fleet", filter, expand).await?);
        }
    }
    if let Owner::Device(device) = &owner {
        let by_device = format!("device eq {}", device.id);
        let by_install = format!("service_install/any(si:si/device eq {})", device.id);
        let install =
            "&$expand=service_install($select=id;$expand=installs__service($select=service_name))";
        for (resource, filter, expand) in [
            ("device_config_variable", &by_device, ""),
            ("device_environment_variable", &by_device, ""),
            ("device_service_environment_variable", &by_install, install),
        ] {
            all.extend(read(cloud, resource, "device", filter, expand).await?);
        }
    }
    let overridden: Vec<bool> = all
        .iter()
        .map(|one| all.iter().any(|other| other.overrides(one)))
        .collect();
    for (one, overridden) in all.iter_mut().zip(overridden) {
        one.overridden = overridden;
    }
    if let Some(service) = &of.service {
        all.retain(|one| one.service.as_ref().is_none_or(|name| name == service));
        all.retain(|one| one.kind == "environment");
    }
    fn order(one: &Variable) -> impl Ord {
        (one.kind, &one.name, &one.service, one.of)
    }
    all.sort_by(|one, other| order(one).cmp(&order(other)));
    output.rows(
        &all,
        &[
            ("NAME", |one| plain(&one.name)),
            ("VALUE", |one| match &one.value {
                Some(value) => plain(value),
                None if one.secret => quiet(&SECRET.to_owned()),
                None => quiet(&"hidden".to_owned()),
            }),
            ("KIND", |one| quiet(&one.kind.to_owned())),
            ("OF", |one| {
                let suffix = if one.overridden { ", overridden" } else { "" };
                quiet(&format!("{}{suffix}", one.of))
            }),
            ("SERVICE", |one| {
                quiet(&one.service.as_deref().unwrap_or("all").to_owned())
            }),
        ],
        &format!("{} has no variables", owner.name()),
    );
    Ok(())
}

async fn read(
    cloud: &Cloud,
    resource: &str,
    of: &'static str,
    filter: &str,
    expand: &str,
) -> Result<Vec<Variable>> {
    let is_config = resource.ends_with("_config_variable");
    let query = format!("{SELECT}&$filter={filter}{expand}");
    let rows: Vec<Row> = cloud.rows(resource, &query).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let installed = row.service_install.into_iter().flat_map(|one| one.service);
            let service = row.service.into_iter().chain(installed).next();
            Variable {
                name: row.name,
                value: row.value,
                secret: row.is_secret,
                kind: kind(is_config),
                of,
                service: service.map(|named| named.service_name),
                overridden: false,
            }
        })
        .collect())
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: VariableCommand) -> Result<()> {
    match command {
        VariableCommand::Set {
            name,
            value,
            of,
            config,
            secret,
            readable,
            stdin,
        } => {
            let (name, value) = if stdin {
                (bare(name)?, from_stdin()?)
            } else {
                pair(name, value)?
            };
            let place = place(cloud, &of, &name, config).await?;
            let mut body = json!({ "value": value });
            if secret || readable {
                body["is_secret"] = secret.into();
            }
            cloud.put(&place.address, &body).await?;
            // One that was secret before stays so, and is not for logs of scripts either.
            let is_secret = if secret || readable {
                secret
            } else {
                let row = cloud.row(&place.address, SELECT).await?;
                row.is_some_and(|row: Row| row.is_secret)
            };
            let mask = if is_secret { SECRET } else { &value };
            let value = (!is_secret).then_some(&value);
            output.done(
                format!("{} has {name}={mask}", place.name),
                &json!({ "name": name, "value": value, "secret": is_secret, "kind": place.kind }),
            );
        }
        VariableCommand::Rename { name, new, of } => {
            let place = place(cloud, &of, &name, false).await?;
            place.require(cloud, &name).await?;
            cloud
                .change(&place.address, &json!({ "name": new }))
                .await?;
            output.done(
                format!("{} has {new} in place of {name}", place.name),
                &json!({ "renamed": name, "name": new, "kind": place.kind }),
            );
        }
        VariableCommand::Rm { name, of, config } => {
            let place = place(cloud, &of, &name, config).await?;
            place.require(cloud, &name).await?;
            cloud.delete(&place.address).await?;
            output.done(
                format!("{} no longer has {name}", place.name),
                &json!({ "removed": name, "kind": place.kind }),
            );
        }
    }
    Ok(())
}

/// Where one variable is kept.
struct Place {
    address: String,
    /// Of what.
    name: String,
    kind: &'static str,
}

impl Place {
    /// # Errors
    /// Where there is no variable.
    async fn require(&self, cloud: &Cloud, name: &str) -> Result<()> {
        let row: Option<Row> = cloud.row(&self.address, SELECT).await?;
        row.map(drop).ok_or_else(|| {
            Failure::not_found(format!("{} has no variable `{name}` of its own", self.name))
                .hint("`fleet variables` lists the variables, and what each belongs to")
        })
    }
}

fn kind(is_config: bool) -> &'static str {
    if is_config { "config" } else { "environment" }
}

/// How names begin that the cloud keeps for configuration: its vendor chooses.
pub(super) async fn prefixes(cloud: &Cloud) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Rules {
        reserved_namespaces: Vec<String>,
    }
    let rules: Rules = cloud.get("/config/vars").await?;
    Ok(rules.reserved_namespaces)
}

async fn place(cloud: &Cloud, of: &VariableScope, name: &str, config: bool) -> Result<Place> {
    let owner = Owner::of(cloud, of).await?;
    let prefixes = prefixes(cloud).await?;
    let is_config = prefixes.iter().any(|prefix| name.starts_with(prefix));
    if config && !is_config {
        return Err(Failure::usage(format!(
            "`{name}` is not the name of a configuration variable"
        ))
        .hint(format!("such names begin with {}", prefixes.join(" or "))));
    }
    if let (true, Some(service)) = (is_config, &of.service) {
        return Err(Failure::usage(format!(
            "`{name}` is configuration of whole devices, and not of the service `{service}`"
        ))
        .hint("leave `--service` out"));
    }
    let quoted = literal(name);
    let kind = kind(is_config);
    let (address, name) = match (&owner, &of.service) {
        (Owner::Fleet(fleet), None) => (
            format!(
                "application_{kind}_variable(application={},name={quoted})",
                fleet.id
            ),
            owner.name(),
        ),
        (Owner::Device(device), None) => (
            format!("device_{kind}_variable(device={},name={quoted})", device.id),
            owner.name(),
        ),
        (Owner::Fleet(fleet), Some(service)) => {
            let id = find::service(cloud, fleet.id, service).await?;
            (
                format!("service_environment_variable(service={id},name={quoted})"),
                format!("the service {service} of {}", owner.name()),
            )
        }
        (Owner::Device(device), Some(service)) => {
            let id = install(cloud, device, service).await?;
            (
                format!("device_service_environment_variable(service_install={id},name={quoted})"),
                format!("the service {service} on {}", owner.name()),
            )
        }
    };
    Ok(Place {
        address,
        name,
        kind,
    })
}

/// That a device is to run a service.
async fn install(cloud: &Cloud, device: &Device, service: &str) -> Result<i64> {
    let id = find::service(cloud, device.fleet()?, service).await?;
    let query = format!(
        "$select=id&$filter=device eq {} and installs__service eq {id}",
        device.id
    );
    let install: Option<Id> = cloud.row("service_install", &query).await?;
    install.map(|install| install.id).ok_or_else(|| {
        Failure::failed(format!(
            "the release of the device {} has no service `{service}`",
            device.device_name
        ))
        .hint("set the variable of the fleet's service instead")
    })
}

/// A name without a value.
fn bare(name: String) -> Result<String> {
    if name.contains('=') {
        Err(Failure::usage(
            "the value is given twice: after `=`, and on standard input",
        ))
    } else {
        Ok(name)
    }
}

/// What comes on standard input; at a terminal, what somebody types there unseen.
fn from_stdin() -> Result<String> {
    if std::io::stdin().is_terminal() {
        return ask::secret("Value", "what is piped to standard input");
    }
    let mut value = String::new();
    std::io::stdin()
        .take(MOST_BYTES)
        .read_to_string(&mut value)
        .map_err(|error| {
            Failure::failed("the value cannot be read from standard input").because(error)
        })?;
    let line = value.strip_suffix('\n').unwrap_or(&value);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// `NAME VALUE` or `NAME=VALUE`.
fn pair(name: String, value: Option<String>) -> Result<(String, String)> {
    match (name.split_once('='), value) {
        (None, Some(value)) => Ok((name, value)),
        (Some((name, value)), None) => Ok((name.to_owned(), value.to_owned())),
        (Some(_), Some(_)) => Err(Failure::usage(
            "the value is given twice: after `=`, and by itself",
        )),
        (None, None) => Err(Failure::usage(format!("the value of `{name}` is missing"))
            .hint("write `NAME VALUE` or `NAME=VALUE`; `NAME=` sets it to nothing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_a_name_and_a_value_in_one_word_or_two() {
        for (name, value, expected) in [
            ("A", Some("1"), Some(("A", "1"))),
            ("A=1", None, Some(("A", "1"))),
            ("A=", None, Some(("A", ""))),
            ("A=b=c", None, Some(("A", "b=c"))),
            ("A", Some("b=c"), Some(("A", "b=c"))),
            ("A", None, None),
            ("A=1", Some("2"), None),
        ] {
            let pair = pair(name.to_owned(), value.map(str::to_owned)).ok();
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(pair, expected, "{name} {value:?}");
        }
    }
}
