//! A device's pages: how it is and what it does, its variables, its settings.

mod actions;
mod facts;
mod logs;
mod overview;
mod services;
mod settings;
mod tabs;
mod variables;

use super::state::Routes;

pub(super) fn routes() -> Routes {
    Routes::new()
        .merge(overview::routes())
        .merge(actions::routes())
        .merge(logs::routes())
        .merge(variables::routes())
        .merge(settings::routes())
}
