//! LEDs that plugins take over for a while.

use std::sync::Arc;

use parking_lot::Mutex;
use plugin_protocol::{LedError, LedNames, LedOpen, LedSet, OpenLed, Provide};

use super::InstanceCall;
use crate::hardware::led_memory::LedHolder;
use crate::holdings::HeldResource;
use crate::refusal::Refusal;

impl InstanceCall<'_> {
    async fn led_names(&self) -> Result<Vec<String>, LedError> {
        let context = Arc::clone(self.plugin);
        let names = move || context.hardware.leds.names(context.grants.leds.as_ref());
        let names = self
            .plugin
            .share
            .jobs
            .run(names)
            .await
            .ok_or_else(stopping)?;
        names.map_err(|error| LedError::Other(format!("the LEDs cannot be listed: {error}")))
    }

    async fn open_led(&self, name: String) -> Result<OpenLed, LedError> {
        // The LED's state may have to be written to the disk first, which can take time.
        let context = Arc::clone(self.plugin);
        let open = move || {
            let take_write = || {
                let written = context.services.data.take_write(&context.data_owner());
                written.map_err(|why| {
                    format!(
                        "opening it writes a note to the disk, and {why}: open it less often, or keep it open"
                    )
                })
            };
            let holder = LedHolder {
                plugin: Arc::clone(&context.name),
                lines: context.share.log.host_lines.clone(),
            };
            let leds = &context.hardware.leds;
            leds.open(&name, context.grants.leds.as_ref(), holder, take_write)
        };
        let light = self
            .plugin
            .share
            .jobs
            .run(open)
            .await
            .ok_or_else(stopping)??;
        let max = light.most;
        self.holdings
            .add(HeldResource::Light(Arc::new(Mutex::new(light))))
            .map(|light| OpenLed { light, max })
            .map_err(|_| LedError::Other("too many LEDs at a time".to_owned()))
    }
}

impl Provide<LedNames, Refusal> for InstanceCall<'_> {
    async fn provide(&self, _: LedNames) -> Result<Result<Vec<String>, LedError>, Refusal> {
        Ok(self.led_names().await)
    }
}

impl Provide<LedOpen, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        LedOpen { name }: LedOpen,
    ) -> Result<Result<OpenLed, LedError>, Refusal> {
        Ok(self.open_led(name).await)
    }
}

impl Provide<LedSet, Refusal> for InstanceCall<'_> {
    async fn provide(
        &self,
        LedSet { light, brightness }: LedSet,
    ) -> Result<Result<(), LedError>, Refusal> {
        let light = self.holdings.light(light)?;
        // A driver may take time, during which others must be answered.
        let set = move || {
            let mut light = light.lock();
            light.set(brightness)
        };
        Ok(match self.plugin.share.jobs.run(set).await {
            Some(set) => set.map_err(|error| LedError::Other(error.to_string())),
            None => Err(stopping()),
        })
    }
}

fn stopping() -> LedError {
    LedError::Other("the supervisor is stopping".to_owned())
}
