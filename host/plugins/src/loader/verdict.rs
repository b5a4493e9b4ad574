//! What a file gets, based on its manifest and the policy. Nothing is compiled for that.

use std::sync::Arc;

use semver::Version;

use crate::admission::{DeviceRules, PluginFile};
use crate::claims::Claims;
use crate::file_record::FileRecord;
use crate::loaded::LoadedPlugin;
use crate::loader::Loader;
use crate::policy::Grants;
use crate::table::{PolicyStanding, Table};

/// Why no file is loaded if no policy is in force. People read it below the error of the policy.
const NO_POLICY: &str = "no policy is in force: it is invalid, see above";

/// What a file gets, based on its contents.
pub(super) enum Verdict {
    /// It is being written or read.
    Unknown,
    /// It may be loaded.
    Load(Box<Grants>),
    /// It is for other boards than this one.
    OtherBoard,
    Refused(String),
}

impl Loader {
    /// Returns which file claims which name: by its current content, and by the version from it that is still in use.
    pub(super) fn claims(&self, before: &Table) -> Claims {
        let mut claims = Claims::default();
        for (file, record) in &self.files {
            // A version that stands in for a file makes no claim of its own.
            if let (Some(manifest), None) = (record.manifest(), &record.stands_in_for) {
                claims.add(&manifest.name, file);
            }
            let entry = before.entries.get(file);
            if let Some(plugin) = entry.and_then(|entry| entry.serving.as_ref()) {
                claims.add(&plugin.manifest.name, file);
            }
        }
        claims
    }

    /// Decides what a file gets. Nothing is compiled for that.
    pub(super) fn judge(&self, record: &FileRecord, claims: &Claims) -> Verdict {
        if let Some(reason) = &record.place {
            return Verdict::Refused(reason.clone());
        }
        if record.is_unfinished() {
            return Verdict::Unknown;
        }
        let head = match &record.head {
            None => return Verdict::Unknown,
            Some(Err(reason)) => return Verdict::Refused(reason.clone()),
            Some(Ok(head)) => head,
        };
        let manifest = match &head.manifest {
            Ok(manifest) => manifest,
            Err(reason) => return Verdict::Refused(reason.clone()),
        };
        if let Some(doubled) = claims.doubled(&manifest.name) {
            return Verdict::Refused(doubled);
        }
        if !manifest.is_for(&self.load_context.services.device.identity().device_type) {
            return Verdict::OtherBoard;
        }
        let file = PluginFile {
            manifest,
            digest: &head.digest,
            signatures: &head.signatures,
        };
        let newest = self.newest.version(&manifest.name);
        match self.admit(file, newest) {
            Ok(grants) => Verdict::Load(Box::new(grants)),
            Err(reason) => Verdict::Refused(reason),
        }
    }

    /// Returns what the current policy grants a file on this device.
    fn admit(&self, file: PluginFile<'_>, newest: Option<&Version>) -> Result<Grants, String> {
        // Compared with an empty policy, every file would look as if its owner had not named it.
        if let PolicyStanding::Missing { .. } = self.policy.standing {
            return Err(NO_POLICY.to_owned());
        }
        let device = DeviceRules {
            host_root: &self.load_context.host_root,
            allow_unpinned: self.load_context.allow_unpinned,
        };
        self.policy.in_force.admit(file, device, newest)
    }

    /// Returns whether the policy names this board for a plugin with these grants.
    pub(super) fn is_boards_own(&self, grants: &Grants) -> bool {
        let board = self.load_context.services.device.identity().device_type;
        grants.boards.include(&board)
    }

    /// Returns the previous version of a file if the current policy grants it what it needs.
    pub(super) fn still_granted(
        &self,
        plugin: &Arc<LoadedPlugin>,
        claims: &Claims,
    ) -> Option<Arc<LoadedPlugin>> {
        if claims.doubled(&plugin.manifest.name).is_some() {
            return None;
        }
        let signatures = &plugin.signatures;
        let file = PluginFile {
            manifest: &plugin.manifest,
            digest: &plugin.digest,
            signatures,
        };
        // It is already in use: it does not depend on a signature any more.
        let grants = self.admit(file, None).ok()?;
        if grants == plugin.context.grants {
            return Some(Arc::clone(plugin));
        }
        let linked = self.load_context.link(
            &plugin.code,
            plugin.digest.clone(),
            signatures.clone(),
            plugin.manifest.clone(),
            grants,
            Arc::clone(&plugin.counters),
        );
        linked.ok().map(Arc::new)
    }
}
