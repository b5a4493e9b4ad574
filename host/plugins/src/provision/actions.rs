//! Asks other plugins to perform their own actions, if the policy names them.

use plugin_protocol::{ActionRequest, Origin, OwnActionError};

use crate::plugin_context::PluginContext;
use crate::text::{LONGEST, one_line};

impl PluginContext {
    pub(super) async fn call_action(
        &self,
        origin: &Origin,
        ActionRequest { action, input }: ActionRequest,
    ) -> Result<Vec<u8>, OwnActionError> {
        if !self.grants.actions.contains(&action) {
            return Err(OwnActionError::NotGranted(format!(
                "the policy does not name `{}` in `actions` of the plugin `{}`",
                one_line(&action, LONGEST),
                self.name
            )));
        }
        let origin = origin.through(&self.name);
        self.actions.call_own(origin, &action, input).await
    }
}
