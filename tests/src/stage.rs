//! A device with its own app and a registry, for suites that test the same on both engines.

use crate::layout::guest;
use crate::registry::Registry;
use crate::supervisor::Supervisor;

/// A device on one engine, the number of an app that only this test uses there, and a registry whose images nobody has
/// yet.
pub struct Stage {
    pub device: Supervisor,
    pub registry: Registry,
    pub app: u64,
    pub on_docker: bool,
}

impl Stage {
    /// A device on the wasm engine.
    pub async fn on_wasm(app: u64) -> Self {
        Self::with(Supervisor::on_wasm().start().await, app, false).await
    }

    /// A device on Docker; returns `None`, and prints a line about it, if there is none.
    pub async fn on_docker(app: u64) -> Option<Self> {
        let device = Supervisor::on_docker()?.start().await;
        Some(Self::with(device, app, true).await)
    }

    async fn with(device: Supervisor, app: u64, on_docker: bool) -> Self {
        Stage {
            device,
            registry: Registry::start().await,
            app,
            on_docker,
        }
    }

    /// Publishes a unique image for the engine: the guest program, or busybox.
    ///
    /// # Panics
    /// If the guest was not built.
    #[must_use]
    pub fn publish(&self, note: &str) -> String {
        let note = format!("{note}-{}", self.app);
        if self.on_docker {
            self.registry.publish_busybox(&note)
        } else {
            let component = std::fs::read(guest("guest")).expect("the guest is built");
            self.registry.publish_component(&component, &note)
        }
    }
}
