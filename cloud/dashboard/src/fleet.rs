//! A fleet's pages: its devices, its releases, its variables and its settings.

mod add_device;
mod device_filter;
mod devices;
mod plugin;
mod plugin_answers;
mod plugins;
mod releases;
mod settings;
mod tabs;
mod together;
mod variables;

use axum::routing::{get, post};

use super::live::live_page;
use super::state::Routes;
pub(crate) use tabs::Fleet;

pub(super) fn routes() -> Routes {
    Routes::new()
        .merge(live_page::<devices::DevicesPage>("/fleets/{id}"))
        .route("/fleets/{id}/add-device", get(add_device::ask))
        .route("/fleets/{id}/config.json", post(add_device::config))
        .route("/fleets/{id}/key", post(add_device::key))
        .merge(live_page::<releases::ReleasesPage>("/fleets/{id}/releases"))
        .route("/fleets/{id}/target", post(releases::target))
        .merge(live_page::<variables::FleetVariablesPage>(
            "/fleets/{id}/variables",
        ))
        .merge(live_page::<plugins::FleetPluginsPage>(
            "/fleets/{id}/plugins",
        ))
        .merge(live_page::<plugin::FleetPluginPage>(
            "/fleets/{id}/plugin/{name}",
        ))
        .merge(live_page::<settings::FleetSettingsPage>(
            "/fleets/{id}/settings",
        ))
        .route("/fleets/{id}/settings", post(settings::change))
        .route("/fleets/{id}/delete", post(settings::delete))
        .route("/fleets/{id}/together", post(together::together))
        .route("/fleets/{id}/update", post(together::update))
}
