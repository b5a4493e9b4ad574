//! Asks other plugins to perform their own actions, if the policy names them.

use plugin_protocol::text::{LONGEST, one_line};
use plugin_protocol::wit::actions::{ActionError, Host};

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn call(&self, action: String, input: Vec<u8>) -> Result<Vec<u8>, ActionError> {
        let plugin = self.plugin;
        if !plugin.grants.actions.contains(&action) {
            return Err(ActionError::NotGranted(format!(
                "the policy does not name `{}` in `actions` of the plugin `{}`",
                one_line(&action, LONGEST),
                plugin.name
            )));
        }
        let origin = self.origin.through(&plugin.name);
        self.actions.call_own(origin, &action, input).await
    }
}
