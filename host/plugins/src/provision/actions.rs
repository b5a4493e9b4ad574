//! Asks other plugins to perform their own actions, if the policy names them.

use plugin_protocol::{
    ACTION_BYTES, ActionAnswer, ActionCall, ActionRequest, Origin, OwnActionError, OwnCall,
};

use crate::actions::perform;
use crate::plugin_context::PluginContext;
use crate::text::{LONGEST, cut, one_line};

impl PluginContext {
    pub(super) async fn call_action(
        &self,
        origin: &Origin,
        ActionRequest { action, input }: ActionRequest,
    ) -> Result<Vec<u8>, OwnActionError> {
        let shown = || one_line(&action, LONGEST);
        if !self.grants.actions.contains(&action) {
            return Err(OwnActionError::NotGranted(format!(
                "the policy does not name `{}` in `actions` of the plugin `{}`",
                shown(),
                self.name
            )));
        }
        if input.len() > ACTION_BYTES {
            let why = format!("the input has more than {} KiB", ACTION_BYTES >> 10);
            return Err(OwnActionError::Invalid(why));
        }
        let provider = action.split_once('/').and_then(|(plugin, name)| {
            let provider = self.actions.own_provider(plugin, name)?;
            Some((provider, name))
        });
        let Some((provider, name)) = provider else {
            return Err(OwnActionError::Unavailable(format!(
                "no plugin of this device provides `{}`",
                shown()
            )));
        };
        let call = ActionCall::Own(OwnCall {
            name: name.to_owned(),
            input,
        });
        match perform(&provider, origin.through(&self.name), call).await {
            Ok(ActionAnswer::Own(Ok(output))) if output.len() <= ACTION_BYTES => Ok(output),
            Ok(ActionAnswer::Own(Err(why))) => Err(OwnActionError::Refused(cut(why))),
            Ok(_) => Err(OwnActionError::Failed(
                "it answered another call".to_owned(),
            )),
            Err(error) => Err(OwnActionError::Failed(error.to_string())),
        }
    }
}
