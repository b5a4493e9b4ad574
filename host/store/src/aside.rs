//! Corrupt databases, set aside under other names for a person to examine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::database_files::{COMPANIONS, LOGS, beside, sync_folder_of, unless_missing};
use crate::error::StoreError;

/// How many files that were set aside are kept: a device with a failing disk sets one aside at each
/// start, and must not fill the disk with them.
const KEPT_ASIDE: usize = 3;
/// The text between the database's name and the date in the name of a file that was set aside.
const ASIDE: &str = ".corrupt-";

/// Returns the files that were set aside: the number at the end of each name, and the database's path. The numbers
/// increase, so their order is right even if the clock is wrong (a device whose clock has no battery repeats the first
/// seconds of 1970 again and again).
fn set_aside_before(path: &Path) -> BTreeMap<u64, PathBuf> {
    let Some((folder, name)) = path.parent().zip(path.file_name()) else {
        return BTreeMap::new();
    };
    let prefix = format!("{}{ASIDE}", name.to_string_lossy());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let asides = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        // A log without its database is left by a kill between two renames.
        let database = LOGS
            .iter()
            .find_map(|companion| name.strip_suffix(companion))
            .unwrap_or(&name);
        let (_date, number) = database.strip_prefix(&prefix)?.split_once('-')?;
        Some((number.parse().ok()?, folder.join(database)))
    });
    asides.collect()
}

/// Renames the database and its companion files. Returns the database's new name.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, StoreError> {
    let date = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let last = set_aside_before(path).last_key_value().map(|(n, _)| *n);
    let number = last.unwrap_or(0).saturating_add(1);
    let aside = beside(path, &format!("{ASIDE}{date}-{number}"));
    // The database last: as long as it exists, the next start finds it corrupt and continues here.
    for companion in COMPANIONS.iter().rev() {
        let renamed = fs::rename(beside(path, companion), beside(&aside, companion));
        unless_missing(renamed).map_err(StoreError::file("set aside", path))?;
    }
    sync_folder_of(path)?;
    Ok(aside)
}

/// Removes the files that were set aside, except for the newest few. Failures are logged, and do not prevent the start.
pub(crate) fn remove_old_asides(path: &Path) {
    let asides = set_aside_before(path);
    let too_many = asides.len().saturating_sub(KEPT_ASIDE);
    for aside in asides.into_values().take(too_many) {
        let mut companions = COMPANIONS.iter().rev();
        let removed = companions
            .try_for_each(|companion| unless_missing(fs::remove_file(beside(&aside, companion))));
        match removed {
            Ok(()) => tracing::warn!(
                path = %aside.display(),
                "removed `{}`: only the newest {KEPT_ASIDE} databases that were set aside are kept",
                aside.display()
            ),
            Err(error) => tracing::warn!(
                %error,
                path = %aside.display(),
                "failed to remove `{}`",
                aside.display()
            ),
        }
    }
}
