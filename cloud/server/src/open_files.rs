//! The number of files that this program may open: each tunnel is one, and the usual limit is a thousand.

use anyhow::Result;
use data::{Database, SystemPurpose};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files other than those of tunnels: the database, and connections of people and of polling devices.
const OTHERS: u64 = 1000;

/// Raises the limit on open files to the maximum that the system allows.
pub(crate) fn allow_all() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(
            "no more than {:?} files can be opened: {error}",
            limit.current
        );
    }
}

/// Logs a warning if there are more devices than simultaneous tunnels.
///
/// # Errors
/// If the database fails.
pub(crate) async fn compare_with_devices(database: &Database) -> Result<()> {
    let Some(files) = getrlimit(Resource::Nofile).current else {
        return Ok(());
    };
    let devices = SystemPurpose::Operation.sql("SELECT count(*) FROM device");
    let devices = database.id(&devices).await?.unwrap_or_default();
    match too_few(files, u64::try_from(devices)?) {
        None => tracing::debug!("{files} files may be open"),
        Some(warning) => tracing::warn!("{warning}"),
    }
    Ok(())
}

fn too_few(files: u64, devices: u64) -> Option<String> {
    let needed = devices.saturating_add(OTHERS);
    (files < needed).then(|| {
        format!(
            "the system lets this program open {files} files, and {devices} devices take {needed} when all are \
             connected: raise its hard limit (`ulimit -Hn`, `LimitNOFILE` of systemd)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_limit_too_low_for_all_tunnels_gives_a_warning_with_a_remedy() {
        assert_eq!(too_few(20_000, 10_000), None);
        assert_eq!(too_few(1_100, 100), None);
        let warning = too_few(1_024, 2_000).expect("a warning");
        for part in ["1024 files", "2000 devices", "3000", "LimitNOFILE"] {
            assert!(warning.contains(part), "{warning}");
        }
    }

    #[test]
    fn the_limit_is_raised_to_the_hard_one() {
        allow_all();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
