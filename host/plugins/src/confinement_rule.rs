//! Whether the policy tolerates that the system lacks walls.

use std::path::PathBuf;

use model::error_chain;
use parking_lot::Mutex;

use crate::policy::Policy;

/// The policy's rule about the walls around processes that run foreign code (`require_confinement`).
///
/// It is read each time it is needed, so a change affects whatever is started next. If it cannot be read, the previous
/// rule remains valid; if it never could be read, all walls are required.
pub struct ConfinementRule {
    policy: PathBuf,
    /// In developer mode, the file may be written by anyone.
    anybodys: bool,
    latest: Mutex<Option<bool>>,
}

impl ConfinementRule {
    /// Creates the rule for the policy in this file; `allow_unpinned` in developer mode.
    #[must_use]
    pub fn new(policy: PathBuf, allow_unpinned: bool) -> Self {
        ConfinementRule {
            policy,
            anybodys: allow_unpinned,
            latest: Mutex::default(),
        }
    }

    /// Returns whether foreign code must not run if a wall is missing. Reads the file.
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
                tracing::warn!(
                    "failed to read `require_confinement` from the policy; it counts as `{required}`: {}",
                    error_chain(&error)
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
        // A typing error.
        fs::write(&policy, "require_confinement = maybe").unwrap();
        assert!(lasting.is_required(), "as before");
        assert!(rule().is_required(), "nobody knows");
        fs::write(&policy, "require_confinement = false").unwrap();
        assert!(!lasting.is_required());
        fs::write(&policy, "require_confinement").unwrap();
        assert!(!lasting.is_required(), "as before");
    }
}
