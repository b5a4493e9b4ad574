//! One run of a supervisor, from its start to its kill or to the end of the update.

use std::sync::Arc;
use std::time::Duration;

use engine::Engines;
use model::contracts::DeviceProperties;
use model::{ActionError, DeviceStatus, Verb};
use reconcile::{Limits, Moments, Reconciler, ReconcilerConfig};
use serde_json::Value;
use store::Store;
use tokio::runtime::Runtime;

use super::device::{Holdings, Image};
use super::picture::Picture;
use super::story::Story;
use super::switch::KillSwitch;
use crate::fake_host::FakeHost;
use crate::rig::{DEADLINE, facts};

pub(super) enum LifeOutcome {
    Killed(Image),
    /// The target is reached, after this number of steps.
    Settled(Box<Picture>, usize),
}

/// The client that requests the update. It continues after a kill, and repeats requests that were not answered.
#[derive(Debug, Default)]
pub(super) struct Client {
    target_is_taken: bool,
    outcome: Option<Result<(), ActionError>>,
    lock_is_released: bool,
}

/// Runs a supervisor until it is killed at the step `kill_at`, or is done.
pub(super) fn live(
    image: Image,
    kill_at: Option<usize>,
    story: &Story,
    client: &mut Client,
) -> LifeOutcome {
    let runtime = runtime();
    let ending = runtime.block_on(async {
        let device = Device::start(image, kill_at, story.is_managed);
        tokio::select! {
            biased;
            image = device.switch.killed() => LifeOutcome::Killed(image),
            () = client.follow(&device, story) => {
                let picture = Picture::take(&device.reconciler, &device.store, &device.image);
                LifeOutcome::Settled(Box::new(picture), device.switch.steps())
            }
        }
    });
    // Nothing keeps running; if a task acts while it is dropped, it acts on files that no longer belong to the device.
    runtime.shutdown_background();
    ending
}

/// Brings a device to a target, and ends its supervisor.
pub(super) fn settle(image: Image, story: &Story, target: Value) -> Image {
    let runtime = runtime();
    let image = runtime.block_on(async {
        let device = Device::start(image, None, story.is_managed);
        device.set_target(story, target, false).await;
        device.settled().await;
        device.reconciler.shutdown().await;
        device.image
    });
    // Tasks that still have the store open end here.
    drop(runtime);
    image
}

/// Returns a runtime with one thread for async tasks and one for blocking ones, and its own clock.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .unwrap()
}

struct Device {
    reconciler: Reconciler,
    store: Store,
    image: Image,
    switch: Arc<KillSwitch>,
}

impl Device {
    fn start(image: Image, kill_at: Option<usize>, managed: bool) -> Device {
        let switch = KillSwitch::new(image.place(), kill_at);
        // The switch owns the engine, so the engine must not own the switch.
        let gate = Arc::downgrade(&switch);
        image.engine.pass_each(Arc::new(move || {
            let gate = gate.upgrade();
            Box::pin(async move {
                if let Some(gate) = gate {
                    gate.pass().await;
                }
            })
        }));
        let locks = image.locks();
        image.engine.witness(|seen| seen.locks = Some(locks));
        let store = Store::open(&image.folder.path().join("state"))
            .unwrap()
            .store;
        let uuid = store.device_uuid().clone();
        let writes = Arc::clone(&switch);
        let reconciler = Reconciler::start(ReconcilerConfig {
            engines: Engines::new(vec![Arc::new(image.engine.clone())]),
            store: store.clone(),
            // The same in every copy, since it is part of the services' configuration.
            facts: Arc::new(move || facts(&uuid, "/")),
            host_root: image.folder.path().join("host"),
            host: Arc::new(FakeHost::default()),
            managed,
            on_event: Arc::new(|_, _| {}),
            offers: DeviceProperties {
                supervisor: "19.0.0".into(),
                arch: "amd64".into(),
                ..DeviceProperties::default()
            },
            target_policy: Arc::new(|| Ok(None)),
            limits: Limits {
                log_lines: 16,
                ..Limits::default()
            },
            moments: Moments::with_listener(move |moment| {
                if moment.ends_with("store-write") {
                    writes.pass_write();
                }
            }),
        })
        .unwrap();
        Device {
            reconciler,
            store,
            image,
            switch,
        }
    }

    async fn set_target(&self, story: &Story, target: Value, force: bool) {
        let result = if story.is_managed {
            self.reconciler.set_cloud_target(target, force).await
        } else {
            self.reconciler.set_local_target(target, force).await
        };
        result.unwrap();
    }

    async fn until(&self, what: &str, holds: impl Fn(&DeviceStatus) -> bool) {
        let mut watch = self.reconciler.watch();
        let waited = tokio::time::timeout(DEADLINE, watch.wait_for(|status| holds(status))).await;
        assert!(
            waited.is_ok(),
            "never {what}: {:#?}\ncalls: {:#?}",
            self.reconciler.status(),
            self.image.engine.calls()
        );
    }

    /// Waits until the device is idle and nothing is left to be recorded.
    async fn settled(&self) {
        for _ in 0..3 {
            self.until("settled", |status| !status.applying).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let status = self.reconciler.status();
        assert!(!status.applying && !status.update_failed, "{status:#?}");
    }
}

impl Client {
    async fn follow(&mut self, device: &Device, story: &Story) {
        if story.acts_first {
            self.act(device, story).await;
        }
        self.set_target(device, story).await;
        self.act(device, story).await;
        self.give_lock_back(device, story).await;
        device.settled().await;
    }

    async fn set_target(&mut self, device: &Device, story: &Story) {
        if !self.target_is_taken {
            let force = story.lock.as_ref().is_some_and(|lock| lock.is_overridden);
            device.set_target(story, story.target(), force).await;
            self.target_is_taken = true;
        }
    }

    async fn act(&mut self, device: &Device, story: &Story) {
        if let Some(action) = story.action()
            && self.outcome.is_none()
        {
            self.outcome = Some(device.reconciler.act(action).await);
        }
    }

    /// Releases the user's lock once the device can do nothing but wait for that. After a kill at the same moment, the
    /// copy may still contain the lock: then it is released again.
    async fn give_lock_back(&mut self, device: &Device, story: &Story) {
        let Some(lock) = story.lock.as_ref() else {
            return;
        };
        if !self.lock_is_released {
            self.wait_for_lock(device, story).await;
        }
        self.lock_is_released = true;
        let file = device.image.locks().join(&lock.folder).join("updates.lock");
        if std::fs::read(&file).is_ok_and(|held| held == b"a user's") {
            std::fs::remove_file(file).unwrap();
        }
    }

    async fn wait_for_lock(&self, device: &Device, story: &Story) {
        let settled_or_locked = |status: &DeviceStatus| {
            let mut waits = status.waiting_on.iter();
            !status.applying || waits.any(|reason| reason.contains("Lockfile"))
        };
        device.until("settled or locked", settled_or_locked).await;
        if let Some(app) = story.locked_app() {
            let disturbed = device.image.engine.witness(|seen| seen.disturbed.clone());
            let app = app.to_string();
            let of_app = disturbed.iter().find(|(_, of)| **of == app);
            assert_eq!(of_app, None, "it is locked");
        }
    }

    /// Checks that an answered action is done.
    pub(super) fn check(&self, story: &Story, before: &Holdings, found: &Picture) {
        let (Some(action), Some(Ok(()))) = (&story.action, &self.outcome) else {
            return;
        };
        let of = match &action.verb {
            Verb::Restart(Some(service)) => format!("{}/{service}", action.app),
            _ => format!("{}/", action.app),
        };
        for (id, service) in &before.containers {
            if service.starts_with(&of) {
                assert!(!found.ids.contains(id), "`{service}` was not recreated");
            }
        }
        if action.verb == Verb::Purge && story.purged_while_it_goes().is_none() {
            let of = format!("{}_", action.app);
            for (volume, made) in before.volumes.iter().filter(|(v, _)| v.starts_with(&of)) {
                assert_ne!(found.volumes.get(volume), Some(made), "{volume}");
            }
        }
    }
}
