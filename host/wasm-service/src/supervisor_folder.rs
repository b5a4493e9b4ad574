//! The folder that a service shares with the supervisor, `SUPERVISOR/services/APP/SERVICE`, where `SUPERVISOR` is the
//! supervisor's folder in `/tmp`.
//!
//! Everybody may create files in `/tmp`, so a path there may lead to a folder of somebody else, who may have put links
//! into it. The engine prepares the folder and the service's process opens it: one by one, without following links, and
//! only if those above belong to the supervisor.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use secure_fs::{Access, SecureDir};

/// The mode of the folder: any user in the service can put a lock into it, and remove only their own.
const MODE: u32 = 0o1777;
/// The number of names below the supervisor's folder.
const DEPTH: usize = 3;

/// The place of such a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorFolder {
    top: PathBuf,
    names: [String; DEPTH],
}

impl SupervisorFolder {
    /// Returns `None` if `path` is not the path of such a folder in `top`, the supervisor's.
    #[must_use]
    pub fn below(top: &Path, path: &Path) -> Option<Self> {
        let inner = path.strip_prefix(top).ok()?;
        let names = inner.components().map(|part| match part {
            Component::Normal(name) => name.to_str().map(str::to_owned),
            _ => None,
        });
        let names: Vec<String> = names.collect::<Option<_>>()?;
        Some(SupervisorFolder {
            top: top.to_owned(),
            names: names.try_into().ok()?,
        })
    }

    /// Returns the place with this path. The path comes from a record: whether it is in the supervisor's folder was
    /// checked when that was written.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        SupervisorFolder::below(path.ancestors().nth(DEPTH)?, path)
    }

    /// Creates the folder, so that the service can put locks into it. If somebody else owns the supervisor's folder or
    /// can write to it, that is moved away, and a new one takes its place.
    ///
    /// # Errors
    /// Those of the operating system, and those of [`SecureDir`]; the message names the folder.
    pub fn prepare(&self) -> io::Result<()> {
        let [services, app, service] = &self.names;
        let top = SecureDir::open_or_replace(&self.top, Access::Readable)?;
        let services = top.dir(services, Access::Readable)?;
        let app = services.dir(app, Access::Readable)?;
        let made = app.shared_dir(service, Some(MODE));
        made.map(drop).map_err(|error| self.failed(&error))
    }

    /// Opens the folder, and creates nothing.
    ///
    /// # Errors
    /// As for [`Self::prepare`], and if the folder does not exist, or if somebody else owns one of those above or can
    /// write to it.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let [services, app, service] = &self.names;
        let missing = || self.failed(&io::ErrorKind::NotFound.into());
        let top = SecureDir::existing(&self.top, Access::Readable)?.ok_or_else(missing)?;
        let services = top.existing_dir(services, Access::Readable)?;
        let app = services
            .ok_or_else(missing)?
            .existing_dir(app, Access::Readable)?;
        let opened = app.ok_or_else(missing)?.shared_dir(service, None);
        opened.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> io::Error {
        let path = self
            .names
            .iter()
            .fold(self.top.clone(), |path, name| path.join(name));
        let text = format!("failed to open the folder `{}`: {error}", path.display());
        io::Error::new(error.kind(), text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A folder like `/tmp`, with a folder of somebody else next to it.
    struct Host {
        root: tempfile::TempDir,
    }

    impl Host {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            for folder in ["tmp", "victim"] {
                fs::create_dir(root.path().join(folder)).unwrap();
            }
            Host { root }
        }

        fn top(&self) -> PathBuf {
            self.root.path().join("tmp/platform-supervisor")
        }

        fn victim(&self) -> PathBuf {
            self.root.path().join("victim")
        }

        fn folder(&self) -> SupervisorFolder {
            SupervisorFolder::from_path(&self.top().join("services/7/web")).unwrap()
        }

        fn assert_victim_is_untouched(&self) {
            assert_eq!(fs::read_dir(self.victim()).unwrap().count(), 0);
            assert_eq!(mode(&self.victim()), 0o755);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_prepared_folder_is_opened_and_none_is_created() {
        let host = Host::new();
        let folder = host.folder();
        let error = folder.open().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("services/7/web"), "{error}");
        assert!(!host.top().exists());
        folder.prepare().unwrap();
        folder.open().unwrap();
        assert_eq!(mode(&host.top().join("services/7/web")), 0o1777);
        for above in ["", "services", "services/7"] {
            assert_eq!(mode(&host.top().join(above)), 0o755);
        }
    }

    #[test]
    fn a_folder_that_others_could_write_to_is_not_opened_and_is_replaced() {
        let host = Host::new();
        fs::create_dir_all(host.top().join("services")).unwrap();
        symlink(host.victim(), host.top().join("services/7")).unwrap();
        fs::set_permissions(host.top(), Permissions::from_mode(0o777)).unwrap();
        let folder = host.folder();
        let error = folder.open().unwrap_err().to_string();
        assert!(
            error.contains("others can write into the folder"),
            "{error}"
        );
        folder.prepare().unwrap();
        folder.open().unwrap();
        assert_eq!(mode(&host.top()), 0o755);
        host.assert_victim_is_untouched();
    }

    #[test]
    fn no_link_is_followed_at_any_level() {
        for level in ["", "services", "services/7", "services/7/web"] {
            let host = Host::new();
            // Without a slash at its end, which would follow the link.
            let link: PathBuf = host.top().join(level).components().collect();
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(host.victim(), &link).unwrap();
            // The folders to which it would lead exist.
            let behind = match level {
                "" => "services/7/web",
                "services" => "7/web",
                "services/7" => "web",
                _ => "",
            };
            fs::create_dir_all(host.victim().join(behind)).unwrap();
            let folder = host.folder();
            assert!(folder.open().is_err(), "{level}");
            // Only the supervisor's own folder can be somebody else's.
            assert_eq!(folder.prepare().is_ok(), level.is_empty(), "{level}");
            assert_eq!(mode(&host.victim().join(behind)), 0o755, "{level}");
        }
    }

    #[test]
    fn only_the_folder_of_a_service_is_one() {
        let top = Path::new("/tmp/platform-supervisor");
        let is_one = |path: &str| SupervisorFolder::below(top, Path::new(path)).is_some();
        assert!(is_one("/tmp/platform-supervisor/services/7/web"));
        for other in [
            "/tmp/platform-supervisor",
            "/tmp/platform-supervisor/services/7",
            "/tmp/platform-supervisor/services/7/web/more",
            "/tmp/platform-supervisor/services/../web",
            "/tmp/platform-supervisor/../../web",
            "/tmp/platform-supervisors/services/7/web",
            "/run/dbus",
        ] {
            assert!(!is_one(other), "{other}");
        }
    }
}
