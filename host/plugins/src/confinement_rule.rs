//! Whether the policy does without walls that the system lacks.

use std::path::PathBuf;

use parking_lot::Mutex;

use crate::failure::chain;
use crate::policy::Policy;

/// What the policy says of the walls around processes that run foreign code (`require_confinement`).
///
/// It is read each time that it is asked for, so that a change acts on what is started next. Where it cannot be read, what
/// it said before holds; where it never could, all walls are required.
pub struct ConfinementRule {
    policy: PathBuf,
    /// In developer mode it may be written by anybody.
    anybodys: bool,
    latest: Mutex<Option<bool>>,
}

impl ConfinementRule {
    /// The rule of the policy in this file; `allow_unpinned` in developer mode.
    #[must_use]
    pub fn new(policy: PathBuf, allow_unpinned: bool) -> Self {
        ConfinementRule {
            policy,
            anybodys: allow_unpinned,
            latest: Mutex::default(),
        }
    }

    /// Whether nothing foreign is run where a wall is missing. Reads the file.
    #[must_use]
    pub fn is_required(&self) -> bool {
        let read = Policy::requires_confinement(&self.policy, self.anybodys);
        let mut latest = self.latest.lock();
        match read {
            Ok(required) => {
                *latest = Some(required);
                required
            }
            Err(error) => {
                let required = latest.unwrap_or(true);
                let words = if required { "required" } else { "not required" };
                tracing::warn!(
                    "the walls around services and the compiler are {words}: {}",
                    chain(&error)
                );
                required
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_policy_says_whether_missing_walls_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.toml");
        let rule = || ConfinementRule::new(policy.clone(), false);
        assert!(!rule().is_required(), "no policy");
        let lasting = rule();
        for (text, required) in [
            ("", false),
            ("require_confinement = true", true),
            ("require_confinement = false", false),
            ("require_confinement = true\n[plugins.a]\n", true),
        ] {
            fs::write(&policy, text).unwrap();
            assert_eq!(rule().is_required(), required, "{text}");
            assert_eq!(lasting.is_required(), required, "{text}");
        }
        // A slip of the pen.
        fs::write(&policy, "require_confinement = maybe").unwrap();
        assert!(lasting.is_required(), "as before");
        assert!(rule().is_required(), "nobody knows");
        fs::write(&policy, "require_confinement = false").unwrap();
        assert!(!lasting.is_required());
        fs::write(&policy, "require_confinement").unwrap();
        assert!(!lasting.is_required(), "as before");
    }
}
