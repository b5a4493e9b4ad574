//! The boot configuration of a target, which a plugin writes on this board.

use std::collections::BTreeMap;

use model::{DesiredHost, HostPart};
use plugins::{Action, BootComparison, BootConfigError, BootSetting};
use reconcile::HostComparison;

use super::HostSettings;

impl HostSettings {
    async fn compare_boot_config(
        &self,
        desired: &DesiredHost,
    ) -> Result<BootComparison, BootConfigError> {
        let parts = self.parts().await.map_err(BootConfigError::Failed)?;
        let plugins = parts.plugins.settled_in_time(Action::BootConfig).await;
        let plugins = plugins.ok_or(BootConfigError::Unavailable)?;
        plugins.compare_boot_config(settings(desired)).await
    }

    /// Adds what of the boot configuration differs from the target, and what prevents a change.
    pub(super) async fn look_at_boot_config(
        &self,
        desired: &DesiredHost,
        look: &mut HostComparison,
    ) {
        const PART: HostPart = HostPart::BootConfig;
        match self.compare_boot_config(desired).await {
            Ok(compared) => {
                for name in &compared.foreign {
                    look.warnings.push(format!(
                        "`{name}` has no meaning in the boot configuration of this board, and is only stored"
                    ));
                }
                if let Some(why) = refusal(&compared) {
                    look.failed.insert(PART, why);
                } else if !compared.changes.is_empty() {
                    look.differs.insert(PART);
                }
            }
            Err(none @ BootConfigError::Unavailable) => {
                look.look_again = true;
                if !desired.boot_config.is_empty() {
                    let names: Vec<_> = desired.boot_config.keys().map(String::as_str).collect();
                    let names = names.join("`, `");
                    look.warnings
                        .push(format!("{none}: `{names}` are only stored"));
                }
            }
            Err(BootConfigError::Failed(why)) => {
                look.failed.insert(PART, why);
            }
        }
    }

    /// Writes the boot configuration if it differs from the target.
    pub(super) async fn set_boot_config(&self, desired: &DesiredHost) -> Result<(), String> {
        let parts = self.parts().await?;
        let plugins = parts.plugins.settled_in_time(Action::BootConfig).await;
        let plugins = plugins.ok_or("plugins have not been loaded")?;
        let failed = |error: BootConfigError| error.to_string();
        let before = plugins.compare_boot_config(settings(desired)).await;
        let before = before.map_err(failed)?;
        if let Some(why) = refusal(&before) {
            return Err(why);
        }
        if before.changes.is_empty() {
            return Ok(());
        }
        // First, so that a kill in between causes an unnecessary reboot rather than losing a
        // necessary one.
        let marks = before.needs_reboot && !self.boots.is_reboot_due();
        if marks {
            self.require_reboot().await?;
        }
        let written = async {
            plugins
                .set_boot_config(settings(desired))
                .await
                .map_err(failed)?;
            let after = plugins.compare_boot_config(settings(desired)).await;
            match after.map_err(failed)?.changes {
                left if left.is_empty() => Ok(()),
                left => Err(format!(
                    "it was written, but `{}` still differs from the target",
                    left.join("`, `")
                )),
            }
        };
        let written = written.await;
        if written.is_err() && marks {
            self.boots.require_none();
        }
        written?;
        tracing::info!(
            "the boot configuration was changed: {}",
            before.changes.join(", ")
        );
        Ok(())
    }
}

fn settings(desired: &DesiredHost) -> Vec<BootSetting> {
    let settings: &BTreeMap<String, String> = &desired.boot_config;
    settings
        .iter()
        .map(|(name, value)| BootSetting {
            name: name.clone(),
            value: value.clone(),
        })
        .collect()
}

/// Returns the reason why nothing is written.
fn refusal(compared: &BootComparison) -> Option<String> {
    let refused: Vec<String> = compared
        .refused
        .iter()
        .map(|(name, why)| format!("`{name}`: {why}"))
        .collect();
    (!refused.is_empty()).then(|| refused.join("; "))
}
