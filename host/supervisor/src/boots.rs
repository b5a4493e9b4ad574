//! The boots of the host: the current one, and whether a configured change waits for the next
//! (docs/spec/device.md#reboot-due).

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use model::BootId;
use secure_fs::SecureFile;

/// The kernel's file with the id of the boot.
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";
/// The maximum length of either file, in bytes.
const LONGEST: u64 = 256;

/// The boots of one host.
pub(crate) struct Boots {
    host_root: PathBuf,
    /// Contains the boot in which it was created, so it has no meaning in a later boot. `None` if it cannot be stored.
    mark: Option<SecureFile>,
    /// The number of rehearsed reboots; each counts like a real one.
    rehearsed: AtomicU32,
}

impl Boots {
    pub(crate) fn new(host_root: &Path, mark: Option<SecureFile>) -> Self {
        Boots {
            host_root: host_root.to_owned(),
            mark,
            rehearsed: AtomicU32::new(0),
        }
    }

    /// Returns the current boot. If the host's files are elsewhere, the host's id is used, else the kernel's, which is
    /// the same for all containers.
    pub(crate) fn current(&self) -> Option<BootId> {
        let files = [self.host_root.join(BOOT_ID), Path::new("/").join(BOOT_ID)];
        let id = files.iter().find_map(|file| read_short(file))?;
        let id = match self.rehearsed.load(Ordering::SeqCst) {
            0 => id,
            count => format!("{id}+{count}"),
        };
        id.parse().ok()
    }

    /// Returns whether a change was configured in this boot that takes effect with the next.
    pub(crate) fn is_reboot_due(&self) -> bool {
        let (Some(this), Some(mark)) = (self.current(), &self.mark) else {
            return false;
        };
        let marked_boot = mark.read(LONGEST).ok().flatten();
        marked_boot.is_some_and(|marked| marked.trim_ascii() == this.as_str().as_bytes())
    }

    /// Records that a reboot is due.
    pub(crate) fn require_reboot(&self) -> io::Result<()> {
        let Some(boot) = self.current() else {
            return Err(io::Error::other("failed to read the boot id"));
        };
        match &self.mark {
            Some(mark) => mark.replace(boot.as_str().as_bytes()),
            None => Err(io::Error::other(
                "the supervisor has no folder of its own in `/run`: its log says why",
            )),
        }
    }

    /// Withdraws that: nothing was configured after all.
    pub(crate) fn require_none(&self) {
        let _ = self.mark.as_ref().map(SecureFile::remove);
    }

    /// Treats a rehearsed reboot, which the host only logged, as done.
    pub(crate) fn rehearse(&self) {
        self.rehearsed.fetch_add(1, Ordering::SeqCst);
        self.require_none();
    }
}

fn read_short(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST).read_to_string(&mut text).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::Branding;

    use super::*;
    use crate::run_folder::RunFolder;

    fn boots(root: &Path) -> Boots {
        let folder = RunFolder::open(root, &Branding::default());
        Boots::new(root, folder.reboot_mark())
    }

    fn boot(root: &Path, id: &str) -> Boots {
        let file = root.join(BOOT_ID);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{id}\n")).unwrap();
        boots(root)
    }

    #[test]
    fn a_mark_is_of_the_boot_in_which_it_was_made() {
        let root = tempfile::tempdir().unwrap();
        let boots = boot(root.path(), "one");
        assert_eq!(boots.current().unwrap().as_str(), "one");
        assert!(!boots.is_reboot_due());
        boots.require_reboot().unwrap();
        assert!(boots.is_reboot_due());
        // The supervisor is restarted, then the host.
        assert!(boot(root.path(), "one").is_reboot_due());
        assert!(!boot(root.path(), "two").is_reboot_due());
        let mark = root.path().join("run/supervisor/reboot-after-apply");
        fs::write(mark, "").unwrap();
        assert!(!boot(root.path(), "one").is_reboot_due());
    }

    #[test]
    fn a_rehearsed_boot_is_another() {
        let root = tempfile::tempdir().unwrap();
        let boots = boot(root.path(), "one");
        boots.require_reboot().unwrap();
        boots.rehearse();
        assert!(!boots.is_reboot_due());
        assert_eq!(boots.current().unwrap().as_str(), "one+1");
        boots.require_reboot().unwrap();
        assert!(boots.is_reboot_due());
        boots.require_none();
        assert!(!boots.is_reboot_due());
    }

    #[test]
    fn the_kernel_names_the_boot_where_the_host_root_does_not() {
        let root = tempfile::tempdir().unwrap();
        let boots = boots(root.path());
        assert_eq!(boots.current().unwrap().as_str().len(), 36);
    }
}
