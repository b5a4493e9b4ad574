//! The supervisor's own folder in `/run`: data that outlives a restart of the supervisor but not a reboot, and that no
//! other user can read or write. The files for services are in `/tmp` instead, and contain nothing that the supervisor
//! would have to trust.

use std::path::Path;

use model::Branding;
use secure_fs::{Access, DirError, SecureDir, SecureFile};

/// Below the host's root; systemd creates it for the unit (`RuntimeDirectory=`).
const FOLDER: &str = "run/supervisor";
/// Marks that a reboot is due ([`crate::boots`]).
const REBOOT_MARK: &str = "reboot-after-apply";
/// The variables of the target, for programs of the host that run as root ([`crate::variables`]).
const VARIABLES: &str = "target-state-config";
/// Names the boot in which the supervisor has run ([`crate::plugin_events`]).
const START_MARK: &str = "started-in-boot";
/// The part of the device's state that the cloud has accepted, including the key of the API.
const REPORTED: &str = "state-report-cache";
/// The longest mark, in bytes.
const LONGEST_MARK: u64 = 256;

/// The files of that folder; unusable if it could not be opened.
#[derive(Debug, Clone)]
pub(crate) struct RunFolder(Option<SecureDir>);

impl RunFolder {
    /// Opens the folder, and takes over the files that an earlier version of the supervisor kept in the folder for
    /// services. A device without the folder works, but forgets its contents with each restart.
    pub(crate) fn open(host_root: &Path, branding: &Branding) -> Self {
        let folder = RunFolder(open(&host_root.join(FOLDER)));
        let former = host_root.join(branding.host_folder());
        // A folder that others could have written to is not trusted.
        if let Ok(Some(former)) = SecureDir::existing(&former, Access::Readable) {
            folder.take_over(&former);
        }
        folder
    }

    pub(crate) fn reboot_mark(&self) -> Option<SecureFile> {
        self.file(REBOOT_MARK)
    }

    pub(crate) fn start_mark(&self) -> Option<SecureFile> {
        self.file(START_MARK)
    }

    pub(crate) fn variables(&self) -> Option<SecureFile> {
        self.file(VARIABLES)
    }

    pub(crate) fn reported(&self) -> Option<SecureFile> {
        self.file(REPORTED)
    }

    /// Returns the folder itself, if it could be opened.
    pub(crate) fn folder(&self) -> Option<&SecureDir> {
        self.0.as_ref()
    }

    fn file(&self, name: &str) -> Option<SecureFile> {
        self.0.as_ref().map(|folder| folder.file(name))
    }

    /// Moves the mark; the state is reported to the cloud again, and the variables are written
    /// again.
    fn take_over(&self, former: &SecureDir) {
        if let (Some(ours), Ok(Some(mark))) = (&self.0, former.read(REBOOT_MARK, LONGEST_MARK))
            && let Ok(None) = ours.read(REBOOT_MARK, LONGEST_MARK)
            && let Err(error) = ours.replace(REBOOT_MARK, &mark)
        {
            tracing::warn!(%error, "failed to take over the mark that a reboot is due");
            return;
        }
        for name in [REBOOT_MARK, VARIABLES, REPORTED] {
            for name in [name.to_owned(), format!("{name}.new")] {
                if let Err(error) = former.remove(&name) {
                    let path = former.path().join(name);
                    tracing::warn!(%error, path = %path.display(), "failed to remove `{}`", path.display());
                }
            }
        }
    }
}

fn open(path: &Path) -> Option<SecureDir> {
    match SecureDir::open(path, Access::Private) {
        Ok(folder) => Some(folder),
        Err(error) => {
            let cause = match &error {
                DirError::Open { source, .. } => format!(": {source}"),
                _ => String::new(),
            };
            tracing::error!(
                "{error}{cause}. Until this is fixed and the supervisor is restarted, it forgets at each restart whether a reboot is due and what it has reported to the cloud"
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    /// A user without any privileges; these tests run as root, or do nothing.
    const NOBODY: u32 = 65534;

    #[test]
    fn the_folder_is_for_nobody_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = RunFolder::open(root.path(), &Branding::default());
        folder.reported().unwrap().replace(b"the key").unwrap();
        let mode = |path: &str| {
            let about = fs::symlink_metadata(root.path().join(path)).unwrap();
            about.permissions().mode() & 0o7777
        };
        assert_eq!(mode(FOLDER), 0o700);
        assert_eq!(mode("run/supervisor/state-report-cache"), 0o600);
    }

    #[test]
    fn files_of_an_earlier_version_are_moved() {
        let root = tempfile::tempdir().unwrap();
        let former = root.path().join("tmp/platform-supervisor");
        fs::create_dir_all(&former).unwrap();
        for name in [REBOOT_MARK, VARIABLES, REPORTED, "state-report-cache.new"] {
            fs::write(former.join(name), name).unwrap();
        }
        let folder = RunFolder::open(root.path(), &Branding::default());
        let mark = folder.reboot_mark().unwrap().read(LONGEST_MARK).unwrap();
        assert_eq!(mark.unwrap(), REBOOT_MARK.as_bytes());
        assert!(folder.reported().unwrap().read(100).unwrap().is_none());
        assert_eq!(fs::read_dir(&former).unwrap().count(), 0);
    }

    #[test]
    fn files_of_other_users_in_the_former_folder_are_ignored() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let former = root.path().join("tmp/platform-supervisor");
        fs::create_dir_all(&former).unwrap();
        fs::write(former.join(REBOOT_MARK), "a boot").unwrap();
        chown(&former, Some(NOBODY), Some(NOBODY)).unwrap();
        let folder = RunFolder::open(root.path(), &Branding::default());
        let mark = folder.reboot_mark().unwrap().read(LONGEST_MARK).unwrap();
        assert!(mark.is_none());

        let elsewhere = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::create_dir(other.path().join("run")).unwrap();
        symlink(elsewhere.path(), other.path().join(FOLDER)).unwrap();
        let folder = RunFolder::open(other.path(), &Branding::default());
        assert!(folder.reported().is_none());
    }
}
