//! The device that a test or the tool defines, with what only a host in the same program can have.

mod start;

use std::path::PathBuf;
use std::sync::Arc;

use plugins::Cloud;
use supervisor_testing::protocol::Setup;

use crate::action_observer::ActionObserver;
use crate::call_filter::CallFilter;

/// A device whose host is part of this program; [`EmbeddedHost::start`] starts it.
pub struct EmbeddedHost {
    setup: Setup,
    cloud: Option<Arc<dyn Cloud>>,
    code_cache: Option<PathBuf>,
    reuses_functions: bool,
    compiler: Option<PathBuf>,
    folder: Option<PathBuf>,
    call_filter: Option<Arc<dyn CallFilter>>,
    action_observer: Option<Arc<dyn ActionObserver>>,
}

impl EmbeddedHost {
    /// Creates the device that a [`supervisor_testing::Host`] describes.
    #[must_use]
    pub fn new(device: impl Into<Setup>) -> Self {
        Self {
            setup: device.into(),
            cloud: None,
            code_cache: None,
            reuses_functions: false,
            compiler: None,
            folder: None,
            call_filter: None,
            action_observer: None,
        }
    }

    /// Connects the device to this cloud, instead of one with the described records.
    #[must_use]
    pub fn cloud(mut self, cloud: impl Cloud) -> Self {
        self.cloud = Some(Arc::new(cloud));
        self
    }

    /// Keeps compiled code in this folder, for later hosts. Without this, each host compiles its plugins.
    #[must_use]
    pub fn code_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.code_cache = Some(folder.into());
        self
    }

    /// Compiles only those functions of a large plugin that no plugin with the same folder of compiled code had before: for
    /// plugins that are all the author's own ([`compiled_code::Cache::reusing_functions_from`]).
    #[must_use]
    pub fn reuse_functions(mut self) -> Self {
        self.reuses_functions = true;
        self
    }

    /// Keeps the device's files in this folder: a later host finds there what plugins have stored. Without this they
    /// are in a temporary folder.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Has this filter change the answers that plugins receive from their host.
    #[must_use]
    pub fn call_filter(mut self, filter: Arc<dyn CallFilter>) -> Self {
        self.call_filter = Some(filter);
        self
    }

    /// Has this observer see the calls of plugins for events and actions.
    #[must_use]
    pub fn action_observer(mut self, observer: Arc<dyn ActionObserver>) -> Self {
        self.action_observer = Some(observer);
        self
    }

    /// Compiles plugins with this program, which accepts the arguments of `supervisor-compile`.
    #[must_use]
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.compiler = Some(program.into());
        self
    }
}
