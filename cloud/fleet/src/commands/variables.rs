//! `variables` and `variable set`, `variable rm`: variables of a fleet or a device, for all services or one, and
//! configuration of devices, which is recognized by its name.

mod place;
mod value;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::variables::{VariableCommand, VariableScope};
use crate::cloud::Cloud;
use crate::failure::Result;
use crate::find::Target;
use crate::output::{Output, plain, quiet};
use crate::rows::ServiceName;
pub(super) use place::prefixes;
use place::{kind, owner, place};
use value::{bare, from_stdin, pair};

/// The placeholder for a secret value.
const SECRET: &str = "(secret)";

/// The fields of a [`VariableRow`].
const SELECT: &str = "$select=name,value,is_secret";

/// A variable as the API returns it; the filter of the request determines its owner.
#[derive(Deserialize)]
struct VariableRow {
    name: String,
    /// Null for users who may not change it, and for everybody if it is secret.
    value: Option<String>,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    service: Vec<ServiceName>,
    #[serde(default)]
    service_install: Vec<ServiceInstall>,
}

#[derive(Deserialize)]
struct ServiceInstall {
    #[serde(rename = "installs__service")]
    service: Vec<ServiceName>,
}

/// A variable as it is printed.
#[derive(Debug, Serialize)]
struct Variable {
    name: String,
    value: Option<String>,
    /// Only the devices that receive the value can read it.
    secret: bool,
    /// `environment` or `config`.
    kind: &'static str,
    /// `fleet` or `device`: the owner.
    of: &'static str,
    /// The only service that receives it.
    service: Option<String>,
    /// A variable that is closer to the device overrides it wherever it would apply.
    overridden: bool,
}

impl Variable {
    /// Returns how close to the device it is set: a variable of one service is closer than that of all, and the
    /// device's own closer than the fleet's.
    fn nearness(&self) -> (bool, bool) {
        (self.of == "device", self.service.is_some())
    }

    /// Returns whether this variable overrides the other one wherever that would apply.
    fn overrides(&self, other: &Variable) -> bool {
        (self.kind, &self.name) == (other.kind, &other.name)
            && self.nearness() > other.nearness()
            && (self.service.is_none() || self.service == other.service)
    }
}

pub(crate) async fn list(cloud: &Cloud, output: &Output, of: &VariableScope) -> Result<()> {
    let owner = owner(cloud, of).await?;
    let fleet = match &owner {
        Target::Fleet(fleet) => Some(fleet.id),
        Target::Device(device) => device.fleet.map(|fleet| fleet.id),
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
    if let Target::Device(device) = &owner {
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
        &format!("{} has no variables", owner.described()),
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
    let rows: Vec<VariableRow> = cloud.rows(resource, &query).await?;
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
            // A variable that was secret stays secret, and its value must not appear in logs of scripts either.
            let is_secret = if secret || readable {
                secret
            } else {
                let row = cloud.row(&place.address, SELECT).await?;
                row.is_some_and(|row: VariableRow| row.is_secret)
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
