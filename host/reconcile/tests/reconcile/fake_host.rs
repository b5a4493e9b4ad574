//! A host in memory, which reboots instantly.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::FutureExt;
use futures::future::BoxFuture;
use model::{ActionError, AppUuid, BootId, DesiredHost, HostPart};
use reconcile::{
    Host, HostComparison, InstalledRelease, OsAction, OsObservation, PendingUpdate, Reconciler,
    ReleaseVerdict, UpdatePostponement,
};
use tokio::sync::Notify;
use tracing::{Metadata, Span};

use crate::fake_os::FakeOs;

#[derive(Clone, Default)]
pub(crate) struct FakeHost {
    state: Arc<Mutex<State>>,
    reconciler: Arc<Mutex<Option<Reconciler>>>,
    os_answers: Arc<Notify>,
}

#[derive(Default)]
struct State {
    settings: DesiredHost,
    reboot_due: bool,
    boots: u32,
    refusal: Option<String>,
    forgets: bool,
    stays: Option<String>,
    postponement: Option<UpdatePostponement>,
    postponement_queries: Vec<PendingUpdate>,
    begun_updates: Vec<AppUuid>,
    verdict: Option<ReleaseVerdict>,
    judged: Vec<InstalledRelease>,
    done: Vec<String>,
    spans: Vec<&'static str>,
    os: FakeOs,
    ignores_reboots: bool,
    hides_boot_id: bool,
}

impl FakeHost {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Sets the supervisor that runs on it now.
    pub(crate) fn runs(&self, reconciler: &Reconciler) {
        *self.reconciler.lock().unwrap() = Some(reconciler.clone());
    }

    /// Returns the operations performed on it.
    pub(crate) fn done(&self) -> Vec<String> {
        self.state().done.clone()
    }

    /// Returns the names of the spans in which it was rebooted and its operating system changed, if spans are recorded.
    pub(crate) fn spans(&self) -> Vec<&'static str> {
        self.state().spans.clone()
    }

    pub(crate) fn boots(&self) -> u32 {
        self.state().boots
    }

    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        self.state().settings.boot_config.get(name).cloned()
    }

    pub(crate) fn has(&self, part: HostPart) -> bool {
        let state = self.state();
        match part {
            HostPart::BootConfig => !state.settings.boot_config.is_empty(),
            HostPart::PersistentLogging => state.settings.persistent_logging,
        }
    }

    pub(crate) fn put(&self, name: &str, value: &str) {
        let boot = &mut self.state().settings.boot_config;
        boot.insert(name.into(), value.into());
    }

    pub(crate) fn refuse(&self, why: Option<&str>) {
        self.state().refusal = why.map(str::to_owned);
    }

    /// Makes the written configuration disappear with the next boot.
    pub(crate) fn forget_at_boot(&self, forgets: bool) {
        self.state().forgets = forgets;
    }

    /// Makes reboots fail, for this reason.
    pub(crate) fn stay(&self, why: &str) {
        self.state().stays = Some(why.to_owned());
    }

    /// Makes updates wait from now on, or no longer.
    pub(crate) fn postpone(&self, postponement: Option<UpdatePostponement>) {
        self.state().postponement = postponement;
    }

    /// Returns the updates whose postponement was queried.
    pub(crate) fn postponement_queries(&self) -> Vec<PendingUpdate> {
        self.state().postponement_queries.clone()
    }

    /// Returns the apps whose updates have begun after plugins could postpone them.
    pub(crate) fn begun_updates(&self) -> Vec<AppUuid> {
        self.state().begun_updates.clone()
    }

    /// Makes releases be judged from now on, with this verdict.
    pub(crate) fn judge(&self, verdict: ReleaseVerdict) {
        self.state().verdict = Some(verdict);
    }

    /// Returns the releases that were judged.
    pub(crate) fn judged(&self) -> Vec<InstalledRelease> {
        self.state().judged.clone()
    }

    /// Changes or queries the operating system.
    pub(crate) fn os<T>(&self, change: impl FnOnce(&mut FakeOs) -> T) -> T {
        change(&mut self.state().os)
    }

    /// Makes the action of the operating system, or the query, that hangs return, and none hang any more.
    pub(crate) fn let_os_answer(&self) {
        self.os(|os| os.hangs = None);
        self.os_answers.notify_waiters();
    }

    /// Makes it stop services without going down.
    pub(crate) fn ignore_reboots(&self, ignores: bool) {
        self.state().ignores_reboots = ignores;
    }

    /// Makes the next supervisor find no boot id.
    pub(crate) fn hide_boot_id(&self) {
        self.state().hides_boot_id = true;
    }

    pub(crate) fn boot_by_itself(&self) {
        self.state().boot();
    }
}

impl State {
    fn note_span(&mut self) {
        let span = Span::current();
        self.spans.extend(span.metadata().map(Metadata::name));
    }

    fn boot(&mut self) {
        self.boots += 1;
        self.reboot_due = false;
        self.os.boot();
        if self.forgets {
            self.settings.boot_config = BTreeMap::new();
        }
    }
}

impl Host for FakeHost {
    fn boot(&self) -> Option<BootId> {
        let state = self.state();
        let boot = format!("boot{}", state.boots).parse().unwrap();
        (!state.hides_boot_id).then_some(boot)
    }

    fn compare<'a>(&'a self, desired: &'a DesiredHost) -> BoxFuture<'a, HostComparison> {
        let state = self.state();
        let mut look = HostComparison {
            reboot_due: state.reboot_due,
            ..HostComparison::default()
        };
        if let Some(why) = &state.refusal {
            look.failed.insert(HostPart::BootConfig, why.clone());
        } else if state.settings.boot_config != desired.boot_config {
            look.differs.insert(HostPart::BootConfig);
        }
        if state.settings.persistent_logging != desired.persistent_logging {
            look.differs.insert(HostPart::PersistentLogging);
        }
        async { look }.boxed()
    }

    fn configure<'a>(
        &'a self,
        part: HostPart,
        desired: &'a DesiredHost,
    ) -> BoxFuture<'a, Result<(), String>> {
        let mut state = self.state();
        state.done.push(format!("configure {part}"));
        state.reboot_due = true;
        match part {
            HostPart::BootConfig => state.settings.boot_config = desired.boot_config.clone(),
            HostPart::PersistentLogging => {
                state.settings.persistent_logging = desired.persistent_logging;
            }
        }
        async { Ok(()) }.boxed()
    }

    fn reboot(&self, force: bool) -> BoxFuture<'_, Result<(), ActionError>> {
        async move {
            self.state().note_span();
            let stays = self.state().stays.clone();
            if let Some(why) = stays {
                return Err(ActionError::Locked(why));
            }
            let reconciler = self.reconciler.lock().unwrap().clone().unwrap();
            let all_stopped = reconciler.quiesce(force).await?;
            let state = Arc::clone(&self.state);
            tokio::spawn(async move {
                all_stopped.await;
                let mut held = state.lock().unwrap();
                held.done.push("reboot".into());
                if !held.ignores_reboots {
                    held.boot();
                }
                drop(held);
                reconciler.resume();
            });
            Ok(())
        }
        .boxed()
    }

    fn look_at_os(&self) -> BoxFuture<'_, OsObservation> {
        let state = self.state();
        let (look, hangs) = (state.os.look(), state.os.hangs.as_deref() == Some("look"));
        let answers = Arc::clone(&self.os_answers);
        async move {
            if hangs {
                answers.notified().await;
            }
            look
        }
        .boxed()
    }

    fn update_os<'a>(&'a self, action: &'a OsAction) -> BoxFuture<'a, Result<(), String>> {
        let mut state = self.state();
        state.note_span();
        let words = match action {
            OsAction::Stage(os) => format!("stage {}", os.version),
            OsAction::Activate => "activate".to_owned(),
            OsAction::Commit => "commit".to_owned(),
            OsAction::RollBack => "roll back".to_owned(),
        };
        state.done.push(words.clone());
        let outcome = state.os.act(action);
        let hangs = state.os.hangs.as_ref() == Some(&words);
        let answers = Arc::clone(&self.os_answers);
        async move {
            if hangs {
                answers.notified().await;
            }
            outcome
        }
        .boxed()
    }

    fn postponement<'a>(
        &'a self,
        update: &'a PendingUpdate,
    ) -> BoxFuture<'a, Option<UpdatePostponement>> {
        let mut state = self.state();
        state.postponement_queries.push(update.clone());
        let postponement = state.postponement.clone();
        async { postponement }.boxed()
    }

    fn note_begun_update(&self, app: &AppUuid) {
        self.state().begun_updates.push(app.clone());
    }

    fn judges_releases(&self) -> bool {
        self.state().verdict.is_some()
    }

    fn judge_release<'a>(&'a self, release: &'a InstalledRelease) -> BoxFuture<'a, ReleaseVerdict> {
        let mut state = self.state();
        state.judged.push(release.clone());
        let verdict = state.verdict.clone().unwrap_or(ReleaseVerdict::Healthy);
        async { verdict }.boxed()
    }
}
