//! Versions that served before, in place of files that cannot be loaded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::claims::Claims;
use crate::file_record::FileRecord;
use crate::loaded::LoadedPlugin;
use crate::loader::Loader;
use crate::loader::verdict::Verdict;
use crate::table::Table;

impl Loader {
    /// Starts to read the kept version of each file that cannot be loaded and from which nothing serves. The version is
    /// then judged like any other file.
    pub(super) fn look_for_stand_ins(&mut self, verdicts: &[(PathBuf, Verdict)], before: &Table) {
        for (file, verdict) in verdicts {
            let Some(record) = self.files.get(file) else {
                continue;
            };
            let is_refused = matches!(verdict, Verdict::Refused(_)) || record.failure.is_some();
            let entry = before.entries.get(file);
            let serves = entry.is_some_and(|entry| entry.serving.is_some());
            if !is_refused || serves || record.stands_in_for.is_some() {
                continue;
            }
            let Some(versions) = self.kept.versions(file) else {
                continue;
            };
            // Otherwise the kept version is the one that cannot be loaded.
            let component = self.kept.component(&versions.latest);
            if record.digest() == Some(&versions.latest) || self.files.contains_key(&component) {
                continue;
            }
            let mut stand_in = FileRecord {
                stands_in_for: Some(file.clone()),
                ..FileRecord::default()
            };
            self.begin_to_read(&component, &mut stand_in);
            self.files.insert(component, stand_in);
        }
    }

    /// Keeps those of the previous records that stand in for files which still exist.
    pub(super) fn keep_stand_ins(&mut self, before: BTreeMap<PathBuf, FileRecord>) {
        for (component, record) in before {
            let stands_in = record.stands_in_for.as_ref();
            if stands_in.is_some_and(|file| self.files.contains_key(file)) {
                self.files.insert(component, record);
            }
        }
    }

    /// Returns the version that stands in for `file`, once it is loaded, unless another file has its name by now.
    pub(super) fn stand_in(&self, file: &Path, claims: &Claims) -> Option<&Arc<LoadedPlugin>> {
        let versions = self.kept.versions(file)?;
        let component = self.kept.component(&versions.latest);
        let record = self.files.get(&component)?;
        let is_its = record.stands_in_for.as_deref() == Some(file);
        let loaded = record.loaded.as_ref().filter(|_| is_its)?;
        (!claims.are_of_others(&loaded.manifest.name, file)).then_some(loaded)
    }

    /// Keeps the plugins that are in use now, except those that the layout ships with.
    pub(super) fn keep_what_serves(&mut self, table: &Table) {
        for (file, entry) in &table.entries {
            let Some(plugin) = &entry.serving else {
                continue;
            };
            let is_file_itself =
                |record: &FileRecord| record.digest() == Some(plugin.digest.as_str());
            if !plugin.context.grants.is_stock && self.files.get(file).is_some_and(is_file_itself) {
                let signature = plugin.signatures.text_beside();
                self.kept.keep(file, &plugin.digest, signature);
            }
        }
    }
}
