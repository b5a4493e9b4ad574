//! The processes of containers: started, watched, stopped, and found again.
//!
//! A process restarts its service by itself. The engine handles only processes that ended and
//! should not have: killed by the system for their memory, by a person, or by a reboot. They are
//! started again by the same policy and with the same delays.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Weak;
use std::time::{Duration, Instant};

use model::{ContainerId, RestartPolicy, error_chain};
use rustix::process::{Signal, pidfd_send_signal};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use wasm_service::process::ProcessId;
use wasm_service::record::{State, Status};
use wasm_service::{RestartBackoff, starts_again};

use super::containers::KILLED;
use super::readable::readable;
use super::record::ContainerRecord;
use super::{Wasm, WasmState};
use crate::{EngineError, EngineEvent};

/// How long a killed process may take to disappear.
pub(super) const DEATH: Duration = Duration::from_secs(30);

impl Wasm {
    pub(super) async fn start(&self, id: &ContainerId) -> Result<(), EngineError> {
        let runs = self.blocking_for(id, |shared, id| {
            let _changing = shared.changing.lock();
            let mut record = shared.our_container(id)?;
            let runs = shared.state(id).is_served();
            if record.stopped && !runs {
                record.stopped = false;
                shared.write_container(&record)?;
            }
            Ok(runs)
        });
        if runs.await? {
            return Ok(());
        }
        self.end_watch(id);
        let process = self.spawn(id).await?;
        self.watch(id.clone(), Some(process), RestartBackoff::default());
        Ok(())
    }

    pub(super) async fn stop(&self, id: &ContainerId, grace: Duration) -> Result<(), EngineError> {
        let stopping = self.blocking_for(id, |shared, id| {
            let _changing = shared.changing.lock();
            let Ok(mut record) = shared.our_container(id) else {
                return Ok(None);
            };
            if !record.stopped {
                record.stopped = true;
                shared.write_container(&record)?;
            }
            Ok(Some((shared.state(id), record)))
        });
        let Some((state, record)) = stopping.await? else {
            return Ok(());
        };
        if matches!(state.status, Status::Running | Status::Restarting)
            && let Some(process) = state.process
        {
            match (record.user, process.uid()) {
                (Some(user), Some(uid)) if uid != user.uid => {
                    tracing::error!(
                        container = %id,
                        "the container's state names a process of user {uid}, which is not the container's own user {}: killing the container's processes instead",
                        user.uid
                    );
                }
                _ => self.end(id, &process, grace).await?,
            }
        }
        // The process may have been waiting to start the service again.
        self.end_watch(id);
        // The service's process wrote the state, so it may be missing there (`strays.rs`).
        self.end_strays(&record).await?;
        self.blocking_for(id, |shared, id| {
            let _changing = shared.changing.lock();
            if shared.our_container(id).is_ok() {
                shared.note_end(id);
            }
            Ok(())
        })
        .await?;
        self.shared.emit(EngineEvent::Container(id.clone()));
        Ok(())
    }

    /// Asks a process to stop and waits until it is gone; by force, if it takes too long.
    async fn end(
        &self,
        id: &ContainerId,
        process: &ProcessId,
        grace: Duration,
    ) -> Result<(), EngineError> {
        let failed =
            |error: io::Error| EngineError::failed(format!("stop the container `{id}`"), error);
        let Some(handle) = process.open().map_err(failed)? else {
            return Ok(());
        };
        let handle = readable(handle).map_err(failed)?;
        if !grace.is_zero() {
            let _ = pidfd_send_signal(handle.get_ref(), Signal::TERM);
            if timeout(grace, handle.readable()).await.is_ok() {
                return Ok(());
            }
        }
        let _ = pidfd_send_signal(handle.get_ref(), Signal::KILL);
        match timeout(DEATH, handle.readable()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(failed(io::Error::other("its process does not end"))),
        }
    }

    /// Watches the running processes, and starts those that should run.
    pub(super) async fn find_processes(&self) -> Result<(), EngineError> {
        let to_watch = self.blocking(|shared| {
            let _changing = shared.changing.lock();
            let mut to_watch = Vec::new();
            for record in shared.our_current_containers() {
                let state = shared.state(&record.id);
                if state.is_served() {
                    to_watch.push((record.id.clone(), state.process));
                } else if should_run(&record, &state) {
                    shared.note_lost(&record.id);
                    to_watch.push((record.id.clone(), None));
                } else {
                    shared.note_end(&record.id);
                }
            }
            Ok(to_watch)
        });
        for (id, process) in to_watch.await? {
            self.watch(id, process, RestartBackoff::default());
        }
        Ok(())
    }

    fn watch(&self, id: ContainerId, process: Option<ProcessId>, backoff: RestartBackoff) {
        let shared = std::sync::Arc::downgrade(&self.shared);
        let task = tokio::spawn(keep_running(shared, id.clone(), process, backoff));
        let mut watches = self.shared.watches.lock();
        watches.retain(|_, task| !task.is_finished());
        // A previous watch ends with its handle.
        watches.insert(id, AbortOnDropHandle::new(task));
    }

    fn end_watch(&self, id: &ContainerId) {
        self.shared.watches.lock().remove(id);
    }
}

impl WasmState {
    /// Records that a container without a process has ended.
    fn note_end(&self, id: &ContainerId) {
        let mut state = self.state(id);
        if state.is_served() || matches!(state.status, Status::Created | Status::Exited) {
            return;
        }
        note_killed(&mut state);
        state.status = Status::Exited;
        self.write_state(id, &state);
    }

    /// Records that a container without a process is about to get a new one.
    fn note_lost(&self, id: &ContainerId) {
        let mut state = self.state(id);
        if state.is_served() {
            return;
        }
        note_killed(&mut state);
        state.status = Status::Restarting;
        state.restarts += 1;
        self.write_state(id, &state);
    }

    /// Decides whether the container gets a new process, and records it: after its process ended, and after a
    /// replacement failed to run.
    fn decide_after_end(&self, id: &ContainerId) -> bool {
        let _changing = self.changing.lock();
        let Ok(record) = self.our_container(id) else {
            return false;
        };
        let again = should_run(&record, &self.state(id));
        if again {
            self.note_lost(id);
        } else {
            self.note_end(id);
        }
        self.emit(EngineEvent::Container(id.clone()));
        again
    }
}

/// Records the end of a process that wrote no state.
fn note_killed(state: &mut State) {
    if state.status == Status::Running {
        state.exit_code = Some(KILLED);
        state.finished_at_ms = Some(wasm_service::log_file::now_ms());
    }
}

/// Returns whether a container without a process should have one.
fn should_run(record: &ContainerRecord, state: &State) -> bool {
    // After its first start has failed, only another request starts it. One that ran before is tried again, whatever
    // failed: its port may have been in use for a moment.
    let failed = state.error.is_some() && state.restarts == 0;
    if record.stopped || state.status == Status::Created || failed {
        return false;
    }
    let process = state.process.as_ref();
    if process.is_some_and(|process| process.is_of_this_boot()) {
        let exit_code = match state.status {
            Status::Exited | Status::Restarting => state.exit_code.unwrap_or(KILLED),
            Status::Created | Status::Running => KILLED,
        };
        starts_again(record.config.restart, exit_code)
    } else {
        matches!(
            record.config.restart,
            RestartPolicy::Always | RestartPolicy::UnlessStopped
        )
    }
}

/// Waits for the end of a container's process, and starts it again if that is its policy; `None` is
/// a process that has ended already. Ends with the engine.
async fn keep_running(
    shared: Weak<WasmState>,
    id: ContainerId,
    mut process: Option<ProcessId>,
    mut backoff: RestartBackoff,
) {
    let mut began = Instant::now();
    loop {
        if let Some(running) = &process {
            if let Err(error) = ended(running).await {
                // Perhaps for lack of descriptors: keep watching the container.
                tracing::error!(container = %id, %error, "failed to watch the process of a container, trying again");
                tokio::time::sleep(backoff.after(Duration::ZERO)).await;
                continue;
            }
            process = None;
            let Some(wasm) = upgrade(&shared) else { return };
            if !wasm.goes_on(&id).await {
                return;
            }
            tracing::warn!(container = %id, "the process of a container has ended, starting it again");
            drop(wasm);
            tokio::time::sleep(backoff.after(began.elapsed())).await;
        }
        began = Instant::now();
        let Some(wasm) = upgrade(&shared) else { return };
        match wasm.spawn(&id).await {
            Ok(started) => process = Some(started),
            // What killed the process, above all the system for its memory, may kill one that is just starting as well,
            // and a start may lack a port or a descriptor; nothing else would start the container then.
            Err(error) => {
                let again = wasm.goes_on(&id).await;
                drop(wasm);
                let error = error_chain(&error);
                if !again {
                    tracing::error!(container = %id, "failed to start the container again: {error}");
                    return;
                }
                let wait = backoff.after(began.elapsed());
                tracing::error!(
                    container = %id,
                    "failed to start the container again, trying once more in {} ms: {error}",
                    wait.as_millis()
                );
                tokio::time::sleep(wait).await;
            }
        }
    }
}

impl Wasm {
    /// Returns whether a container whose process is gone, or failed to run, gets another. If that cannot be determined,
    /// it is checked again after the next try.
    async fn goes_on(&self, id: &ContainerId) -> bool {
        let again = self.blocking_for(id, |shared, id| Ok(shared.decide_after_end(id)));
        again.await.unwrap_or(true)
    }
}

fn upgrade(shared: &Weak<WasmState>) -> Option<Wasm> {
    shared.upgrade().map(|shared| Wasm { shared })
}

/// Waits until the process has ended: then its handle becomes readable.
async fn ended(process: &ProcessId) -> io::Result<()> {
    if let Some(handle) = process.open()? {
        let _ = readable(handle)?.readable().await?;
    }
    Ok(())
}

/// Keeps inherited descriptors out of services: if whoever started us left descriptors open,
/// services' processes would hold them open for as long as they live. Descriptors that this process
/// opens are closed in children already.
pub(super) fn keep_descriptors_from_children() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = open
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for number in numbers
        .filter(|number: &i32| *number > 2)
        .collect::<Vec<_>>()
    {
        #[expect(
            unsafe_code,
            reason = "a descriptor of unknown origin has no owner to borrow from"
        )]
        // SAFETY: the descriptor is used for one call that changes only whether a child inherits
        // it. It was open a moment ago. If it was closed since, the call fails; if it is another
        // one by now, this process opened it, and it is closed in children anyway.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = rustix::io::fcntl_setfd(descriptor, rustix::io::FdFlags::CLOEXEC);
    }
}
