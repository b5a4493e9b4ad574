//! A device's pages: its state and its actions, its variables, its settings.

mod actions;
mod facts;
mod logs;
mod overview;
mod plugin;
mod plugin_fields;
mod plugins;
mod services;
mod settings;
mod tabs;
mod variables;

use axum::routing::{get, post};

use super::live::live_page;
use super::state::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .merge(live_page::<overview::OverviewPage>("/devices/{uuid}"))
        .route("/devices/{uuid}/ask", post(actions::ask))
        .route("/devices/{uuid}/log.txt", get(logs::download))
        .merge(live_page::<variables::DeviceVariablesPage>(
            "/devices/{uuid}/variables",
        ))
        .merge(live_page::<plugins::DevicePluginsPage>(
            "/devices/{uuid}/plugins",
        ))
        .merge(live_page::<plugin::PluginPage>(
            "/devices/{uuid}/plugin/{name}",
        ))
        .merge(live_page::<settings::DeviceSettingsPage>(
            "/devices/{uuid}/settings",
        ))
        .route("/devices/{uuid}/rename", post(settings::rename))
        .route("/devices/{uuid}/note", post(settings::note))
        .route("/devices/{uuid}/pin", post(settings::pin))
        .route("/devices/{uuid}/move", post(settings::move_elsewhere))
        .route("/devices/{uuid}/active", post(settings::activate))
        .route("/devices/{uuid}/delete", post(settings::delete))
}
