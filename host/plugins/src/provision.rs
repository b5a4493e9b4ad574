//! What the host does for plugins, in response to the calls of `plugin_protocol`. The guarantees of each call are in
//! `wit/`.
//!
//! One file for each capability of ours implements the trait `Host` of its interface, or [`Provide`] for each call that
//! is not generated. Each call is checked here against the grants of the calling plugin, although only granted
//! capabilities are linked: the calling instance belongs to the plugin, so its word is not trusted.

include!("../../../wit/capabilities.rs");
include!("../../../wit/modules.rs");
capabilities!(modules [pub(crate)]);

use std::sync::Arc;

use ::http::Method;
use plugin_protocol::{
    CapabilityAnswer as Answer, CapabilityCall as Call, IdentifyWindow, Origin, Provide,
};

use crate::actions::Actions;
use crate::holdings::Holdings;
use crate::identify::Identify;
use crate::plugin_context::PluginContext;
use crate::refusal::Refusal;

/// Returns the method of a plugin's request if it is one of `allowed`.
fn method_of(name: &str, allowed: &[Method]) -> Option<Method> {
    let method = Method::from_bytes(name.as_bytes()).ok()?;
    allowed.contains(&method).then_some(method)
}

/// A call of an instance: the host carries it out for this plugin.
pub(crate) struct InstanceCall<'a> {
    pub(crate) plugin: &'a Arc<PluginContext>,
    /// What the instance holds.
    pub(crate) holdings: &'a Holdings,
    /// Where the call that the instance serves comes from.
    pub(crate) origin: &'a Origin,
    pub(crate) identify: &'a Identify,
    pub(crate) actions: &'a Actions,
}

impl InstanceCall<'_> {
    /// Carries out the call if the policy grants the plugin what it requires.
    pub(crate) async fn carry_out(&self, call: Call) -> Result<Answer, Refusal> {
        match call.capability() {
            Some(capability) if !self.plugin.grants.grants.contains(&capability) => {
                Err(Refusal::Grant {
                    plugin: self.plugin.name.to_string(),
                    call: call.name(),
                    capability,
                })
            }
            _ => call.provide(self).await,
        }
    }
}

impl Provide<IdentifyWindow, Refusal> for InstanceCall<'_> {
    async fn provide(&self, _: IdentifyWindow) -> Result<u32, Refusal> {
        Ok(self.identify.remaining_ms())
    }
}

#[cfg(test)]
pub(crate) mod tests;
