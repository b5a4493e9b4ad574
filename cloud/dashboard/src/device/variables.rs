//! A device's variables: those of its services, its own and its fleet's, and its settings.

use std::collections::HashSet;

use serde::Deserialize;

use super::facts::Facts;
use super::tabs::{Uuid, VARIABLES};
use crate::key_values::{
    Inheritance, KeyValue, KeyValueKind, KeyValueRow, NewOwners, ServiceKeyValue, VariablesEditor,
    list, load_service_variables,
};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::rows::ServiceName;
use crate::session_user::SessionUser;

/// A service that the device should run.
#[derive(Deserialize)]
struct ServiceInstall {
    id: i64,
    #[serde(rename = "installs__service")]
    services: Vec<ServiceName>,
    device_service_environment_variable: Vec<KeyValue>,
}

pub(super) struct DeviceVariablesPage {
    facts: Facts,
    installs: Vec<ServiceInstall>,
}

impl LivePage for DeviceVariablesPage {
    type Address = Uuid;
    type Parts = [LiveFragment; 3];

    async fn load(user: &SessionUser, uuid: Uuid) -> PageResult<Self> {
        let facts = Facts::find(user, &uuid).await?;
        let query = format!(
            "$select=id&$expand=installs__service($select=id,service_name),\
             device_service_environment_variable($select=id,name,value,is_secret;$orderby=name asc;$top=500)\
             &$filter=device eq {}&$top=200",
            facts.device.id
        );
        let installs = user.rows("/service_install", &query).await?;
        Ok(DeviceVariablesPage { facts, installs })
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let device = &self.facts.device;
        let own = list(user, KeyValueKind::DeviceVariable, device.id).await?;
        let own_settings = list(user, KeyValueKind::DeviceSetting, device.id).await?;
        let (of_fleet, fleet_settings, of_services) = match device.fleet() {
            None => (Vec::new(), Vec::new(), Vec::new()),
            Some(fleet) => (
                list(user, KeyValueKind::FleetVariable, fleet).await?,
                list(user, KeyValueKind::FleetSetting, fleet).await?,
                load_service_variables(user, fleet).await?,
            ),
        };
        let variables = self.variables(own, of_fleet, of_services);
        let to = (KeyValueKind::DeviceSetting, device.id);
        let of_fleet = inherited(
            KeyValueKind::FleetSetting,
            fleet_settings,
            to,
            &own_settings,
        );
        let settings = KeyValueRow::own(KeyValueKind::DeviceSetting, own_settings).chain(of_fleet);
        let [variables, settings] = self.editor().parts(variables, settings.collect());
        Ok([self.facts.head(), variables, settings])
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [head, variables, settings] = parts;
        let device = &self.facts.device;
        let services = self.installs.iter().flat_map(|install| {
            let names = install
                .services
                .iter()
                .map(|service| service.service_name.clone());
            names.map(|name| (KeyValueKind::DeviceServiceVariable, install.id, name))
        });
        let owners = NewOwners {
            all_services: (KeyValueKind::DeviceVariable, device.id),
            services: services.collect(),
            setting: (KeyValueKind::DeviceSetting, device.id),
        };
        let main = self
            .editor()
            .markup(user, [&variables, &settings], Some(owners));
        Ok(device.page(VARIABLES, &head, &main))
    }
}

impl DeviceVariablesPage {
    fn editor(&self) -> VariablesEditor {
        VariablesEditor {
            back: format!("{}/variables", self.facts.device.place()),
            about_variables: "The environment variables of its services. A change restarts the services concerned.",
            settings: "Settings",
            about_settings: "Settings of its supervisor and its host.",
        }
    }

    /// Returns the device's own variables first, then its fleet's. For one name, the device's value takes precedence
    /// over the fleet's, and within each of them that of the service over that of all services
    /// (docs/spec/cloud.md#device-state).
    fn variables(
        &self,
        own: Vec<KeyValue>,
        of_fleet: Vec<KeyValue>,
        of_services: Vec<ServiceKeyValue>,
    ) -> Vec<KeyValueRow> {
        let to = (KeyValueKind::DeviceVariable, self.facts.device.id);
        let names: HashSet<String> = own.iter().map(|pair| pair.name.clone()).collect();
        let of_fleet = inherited(KeyValueKind::FleetVariable, of_fleet, to, &own);
        let mut rows: Vec<KeyValueRow> =
            KeyValueRow::own(KeyValueKind::DeviceVariable, own).collect();
        for install in &self.installs {
            let pairs = install.device_service_environment_variable.clone();
            let own = KeyValueRow::own(KeyValueKind::DeviceServiceVariable, pairs);
            rows.extend(own.map(|row| KeyValueRow {
                service: install.service(),
                ..row
            }));
        }
        rows.extend(of_fleet);
        for ServiceKeyValue { service, pair } in of_services {
            let mut installs = self.installs.iter();
            let install = installs.find(|it| it.services.iter().any(|it| it.id == service.id));
            // It belongs to a service that this device does not run.
            let Some(install) = install else { continue };
            let mut here = install.device_service_environment_variable.iter();
            rows.push(KeyValueRow {
                kind: KeyValueKind::ServiceVariable,
                service: install.service(),
                inherited: Some(Inheritance {
                    to: (KeyValueKind::DeviceServiceVariable, install.id),
                    overridden: names.contains(&pair.name) || here.any(|it| it.name == pair.name),
                }),
                pair,
            });
        }
        rows
    }
}

impl ServiceInstall {
    fn service(&self) -> Option<String> {
        let service = self.services.first();
        service.map(|service| service.service_name.clone())
    }
}

/// The variables that the device inherits from its fleet; giving one another value makes it the device's own (`to`).
fn inherited(
    kind: KeyValueKind,
    pairs: Vec<KeyValue>,
    to: (KeyValueKind, i64),
    own: &[KeyValue],
) -> impl Iterator<Item = KeyValueRow> + use<> {
    let names: HashSet<String> = own.iter().map(|pair| pair.name.clone()).collect();
    KeyValueRow::own(kind, pairs).map(move |row| KeyValueRow {
        inherited: Some(Inheritance {
            to,
            overridden: names.contains(&row.pair.name),
        }),
        ..row
    })
}
