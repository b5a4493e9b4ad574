//! The start: creates the loop from the store and the configuration.

use std::sync::Arc;

use model::compose::{DeviceFacts, SUPERVISOR_GATEWAY, SUPERVISOR_SUBNET};
use model::{
    CONFIG_DIGEST_LABEL, DesiredNetwork, DeviceStatus, IpamPool, NetworkConfig, SetTargetError,
};
use store::StoreError;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::{Reconciler, SharedReconciler};
use crate::config::ReconcilerConfig;
use crate::events::EngineEvents;
use crate::logs::LogHub;
use crate::persistence::{LocalMode, Persistence};
use crate::signing::TargetJudge;
use crate::step_context::{StepContext, TargetChannels, Telemetry};
use crate::target::{AcceptedTarget, ParsedTarget, TargetReader};
use crate::targets::Targets;
use crate::task::{ReconcilerTask, StartState};
use crate::{Locks, SigningState};

/// The store could not be read at the start.
#[derive(Debug, thiserror::Error)]
#[error("failed to read what the reconciler starts from")]
pub struct StartError(#[from] StoreError);

impl Reconciler {
    /// Reads the stored target and starts to apply it. Must be called within a runtime; blocks only for the store, and
    /// returns before any engine has been queried.
    ///
    /// # Errors
    /// Returns [`StartError`] if the store cannot be read.
    pub fn start(config: ReconcilerConfig) -> Result<Reconciler, StartError> {
        config.moments.follow(&config.store);
        let persistence = Persistence::new(config.store.clone());
        let mut memory = persistence.recover()?;
        let facts = (config.facts)();
        let locks = Locks::new(
            &config.host_root,
            &facts.branding,
            &memory.lock_marker,
            config.store.clone(),
        );
        locks.sweep();
        locks.recall_leases()?;

        // A device without a cloud has no other mode. Leftovers of an earlier local mode are cleaned up first
        // (docs/spec/device.md#local-mode).
        if memory.local_mode == LocalMode::Off && memory.snapshot.is_some() {
            memory.local_mode = LocalMode::Leaving;
        } else if memory.local_mode == LocalMode::Off && !config.managed {
            persistence.enter_local_mode()?;
            memory.local_mode = LocalMode::On;
        }
        let reader = || TargetReader {
            facts: facts.clone(),
            offers: config.offers.clone(),
            store: config.store.clone(),
        };
        let stored = memory.cloud_target.as_ref().filter(|_| config.managed);
        let cloud = stored.map(|body| reader().stored_of_the_cloud(body));
        let stored = memory.local_target.as_ref();
        let stored = stored.filter(|_| memory.local_mode == LocalMode::On);
        let local = stored.map(|body| reader().local(body));
        // Running containers are left alone until there is a readable target.
        let unreadable = match memory.local_mode {
            LocalMode::On => matches!(local, Some(Err(_))),
            LocalMode::Leaving | LocalMode::Off => matches!(cloud, Some(Err(_))),
        };
        let targets = Targets {
            mode: memory.local_mode,
            local: recalled(local),
            cloud: recalled(cloud),
        };
        let (target, resumes) = match targets.mode {
            LocalMode::On if unreadable => (None, None),
            LocalMode::On => (Some(targets.target_in_local_mode()), None),
            LocalMode::Off => (targets.target_of_the_cloud(), None),
            LocalMode::Leaving => (None, targets.target_of_the_cloud()),
        };

        let judge = TargetJudge {
            read_policy: config.target_policy,
        };
        let signing = SigningState {
            is_required: judge.is_required(),
            refused: None,
        };
        if signing.is_required {
            tracing::info!("targets are accepted only if they are signed as the policy requires");
        }

        let stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let (sender, messages) = tokio::sync::mpsc::unbounded_channel();
        let limits = config.limits;
        let hub = LogHub::start(
            config.engines.clone(),
            limits.log_lines,
            persistence.store(),
            stop.clone(),
        );
        let context = Arc::new(StepContext {
            host: config.host,
            telemetry: Telemetry::new(hub, config.on_event),
            channels: TargetChannels::new(targets, signing),
            branding: facts.branding.clone(),
            persistence,
            locks,
            moments: config.moments,
            pulls: Semaphore::new(limits.pulls.max(1)),
            steps: Semaphore::new(limits.steps.max(1)),
            messages: sender.clone(),
            engines: config.engines,
        });
        // Until the engines have answered, the device is still checking what to do.
        let checking = DeviceStatus {
            applying: target.is_some(),
            update_pending: target.is_some(),
            ..DeviceStatus::default()
        };
        let (publish, status) = watch::channel(Arc::new(checking));
        let announced = EngineEvents::listen(&context.engines, limits.engine_retry_cap, &stop);
        let keeping = context.locks.clone().keep_leases();
        tokio::spawn(stop.clone().run_until_cancelled_owned(keeping));
        let start = StartState {
            memory,
            target,
            resumes,
            api_network: api_network(&facts),
            managed: config.managed,
        };
        let task = ReconcilerTask::new(Arc::clone(&context), &limits, start, publish);
        let running = task.run(messages, announced, stop.clone(), limits.shutdown);
        let end = ended.clone().drop_guard();
        tokio::spawn(async move {
            running.await;
            drop(end);
        });
        Ok(Reconciler {
            inner: Arc::new(SharedReconciler {
                context,
                facts: config.facts,
                unnamed: facts.name,
                offers: config.offers,
                judge: Arc::new(judge),
                managed: config.managed,
                status,
                messages: sender,
                stop,
                ended,
                stored_target_is_unreadable: unreadable,
            }),
        })
    }
}

/// Returns a stored target, if it can still be read.
fn recalled(read: Option<Result<ParsedTarget, SetTargetError>>) -> Option<AcceptedTarget> {
    match read? {
        Ok(read) => {
            for warning in &read.warnings {
                tracing::warn!("{warning}");
            }
            Some(read.target)
        }
        Err(error) => {
            tracing::error!("the stored target state is not applied: {error}");
            None
        }
    }
}

/// Returns the network of the API in the form for engines. It is created if it is missing, and never compared.
fn api_network(facts: &DeviceFacts) -> DesiredNetwork {
    let branding = &facts.branding;
    let digest = "api".to_owned();
    let mut labels = branding.device_labels(&facts.uuid);
    labels.insert(branding.label(CONFIG_DIGEST_LABEL), digest.clone());
    DesiredNetwork {
        engine_name: branding.network.clone(),
        config: NetworkConfig {
            driver: "bridge".into(),
            ipam_driver: "default".into(),
            ipam: vec![IpamPool {
                subnet: Some(SUPERVISOR_SUBNET.into()),
                gateway: Some(SUPERVISOR_GATEWAY.into()),
                ..IpamPool::default()
            }],
            labels,
            ..NetworkConfig::default()
        },
        digest,
    }
}
