//! What callers ask of the loop.

use model::{DesiredState, ImageRef};
use plan::Plan;
use tokio::time::Instant;

use super::Lap;
use crate::journal::LocalMode;
use crate::locks::Locking;
use crate::messages::{Command, Wanted};
use crate::view::KINDS;

impl Lap {
    pub(super) fn obey(&mut self, command: Command) {
        match command {
            Command::Target {
                wanted,
                force,
                taken,
            } => {
                self.aim_at(wanted);
                self.force = force;
                self.taken.push(taken);
            }
            Command::EnterLocalMode { wanted, taken } => {
                self.mode = LocalMode::On;
                self.aim_at(wanted);
                self.force = false;
                self.taken.push(taken);
            }
            Command::Checking(checking) => self.checking = checking,
            Command::LeaveLocalMode { resumes, taken } => {
                self.mode = LocalMode::Leaving;
                self.resumes = resumes;
                self.desired = None;
                self.plan = Plan::default();
                self.failing.clear();
                self.cancel_pulls(|_| true);
                self.taken.push(taken);
            }
            Command::Act(action, answer) => self.actions.add(action, answer),
            Command::Quiesce {
                force,
                locked,
                stopped,
            } => self.begin_quiesce(force, locked, stopped),
            Command::Resume => {
                self.quiesce = None;
                self.host.is_stale = true;
                self.host.boot = self.world.host.boot();
            }
            Command::WantedVolumes(asked) => {
                let apps = self
                    .desired
                    .iter()
                    .flat_map(|desired| desired.apps.values());
                let volumes = apps.flat_map(|app| app.volumes.values());
                let _ = asked.send(volumes.map(|volume| volume.engine_name.clone()).collect());
            }
            Command::Answer(asked) => drop(asked),
            Command::Look(asked) => {
                let sight = self.sight();
                // A caller that has gone sees nothing.
                let _ = asked.send(sight);
            }
            Command::Locking(asked) => {
                let services = self.view.services();
                let apps = services.map(|service| service.app_id).collect();
                let locking = Locking {
                    apps: self.view.is_known().then_some(apps),
                    override_locks: self.settings.override_locks,
                };
                // A caller that has gone locks nothing.
                let _ = asked.send(locking);
            }
            Command::Trigger { force, cancel } => {
                let now = Instant::now();
                for failing in self.failing.values_mut() {
                    failing.retry_at = now;
                }
                self.silent
                    .values_mut()
                    .for_each(|silent| silent.retry_at = now);
                for engine in self.world.engines.all() {
                    self.view.mark(engine.kind(), &KINDS);
                }
                self.image_kinds.clear();
                self.host.is_stale = true;
                if force {
                    self.forget_reboots();
                }
                self.force |= force;
                if cancel {
                    self.cancel_pulls(|_| true);
                }
            }
        }
    }

    /// Makes this what the device is measured by, and begins anew to try.
    pub(super) fn aim_at(&mut self, wanted: Wanted) {
        self.cancel_pulls(|image| !wants(&wanted.desired, image));
        self.desired = Some(wanted.desired);
        self.aim_host_at(wanted.target);
        self.settings = wanted.settings;
        self.tell_settings();
        self.failing.clear();
        self.downloaded = false;
        self.image_kinds.clear();
        self.pulled.clear();
    }

    pub(super) fn cancel_pulls(&self, is_unwanted: impl Fn(&ImageRef) -> bool) {
        for (image, cancel) in &self.cancels {
            if is_unwanted(image) {
                cancel.cancel();
            }
        }
    }
}

fn wants(desired: &DesiredState, image: &ImageRef) -> bool {
    let mut services = desired.apps.values().flat_map(|app| app.services.values());
    services.any(|service| service.config.image == *image)
}
