//! Reading of a target: checked as a whole and against the device before the device follows it.

use std::sync::Arc;

use model::compose::{DeviceFacts, ResolvedTarget, resolve};
use model::contracts::{self, DeviceProperties};
use model::{
    DesiredState, LocalDefaults, SetTargetError, TargetState, config_variables, read_flag,
};
use serde_json::Value;
use signed_targets::AcceptedReleases;
use store::Store;

use crate::signing::TargetJudge;

/// The variable for local mode.
const LOCAL_MODE: &str = "SUPERVISOR_LOCAL_MODE";

/// An accepted target.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedTarget {
    pub target: Arc<TargetState>,
    pub desired: Arc<DesiredState>,
}

/// A target that was read and resolved.
pub(crate) struct ParsedTarget {
    pub target: AcceptedTarget,
    /// One sentence for each part that will not be done.
    pub warnings: Vec<String>,
    /// The releases that the device has accepted with it, if targets must be signed.
    pub accepted_releases: Option<AcceptedReleases>,
}

/// The inputs for reading targets.
pub(crate) struct TargetReader {
    pub facts: DeviceFacts,
    pub offers: DeviceProperties,
    pub store: Store,
}

impl TargetReader {
    /// Reads and resolves a local target, which is accepted as a whole or not at all. Blocks on the store for services'
    /// API keys.
    pub(crate) fn local(self, body: &Value) -> Result<ParsedTarget, SetTargetError> {
        let defaults = LocalDefaults {
            device_name: self.facts.name.clone(),
            branding: self.facts.branding.clone(),
        };
        let target = TargetState::from_local_json(body, &defaults);
        let (target, resolved) = self.resolve(target.map_err(SetTargetError::Invalid)?)?;
        if let Some(problems) = resolved.problems() {
            return Err(SetTargetError::Invalid(problems));
        }
        Ok(ParsedTarget {
            target,
            warnings: resolved.warnings,
            accepted_releases: None,
        })
    }

    /// Reads, judges and resolves a new target of the cloud. If it must be signed and differs from what was signed, it
    /// is refused as a whole. Otherwise, an app that this device cannot run is rejected, and the others are accepted
    /// (docs/spec/device.md#contracts). Blocks on the policy, and on the store for services' API keys.
    pub(crate) fn cloud(
        self,
        body: &Value,
        judge: &TargetJudge,
    ) -> Result<ParsedTarget, SetTargetError> {
        let target = self.parse(body)?;
        let accepted_releases = judge.judge(&target, &self.facts, &self.store)?;
        Ok(ParsedTarget {
            accepted_releases,
            ..self.accept_cloud_target(target)?
        })
    }

    /// Like [`Self::cloud`], for the stored target, which was judged before it was stored.
    pub(crate) fn stored_of_the_cloud(self, body: &Value) -> Result<ParsedTarget, SetTargetError> {
        let target = self.parse(body)?;
        self.accept_cloud_target(target)
    }

    /// Resolves a target that was accepted before, with the current state of the store and the device.
    pub(crate) fn again(self, target: &TargetState) -> Result<DesiredState, SetTargetError> {
        let (_, resolved) = self.resolve(target.clone())?;
        Ok(resolved.desired)
    }

    fn parse(&self, body: &Value) -> Result<TargetState, SetTargetError> {
        let target = TargetState::from_cloud_json(body, &self.facts.uuid, &self.facts.branding);
        target.map_err(SetTargetError::Invalid)
    }

    fn accept_cloud_target(self, target: TargetState) -> Result<ParsedTarget, SetTargetError> {
        let (target, resolved) = self.resolve(target)?;
        let mut warnings = resolved.warnings;
        for (app, problems) in &resolved.rejected {
            let problems: Vec<String> = problems.problems().iter().map(|p| p.to_string()).collect();
            warnings.push(format!(
                "app `{app}` is rejected, and its running services are left alone: {}",
                problems.join("; ")
            ));
        }
        Ok(ParsedTarget {
            target,
            warnings,
            accepted_releases: None,
        })
    }

    fn resolve(
        mut self,
        target: TargetState,
    ) -> Result<(AcceptedTarget, ResolvedTarget), SetTargetError> {
        // Services receive the name from the same target.
        self.facts.name.clone_from(&target.name);
        let mut runnable = target.clone();
        let outcome = contracts::hold_to(&mut runnable, &self.offers, &self.facts.branding);
        let outcome = outcome.map_err(SetTargetError::Invalid)?;
        let resolved = resolve(&runnable, &self.facts, &self.store);
        let mut resolved =
            resolved.map_err(|error| SetTargetError::Store(model::error_chain(&error)))?;
        let mut warnings = config_variables::problems(&target.config);
        warnings.extend(outcome.dropped);
        for (uuid, why) in outcome.rejected {
            if let Some(app) = resolved.desired.apps.get_mut(&uuid) {
                app.rejected = true;
                app.services.clear();
                app.volumes.clear();
                app.networks.clear();
                warnings.push(format!(
                    "app `{}` is rejected, and its running services are left alone: {why}",
                    app.name
                ));
            }
        }
        warnings.append(&mut resolved.warnings);
        resolved.warnings = warnings;
        let accepted = AcceptedTarget {
            target: Arc::new(target),
            desired: Arc::new(resolved.desired.clone()),
        };
        Ok((accepted, resolved))
    }
}

/// Returns whether a local target ends local mode. A target without the variable does not, although its default is
/// false: it was set in local mode.
pub(crate) fn leaves_local_mode(target: &TargetState) -> bool {
    let value = target.config.get(LOCAL_MODE);
    value.is_some_and(|value| read_flag(value) == Some(false))
}

/// Returns whether the cloud's target requests local mode.
pub(crate) fn wants_local_mode(target: &TargetState) -> bool {
    config_variables::flag(&target.config, LOCAL_MODE)
}
