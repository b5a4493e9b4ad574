//! A fleet's pages: its devices, its releases, its variables and its settings.

mod add_device;
mod device_filter;
mod devices;
mod releases;
mod settings;
mod tabs;
mod together;
mod variables;

use super::state::Routes;
pub(crate) use tabs::Fleet;

pub(super) fn routes() -> Routes {
    Routes::new()
        .merge(devices::routes())
        .merge(add_device::routes())
        .merge(releases::routes())
        .merge(variables::routes())
        .merge(settings::routes())
        .merge(together::routes())
}
