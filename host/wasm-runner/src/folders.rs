//! The folders that a service sees, opened while the process still has the supervisor's rights.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use wasm_service::SupervisorFolder;
use wasm_service::record::{Folder, FolderOwner, Launch, ServiceUser};

use crate::ownership;

/// Opens the folders that the service sees, and keeps them open: from then on they are reached by these descriptors,
/// whatever happens to their paths and whoever may follow those. The service's own folders are created, emptied if they
/// are volatile, and given to its user.
///
/// # Errors
/// If a folder cannot be created or opened; the message names it.
pub(crate) fn prepare_folders(launch: &mut Launch) -> Result<Vec<OwnedFd>> {
    let mut open = Vec::new();
    for folder in &mut launch.folders {
        let is_root = folder.guest == "/" && !folder.read_only;
        let working_dir = is_root.then_some(launch.working_dir.as_str());
        let descriptor = prepare_folder(folder, working_dir, launch.user).with_context(|| {
            format!(
                "failed to mount `{}` at `{}`",
                folder.host.display(),
                folder.guest
            )
        })?;
        folder.host = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        open.push(descriptor);
    }
    Ok(open)
}

fn prepare_folder(
    folder: &Folder,
    working_dir: Option<&str>,
    user: Option<ServiceUser>,
) -> io::Result<OwnedFd> {
    let host = &folder.host;
    let descriptor = match folder.owner {
        FolderOwner::Service | FolderOwner::App => {
            if folder.volatile && host.exists() {
                fs::remove_dir_all(host)?;
            }
            fs::create_dir_all(host)?;
            if let Some(working_dir) = working_dir {
                make_working_dir(host, working_dir);
            }
            ownership::open_folder(rustix::fs::CWD, host)?
        }
        // Whoever can write next to a folder of the host could otherwise have this process, which may do everything,
        // create one elsewhere.
        FolderOwner::Host => fs::File::open(host)?.into(),
        FolderOwner::Supervisor => SupervisorFolder::from_path(host)
            .ok_or(io::ErrorKind::InvalidInput)?
            .open()?,
    };
    if let Some(user) = user {
        ownership::give_folder(&descriptor, folder.owner, user)?;
    }
    Ok(descriptor)
}

/// Creates the working directory, which exists in a container. If that fails, the service will notice.
fn make_working_dir(root: &Path, working_dir: &str) {
    let parts = working_dir.split('/').filter(|part| !part.is_empty());
    if let Ok(root) = cap_std::fs::Dir::open_ambient_dir(root, cap_std::ambient_authority()) {
        let _ = root.create_dir_all(parts.collect::<Vec<_>>().join("/"));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(host: PathBuf, owner: FolderOwner) -> Folder {
        Folder {
            host,
            guest: "/tmp/platform".into(),
            read_only: false,
            volatile: false,
            owner,
        }
    }

    #[test]
    fn folders_of_the_host_and_of_the_supervisor_are_never_created() {
        let root = tempfile::tempdir().unwrap();
        let tmp = root.path().join("tmp");
        fs::create_dir(&tmp).unwrap();
        let path = tmp.join("platform-supervisor/services/7/web");
        for owner in [FolderOwner::Host, FolderOwner::Supervisor] {
            let error = prepare_folder(&folder(path.clone(), owner), None, None).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
        }
        SupervisorFolder::from_path(&path)
            .unwrap()
            .prepare()
            .unwrap();
        prepare_folder(&folder(path, FolderOwner::Supervisor), None, None).unwrap();
    }

    #[test]
    fn a_link_of_somebody_else_leads_the_process_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        fs::create_dir_all(victim.join("present")).unwrap();
        let services = root.path().join("tmp/platform-supervisor/services");
        fs::create_dir_all(&services).unwrap();
        symlink(&victim, services.join("7")).unwrap();
        for service in ["web", "present"] {
            let path = services.join("7").join(service);
            let folder = folder(path, FolderOwner::Supervisor);
            assert!(prepare_folder(&folder, None, None).is_err(), "{service}");
        }
        let entries = fs::read_dir(&victim).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["present"]);
    }
}
