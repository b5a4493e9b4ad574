//! A fleet's variables: those in the environment of its services, and settings of its devices.

use super::tabs::{Fleet, VARIABLES};
use crate::form::Number;
use crate::key_values::{
    KeyValueKind, KeyValueRow, NewOwners, VariablesEditor, list, load_service_variables,
};
use crate::live::{LiveFragment, LivePage};
use crate::page::Page;
use crate::page_error::PageResult;
use crate::rows::ServiceName;
use crate::session_user::SessionUser;

/// The number of services on the page.
const MOST: usize = 1000;

pub(super) struct FleetVariablesPage {
    fleet: Fleet,
    services: Vec<ServiceName>,
}

impl LivePage for FleetVariablesPage {
    type Address = Number;
    type Parts = [LiveFragment; 2];

    async fn load(user: &SessionUser, Number(id): Number) -> PageResult<Self> {
        let fleet = Fleet::find(user, id).await?;
        let query = format!(
            "$select=id,service_name&$filter=application eq {id}&$orderby=service_name asc&$top={MOST}"
        );
        let services = user.rows("/service", &query).await?;
        Ok(FleetVariablesPage { fleet, services })
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        let fleet = self.fleet.id;
        let own = list(user, KeyValueKind::FleetVariable, fleet).await?;
        let own = KeyValueRow::own(KeyValueKind::FleetVariable, own);
        let of_services = load_service_variables(user, fleet).await?;
        let of_services = of_services.into_iter().map(|variable| {
            let mut services = self.services.iter();
            let service = services.find(|service| service.id == variable.service.id);
            KeyValueRow {
                kind: KeyValueKind::ServiceVariable,
                pair: variable.pair,
                service: service.map(|service| service.service_name.clone()),
                inherited: None,
            }
        });
        let settings = list(user, KeyValueKind::FleetSetting, fleet).await?;
        let settings = KeyValueRow::own(KeyValueKind::FleetSetting, settings);
        let variables = own.chain(of_services).collect();
        Ok(self.editor().parts(variables, settings.collect()))
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [variables, settings] = parts;
        let fleet = &self.fleet;
        let services = self.services.iter().map(|service| {
            let name = service.service_name.clone();
            (KeyValueKind::ServiceVariable, service.id, name)
        });
        let owners = NewOwners {
            all_services: (KeyValueKind::FleetVariable, fleet.id),
            services: services.collect(),
            setting: (KeyValueKind::FleetSetting, fleet.id),
        };
        let owners = fleet.may_change.then_some(owners);
        let main = self.editor().markup(user, [&variables, &settings], owners);
        Ok(fleet.page(VARIABLES, &main))
    }
}

impl FleetVariablesPage {
    fn editor(&self) -> VariablesEditor {
        VariablesEditor {
            back: format!("{}/variables", self.fleet.place()),
            about_variables: "The environment variables of services on every device, unless a device has its own value. \
                A change restarts the services concerned.",
            settings: "Settings of devices",
            about_settings: "Settings of supervisors and hosts.",
        }
    }
}
