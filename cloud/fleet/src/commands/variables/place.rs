//! Where a variable is stored: for a fleet or a device, for all services or one, as configuration or not.

use serde::Deserialize;

use super::{SELECT, VariableRow};
use crate::arguments::variables::VariableScope;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::{self, Device, Target};
use crate::odata::literal;
use crate::rows::Id;

/// Where one variable is stored.
pub(super) struct Place {
    pub(super) address: String,
    /// Its owner, as it is printed.
    pub(super) name: String,
    pub(super) kind: &'static str,
}

impl Place {
    /// Checks that the variable exists.
    ///
    /// # Errors
    /// If it does not.
    pub(super) async fn require(&self, cloud: &Cloud, name: &str) -> Result<()> {
        let row: Option<VariableRow> = cloud.row(&self.address, SELECT).await?;
        row.map(drop).ok_or_else(|| {
            Failure::not_found(format!("{} has no variable `{name}` of its own", self.name))
                .hint("`fleet variables` lists the variables, and what each belongs to")
        })
    }
}

pub(super) fn kind(is_config: bool) -> &'static str {
    if is_config { "config" } else { "environment" }
}

/// Returns the prefixes of names that the cloud reserves for configuration; its vendor chooses them.
pub(crate) async fn prefixes(cloud: &Cloud) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Rules {
        reserved_namespaces: Vec<String>,
    }
    let rules: Rules = cloud.get("/config/vars").await?;
    Ok(rules.reserved_namespaces)
}

/// Finds the fleet or device whose variables are listed or changed.
pub(super) async fn owner(cloud: &Cloud, of: &VariableScope) -> Result<Target> {
    match (&of.owner.device, &of.owner.fleet) {
        (Some(device), _) => Ok(Target::Device(find::device(cloud, device).await?)),
        (None, Some(fleet)) => Ok(Target::Fleet(find::fleet(cloud, fleet).await?)),
        (None, None) => Err(Failure::usage("give `--device` or `--fleet`")),
    }
}

/// Returns the place of one variable.
///
/// # Errors
/// If its name is not of that kind, or the fleet or the device has no such service.
pub(super) async fn place(
    cloud: &Cloud,
    of: &VariableScope,
    name: &str,
    config: bool,
) -> Result<Place> {
    let owner = owner(cloud, of).await?;
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
        (Target::Fleet(fleet), None) => (
            format!(
                "application_{kind}_variable(application={},name={quoted})",
                fleet.id
            ),
            owner.described(),
        ),
        (Target::Device(device), None) => (
            format!("device_{kind}_variable(device={},name={quoted})", device.id),
            owner.described(),
        ),
        (Target::Fleet(fleet), Some(service)) => {
            let id = find::service(cloud, fleet.id, service).await?;
            (
                format!("service_environment_variable(service={id},name={quoted})"),
                format!("the service {service} of {}", owner.described()),
            )
        }
        (Target::Device(device), Some(service)) => {
            let id = install(cloud, device, service).await?;
            (
                format!("device_service_environment_variable(service_install={id},name={quoted})"),
                format!("the service {service} on {}", owner.described()),
            )
        }
    };
    Ok(Place {
        address,
        name,
        kind,
    })
}

/// Returns the id of a service's installation on a device.
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
