//! Which files claim which plugin's name. If several files claim a name, none of them gets it: being the first proves
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The files by the names they claim.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    files: BTreeMap<String, BTreeSet<PathBuf>>,
}

impl Claims {
    pub(crate) fn add(&mut self, name: &str, file: &Path) {
        let files = self.files.entry(name.to_owned()).or_default();
        files.insert(file.to_owned());
    }

    /// Returns whether a file other than this one claims the name.
    pub(crate) fn are_of_others(&self, name: &str, file: &Path) -> bool {
        let mut files = self.files.get(name).into_iter().flatten();
        files.any(|other| other != file)
    }

    /// Returns the error for a name that several files claim, listing all of them.
    pub(crate) fn doubled(&self, name: &str) -> Option<String> {
        let files = self.files.get(name).filter(|files| files.len() > 1)?;
        let list: Vec<_> = files
            .iter()
            .map(|file| format!("`{}`", file.display()))
            .collect();
        let list = list.join(" and ");
        Some(format!(
            "several files say that they are the plugin `{name}`, and none of them is loaded: {list}; remove all but one"
        ))
    }
}
