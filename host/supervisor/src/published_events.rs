//! Events that the supervisor itself publishes: power and plugins.

use device_types::Event;
use device_types::event::{PluginFault, PowerRequested};
use model::PowerAction;

/// The host is going down.
pub(crate) fn power(action: PowerAction, force: bool) -> Event {
    Event::Power(PowerRequested { action, force })
}

/// A plugin failed.
pub(crate) fn fault(plugin: &str, message: &str) -> Event {
    Event::PluginFault(PluginFault {
        plugin: plugin.to_owned(),
        message: message.to_owned(),
    })
}
