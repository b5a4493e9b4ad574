//! A runtime around another one that creates each plugin in its own way, so that neither the runtime nor the host knows of
//! it.

use std::fs::File;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use plugin_protocol::{Blueprint, ComponentFacts, GuestCode, GuestPlugin, GuestRuntime, HostCalls};

/// A way to create plugins.
pub(crate) trait PluginWrapper: Send + Sync + 'static {
    /// Creates a plugin of this code.
    fn plugin(
        &self,
        code: &dyn GuestCode,
        blueprint: Blueprint,
        host: Arc<dyn HostCalls>,
    ) -> Arc<dyn GuestPlugin>;
}

/// A runtime whose plugins are created by a wrapper.
pub(crate) struct WrappedRuntime {
    pub(crate) runtime: Arc<dyn GuestRuntime>,
    pub(crate) wrapper: Arc<dyn PluginWrapper>,
}

impl GuestRuntime for WrappedRuntime {
    fn open(&self, file: File) -> BoxFuture<'static, Result<Arc<dyn GuestCode>, String>> {
        let opening = self.runtime.open(file);
        let wrapper = Arc::clone(&self.wrapper);
        async move {
            let code = opening.await?;
            Ok(Arc::new(WrappedCode { code, wrapper }) as Arc<dyn GuestCode>)
        }
        .boxed()
    }

    fn slots(&self) -> usize {
        self.runtime.slots()
    }

    fn set_memory(&self, bytes: usize) {
        self.runtime.set_memory(bytes);
    }

    fn problems(&self) -> Vec<String> {
        self.runtime.problems()
    }
}

struct WrappedCode {
    code: Arc<dyn GuestCode>,
    wrapper: Arc<dyn PluginWrapper>,
}

impl GuestCode for WrappedCode {
    fn facts(&self) -> &ComponentFacts {
        self.code.facts()
    }

    fn plugin(&self, blueprint: Blueprint, host: Arc<dyn HostCalls>) -> Arc<dyn GuestPlugin> {
        self.wrapper.plugin(&*self.code, blueprint, host)
    }
}
