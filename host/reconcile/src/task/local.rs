//! Local mode: the state recorded when it is entered, and the clean-up when it is left.

use std::sync::Arc;

use model::EngineKind;

use super::ReconcilerTask;
use crate::local_mode::clean_up;
use crate::messages::Message;
use crate::persistence::LocalMode;

impl ReconcilerTask {
    /// Records the objects that existed when local mode was entered, before the first step that
    /// adds to them.
    pub(super) async fn keep_snapshot(&mut self) {
        if !self.local_mode.is_on() || !self.view.is_known() {
            return;
        }
        let answers = |engine: EngineKind| !self.retries.is_silent(engine);
        if !self.local_mode.complete_snapshot(&self.view, answers) {
            return;
        }
        match serde_json::to_value(self.local_mode.snapshot()) {
            Ok(value) => {
                let stored = self
                    .context
                    .persistence
                    .call(move |it| it.set_snapshot(&value));
                if let Err(why) = stored.await {
                    tracing::error!("failed to store the snapshot of local mode: {why}");
                }
            }
            Err(error) => tracing::error!(%error, "failed to write the snapshot of local mode"),
        }
    }

    pub(super) fn leave_local_mode(&mut self) {
        if !self.in_flight.is_empty() {
            return;
        }
        let Some(snapshot) = self.local_mode.begin_clean_up() else {
            return;
        };
        let context = Arc::clone(&self.context);
        let pulled = self.stored.recorded_images.clone();
        let reenters = self.local_mode.reenters();
        tokio::spawn(async move {
            clean_up(&context, &snapshot, &pulled).await;
            context.log("Left local mode");
            let mut noted = context.persistence.close_local_mode().await;
            if reenters && noted.is_ok() {
                noted = context.persistence.set_local_mode(LocalMode::On).await;
            }
            if let Err(why) = noted {
                tracing::error!("failed to note that local mode is over: {why}");
            }
            context.send(Message::LeftLocalMode);
        });
    }

    pub(super) fn left_local_mode(&mut self) {
        self.local_mode.end_clean_up();
        self.held_locks.guards.clear();
        self.stored.commits.clear();
        if self.local_mode.is_on() {
            self.target.set_empty();
        } else if let Some(resumes) = self.target.resume() {
            self.activate_target(resumes);
        }
        self.publish_settings();
        // A snapshot of the next local mode must not contain objects that have just been removed.
        self.view.invalidate_all();
        self.context
            .channels
            .targets
            .send_modify(|targets| targets.mode = self.local_mode.mode());
    }
}
