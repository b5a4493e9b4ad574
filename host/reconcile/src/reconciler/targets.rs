//! New targets, local and the cloud's, and queries about those in force.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use model::compose::DeviceFacts;
use model::{
    AppId, AppUuid, DesiredHost, DesiredState, EngineKind, RefusedTarget, SetTargetError,
    TargetState, error_chain,
};
use serde_json::Value;
use store::TargetSource;
use tokio::sync::oneshot;

use super::Reconciler;
use crate::messages::Command;
use crate::persistence::LocalMode;
use crate::step_context::publish;
use crate::target::{AcceptedTarget, TargetReader};
use crate::targets::ModeTransition;
use crate::{SigningState, target};

/// How long the answer to a new target waits for warnings about the host.
const SOON: Duration = Duration::from_secs(10);

impl Reconciler {
    /// Returns the apps of the cloud's last target, whether it is in force or not.
    #[must_use]
    pub fn apps_of_the_cloud(&self) -> Vec<(AppId, AppUuid)> {
        self.targets().borrow().apps_of_the_cloud()
    }

    /// Accepts a new local target: checks it as a whole, stores it, and returns once the state says that it is being
    /// applied, with one sentence for each part of it that will not be done. `force` overrides update locks until it
    /// has been.
    ///
    /// # Errors
    /// Returns [`SetTargetError`]; then nothing has changed.
    pub async fn set_local_target(
        &self,
        body: Value,
        force: bool,
    ) -> Result<Vec<String>, SetTargetError> {
        let inner = &self.inner;
        let _one_at_a_time = inner.context.channels.setting.lock().await;
        if !self.local_mode() {
            return Err(SetTargetError::NotLocalMode);
        }
        let (reader, judge) = (self.reader(), Arc::clone(&inner.judge));
        let reading = move || {
            judge.allow_local()?;
            reader.local(&body).map(|read| (read, body))
        };
        let read = tokio::task::spawn_blocking(reading).await;
        let (read, body) = read.map_err(|error| SetTargetError::Store(error.to_string()))??;
        let leaves = target::leaves_local_mode(&read.target.target);
        if leaves && !inner.managed {
            return Err(SetTargetError::NoCloud);
        }
        let ignored = self.ignored_by_engines(&read.target.desired);
        let persistence = &inner.context.persistence;
        let variables = read.target.target.config.clone();
        // If the loop has ended, the next start applies the target.
        let _ = if leaves {
            let noted = persistence.set_local_mode(LocalMode::Leaving).await;
            noted.map_err(SetTargetError::Store)?;
            self.ask(|reply| self.leave_local_mode(reply)).await
        } else {
            let stored = persistence.set_target(TargetSource::Local, body).await;
            stored.map_err(SetTargetError::Store)?;
            self.targets()
                .send_modify(|targets| targets.local = Some(read.target));
            let target = self.targets().borrow().target_in_local_mode();
            let command = |reply| Command::Target {
                target,
                force,
                reply,
            };
            self.ask(command).await
        };
        let mut warnings = read.warnings;
        warnings.extend(ignored);
        warnings.extend(self.warnings_of_host(&variables).await);
        Ok(warnings)
    }

    /// Returns the parts of services that an engine will not apply, for services whose engine is known already: those
    /// of components in files, or all of them if there is only one engine.
    fn ignored_by_engines(&self, desired: &DesiredState) -> Vec<String> {
        let engines = &self.inner.context.engines;
        let mut all = engines.all();
        let only = all.next().filter(|_| all.next().is_none());
        let mut warnings = Vec::new();
        for app in desired.apps.values() {
            for (name, service) in &app.services {
                let config = &service.config;
                let engine = if config.image.is_file() {
                    engines.get(EngineKind::Wasm)
                } else {
                    only
                };
                let ignored = engine.map(|engine| engine.ignored(config));
                for what in ignored.unwrap_or_default() {
                    warnings.push(format!("service `{name}`: {what}"));
                }
            }
        }
        warnings
    }

    /// Returns the parts of the boot configuration in these variables that will not be applied, as far as that can be
    /// determined in time.
    async fn warnings_of_host(&self, variables: &BTreeMap<String, String>) -> Vec<String> {
        let host = DesiredHost::from_variables(variables);
        if host.boot_config.is_empty() {
            return Vec::new();
        }
        let look = self.inner.context.host.compare(&host);
        let Ok(look) = tokio::time::timeout(SOON, look).await else {
            return Vec::new();
        };
        let failed = look.failed.into_iter();
        let failed = failed.map(|(part, why)| format!("the host's {part} is not changed: {why}"));
        look.warnings.into_iter().chain(failed).collect()
    }

    /// Accepts a new target from the cloud: checks it as a whole, stores it, and returns once the device follows it
    /// instead of the previous one, with one sentence for each part of it that will not be done. In local mode it has
    /// no effect, except that the mode may end and that its non-fleet apps are applied. `force` overrides update locks
    /// until it has been reached.
    ///
    /// # Errors
    /// Returns [`SetTargetError::Invalid`], [`SetTargetError::NotSigned`] or [`SetTargetError::Store`]; then nothing
    /// has changed.
    pub async fn set_cloud_target(
        &self,
        body: Value,
        force: bool,
    ) -> Result<Vec<String>, SetTargetError> {
        let inner = &self.inner;
        let _one_at_a_time = inner.context.channels.setting.lock().await;
        let targets = self.targets();
        // A mode switch in progress ends first (docs/spec/device.md#local-mode-last-word).
        let mut mode = targets.subscribe();
        let settled = mode.wait_for(|targets| targets.mode != LocalMode::Leaving);
        settled
            .await
            .map(drop)
            .map_err(|_| SetTargetError::Store("the supervisor is stopping".into()))?;

        let (reader, judge) = (self.reader(), Arc::clone(&inner.judge));
        let reading = move || reader.cloud(&body, &judge).map(|read| (read, body));
        let read = tokio::task::spawn_blocking(reading).await;
        let read = read.map_err(|error| SetTargetError::Store(error.to_string()))?;
        if let Ok((parsed, _)) = &read {
            self.publish_signing(parsed.accepted_releases.is_some(), None);
        } else if let Err(SetTargetError::NotSigned(refused)) = &read {
            self.publish_signing(true, Some(refused));
        }
        let (read, body) = read?;
        let persistence = &inner.context.persistence;
        // Before the target itself: a kill between the two costs nothing, since the same statement is accepted again.
        if let Some(accepted) = read.accepted_releases {
            let accepted = serde_json::to_value(accepted);
            let accepted = accepted.map_err(|error| SetTargetError::Store(error_chain(&error)))?;
            let stored = persistence.call(move |store| store.set_signed_targets(&accepted));
            stored.await.map_err(SetTargetError::Store)?;
        }
        let turn = targets.borrow().turn(&read.target.target);
        let (reply, acknowledged) = oneshot::channel();
        let command = match turn {
            ModeTransition::Stays => {
                let stored = persistence.set_target(TargetSource::Cloud, body).await;
                stored.map_err(SetTargetError::Store)?;
                targets.send_modify(|targets| targets.cloud = Some(read.target));
                let targets = targets.borrow();
                let target = match targets.local_mode() {
                    // Running containers are left alone until there is a readable local target.
                    true if inner.stored_target_is_unreadable && targets.local.is_none() => None,
                    true => Some(targets.target_in_local_mode()),
                    false => targets.target_of_the_cloud(),
                };
                target.map(|target| Command::Target {
                    target,
                    force,
                    reply,
                })
            }
            ModeTransition::Enters => {
                // The variables and the name stay the same, without the apps.
                let first = TargetState {
                    apps: Default::default(),
                    ..(*read.target.target).clone()
                };
                let local = first.to_local_json(true);
                let stored = persistence.open_local_mode(local, body).await;
                stored.map_err(SetTargetError::Store)?;
                targets.send_modify(|targets| {
                    targets.mode = LocalMode::On;
                    targets.cloud = Some(read.target);
                    targets.local = Some(AcceptedTarget {
                        target: Arc::new(first),
                        desired: Arc::default(),
                    });
                });
                let target = targets.borrow().target_in_local_mode();
                Some(Command::EnterLocalMode { target, reply })
            }
            ModeTransition::Leaves => {
                let stored = async {
                    persistence.set_local_mode(LocalMode::Leaving).await?;
                    persistence.set_target(TargetSource::Cloud, body).await
                };
                stored.await.map_err(SetTargetError::Store)?;
                targets.send_modify(|targets| targets.cloud = Some(read.target));
                Some(self.leave_local_mode(reply))
            }
        };
        for warning in &read.warnings {
            inner.context.log(warning.clone());
            tracing::warn!("the cloud's target: {warning}");
        }
        if let Some(command) = command {
            self.command(command);
            // If the loop has ended, the next start applies the target.
            let _ = acknowledged.await;
        }
        Ok(read.warnings)
    }

    /// Publishes the state of a target's signatures. A refusal is logged unless it repeats the last one.
    fn publish_signing(&self, is_required: bool, refused: Option<&RefusedTarget>) {
        let context = &self.inner.context;
        let next = SigningState {
            is_required,
            refused: refused.cloned(),
        };
        if publish(&context.channels.signing, next)
            && let Some(refused) = refused
        {
            for reason in &refused.reasons {
                context.log(format!("The cloud's target is refused: {reason}"));
            }
        }
    }

    /// Marks local mode as ending, which is stored already, and returns the command for the loop.
    fn leave_local_mode(&self, reply: oneshot::Sender<()>) -> Command {
        let targets = self.targets();
        targets.send_modify(|targets| {
            targets.mode = LocalMode::Leaving;
            targets.local = None;
        });
        Command::LeaveLocalMode {
            resumes: targets.borrow().target_of_the_cloud(),
            reply,
        }
    }

    pub(super) fn reader(&self) -> TargetReader {
        TargetReader {
            facts: self.facts(),
            offers: self.inner.offers.clone(),
            store: self.inner.context.persistence.store().clone(),
        }
    }

    /// Returns the facts, with the name from the targets.
    fn facts(&self) -> DeviceFacts {
        DeviceFacts {
            name: self.device_name(),
            ..(self.inner.facts)()
        }
    }

    /// Returns the device's name from the target in force. Cheap: each call of a plugin may ask for it.
    #[must_use]
    pub fn device_name(&self) -> String {
        let targets = self.targets().borrow();
        let name = targets.in_force().map(|target| &target.name);
        name.unwrap_or(&self.inner.unnamed).clone()
    }

    /// Returns the configuration variables in force, without defaults for those that are not set.
    #[must_use]
    pub fn variables(&self) -> BTreeMap<String, String> {
        self.targets().borrow().variables()
    }

    /// Returns the object `{ "local": … }` of `GET /v2/local/target-state`. If no local target was set, it has no apps;
    /// it still contains the device's name and variables, since clients change them and post the whole object again.
    #[must_use]
    pub fn local_target(&self) -> Value {
        let targets = self.targets().borrow();
        if let Some(local) = &targets.local {
            return local.target.to_local_json(targets.local_mode());
        }
        let (on, config) = (targets.local_mode(), targets.variables());
        drop(targets);
        let none = TargetState {
            name: self.device_name(),
            config,
            ..TargetState::default()
        };
        none.to_local_json(on)
    }

    /// Returns whether the device is in local mode (docs/spec/device.md#local-mode).
    #[must_use]
    pub fn local_mode(&self) -> bool {
        self.targets().borrow().local_mode()
    }
}
