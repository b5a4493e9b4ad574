//! An operating system in memory, with two slots to boot from.

use model::OsVersion;
use reconcile::{OsAction, OsObservation, OsStatus};

/// The provider's view of it.
#[derive(Default)]
pub(crate) struct FakeOs {
    /// `None` if there is no provider.
    running: Option<OsVersion>,
    other: Option<OsVersion>,
    /// Whether the next boot starts the other one.
    is_activated: bool,
    is_on_trial: bool,
    /// An installation is under way, in percent.
    installing: Option<(OsVersion, u8)>,
    /// An installation takes until [`FakeOs::installed`].
    pub takes_long: bool,
    /// The version in the bundle, if it differs from the bundle's name.
    pub holds: Option<&'static str>,
    /// The boot loader does not start the activated version.
    pub falls_back: bool,
    /// The action that fails, and why.
    pub failure: Option<(&'static str, &'static str)>,
    /// The action that is done but does not return; `look` is a query.
    pub hangs: Option<String>,
    /// It never reports that the version is committed.
    pub denies_commits: bool,
}

pub(crate) fn version(text: &str) -> OsVersion {
    text.parse().unwrap()
}

impl FakeOs {
    /// Makes it run this version, with a provider.
    pub(crate) fn runs(&mut self, running: &str) {
        self.running = Some(version(running));
    }

    pub(crate) fn running(&self) -> String {
        self.running.as_ref().unwrap().to_string()
    }

    /// Boots it into this version without a request.
    pub(crate) fn was_booted(&mut self, running: &str) {
        self.other = self.running.replace(version(running));
        self.is_on_trial = true;
    }

    pub(crate) fn is_committed(&self) -> bool {
        !self.is_on_trial
    }

    pub(crate) fn progress(&mut self, percent: u8) {
        self.installing.as_mut().unwrap().1 = percent;
    }

    pub(crate) fn installed(&mut self) {
        let (version, _) = self.installing.take().unwrap();
        self.other = Some(version);
    }

    pub(crate) fn installation_failed(&mut self) {
        self.installing = None;
        self.other = None;
    }

    pub(crate) fn boot(&mut self) {
        if std::mem::take(&mut self.is_activated) && !self.falls_back {
            std::mem::swap(&mut self.running, &mut self.other);
            self.is_on_trial = !self.is_on_trial;
        }
    }

    pub(crate) fn look(&self) -> OsObservation {
        let Some(running) = self.running.clone() else {
            return OsObservation::Unavailable;
        };
        if let Some(("look", why)) = self.failure {
            return OsObservation::Failed(why.to_owned());
        }
        OsObservation::Status {
            status: OsStatus {
                running,
                staged: self.other.clone().filter(|_| self.installing.is_none()),
                committed: !self.is_on_trial && !self.denies_commits,
                installing: self.installing.as_ref().map(|(_, percent)| *percent),
            },
            failure: None,
        }
    }

    pub(crate) fn act(&mut self, action: &OsAction) -> Result<(), String> {
        let name = match action {
            OsAction::Stage(_) => "stage",
            OsAction::Activate => "activate",
            OsAction::Commit => "commit",
            OsAction::RollBack => "roll back",
        };
        if let Some((failing, why)) = self.failure
            && failing == name
        {
            return Err(why.to_owned());
        }
        match action {
            OsAction::Stage(os) => {
                let version = self.holds.map_or(os.version.clone(), version);
                self.installing = Some((version, 0));
                if !self.takes_long {
                    self.installed();
                }
            }
            OsAction::Activate => self.is_activated = true,
            OsAction::Commit => self.is_on_trial = false,
            OsAction::RollBack => self.is_activated = self.is_on_trial,
        }
        Ok(())
    }
}
