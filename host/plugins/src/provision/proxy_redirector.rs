//! Has the plugin that provides the action `proxy-redirector` configure the redirector of connections.

use plugin_protocol::{Provide, ProxyAnswer, ProxyError, ProxyRequest};

use super::InstanceCall;
use crate::proxy;
use crate::refusal::Refusal;

impl Provide<ProxyRequest, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        ProxyRequest { call }: ProxyRequest,
    ) -> Result<Result<ProxyAnswer, ProxyError>, Refusal> {
        let origin = self.origin.through(&self.plugin.name);
        Ok(proxy::call(self.actions, origin, call).await)
    }
}
