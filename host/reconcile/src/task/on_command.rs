//! The requests of callers to the loop.

use model::{DesiredState, ImageRef};
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::locks::LockSubjects;
use crate::messages::{ActiveTarget, Command};
use crate::view::KINDS;

impl ReconcilerTask {
    pub(super) fn on_command(&mut self, command: Command) {
        match command {
            Command::Target {
                target,
                force,
                reply,
            } => {
                self.activate_target(target);
                if force {
                    self.try_releases_again();
                    self.target.begin_force();
                } else {
                    self.target.end_force();
                }
                self.publication.answer_later(reply);
            }
            Command::EnterLocalMode { target, reply } => {
                self.local_mode.enter();
                self.activate_target(target);
                self.target.end_force();
                self.publication.answer_later(reply);
            }
            Command::Checking(checking) => self.publication.set_checking(checking),
            Command::LeaveLocalMode { resumes, reply } => {
                self.local_mode.leave();
                self.target.suspend(resumes);
                self.publication.set_blockers(Vec::new());
                self.retries.forget_steps();
                self.in_flight.cancel_pulls(|_| true);
                self.publication.answer_later(reply);
            }
            Command::Act(action, answer) => self.actions.add(action, answer),
            Command::Quiesce {
                force,
                locked,
                stopped,
            } => self.begin_quiesce(force, locked, stopped),
            Command::Resume => self.host.resume(self.context.host.boot()),
            // The receiver may be gone, which does not matter.
            Command::TargetVolumes(reply) => {
                let volumes = self.target.apps().flat_map(|app| app.volumes.values());
                let _ = reply.send(volumes.map(|volume| volume.engine_name.clone()).collect());
            }
            Command::Answer(reply) => drop(reply),
            Command::Snapshot(reply) => {
                let _ = reply.send(self.loop_snapshot());
            }
            Command::Locking(reply) => {
                let locking = LockSubjects {
                    apps: self.view.apps(),
                    override_locks: self.target.settings.override_locks,
                };
                let _ = reply.send(locking);
            }
            Command::KeyReplaced { target, reply } => {
                if let Some(target) = target {
                    self.take_new_keys(target);
                }
                self.publication.answer_later(reply);
            }
            Command::LookAgain => self.look_again(),
            Command::BeginUpdate => self.target.begin_update(),
            Command::Trigger { force, cancel } => {
                self.target.begin_update();
                self.look_again();
                if force {
                    self.forget_reboots();
                    self.try_releases_again();
                    self.target.begin_force();
                }
                if cancel {
                    self.in_flight.cancel_pulls(|_| true);
                }
            }
        }
    }

    /// Observes everything, and retries at once whatever waits for a retry.
    fn look_again(&mut self) {
        self.retries.expire(Instant::now());
        for engine in self.context.engines.all() {
            self.view.mark(engine.kind(), KINDS);
        }
        self.target.forget_image_kinds();
        self.host.mark_all();
    }

    /// Puts this target in force, and starts all attempts afresh.
    pub(super) fn activate_target(&mut self, mut target: ActiveTarget) {
        self.replace_unhealthy(&mut target.desired);
        self.in_flight
            .cancel_pulls(|image| !wants(&target.desired, image));
        let (before, after) = (self.target.desired(), &target.desired);
        self.held_locks.updates.retain(|app| {
            let before = before.and_then(|desired| desired.apps.get(app));
            before == after.apps.get(app)
        });
        self.target.replace(target.desired, target.settings);
        self.set_host_target(target.target);
        self.publish_settings();
        self.retries.forget_steps();
    }
}

fn wants(desired: &DesiredState, image: &ImageRef) -> bool {
    let mut services = desired.apps.values().flat_map(|app| app.services.values());
    services.any(|service| service.config.image == *image)
}
