//! Makes a service's user the owner of its files, while the process still has the supervisor's user.
//!
//! ```text
//! containers/ID        root, and the user's own group: it creates files here, and cannot change those of the engine (sticky)
//!   state.json, log    the user's
//!   root/, tmpfs/      root, and the user's own group
//! volumes/NAME/data    root, and the app's group, which is the primary group of its services and so of their files
//! ```
//!
//! The folders themselves stay root's, so no service can replace them. All of this uses descriptors: links that a
//! service left there are not followed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, fstat, openat,
    statat,
};
use rustix::path::Arg;
use wasm_service::log_file::{LOG, OLDER_LOG};
use wasm_service::record::{FolderOwner, PORTS, STATE, ServiceUser};

/// The mode of the container's folder: its user creates files there, others have access to readable ones.
const CONTAINER_MODE: u32 = 0o1771;
/// The mode of a folder of one service.
const PRIVATE_MODE: u32 = 0o770;
/// The mode of a folder that services share. It has no set-group-ID bit, which the unit forbids (`RestrictSUIDSGID`)
/// and which is not needed: the app's group is the first one of its services.
const SHARED_MODE: u32 = 0o770;
/// The maximum depth of a tree that is handed over.
const MAX_DEPTH: usize = 256;

/// Hands over those files in the container's folder that the process writes, if they exist.
pub(crate) fn give_records(folder: &Path, user: ServiceUser) -> io::Result<()> {
    let folder = open_folder(CWD, folder)?;
    fchown(&folder, Some(Uid::ROOT), Some(Gid::from_raw(user.uid)))?;
    fchmod(&folder, Mode::from_raw_mode(CONTAINER_MODE))?;
    for name in [STATE, PORTS, LOG, OLDER_LOG] {
        let file = match openat(&folder, name, plain(), Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => continue,
            Err(error) => return Err(error.into()),
        };
        let about = fstat(&file)?;
        // With a second link it could be the file of another owner.
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile || about.st_nlink != 1 {
            return Err(io::Error::other(format!(
                "`{name}` is not a plain file with a single name"
            )));
        }
        if about.st_uid != user.uid {
            let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.app_gid));
            fchown(&file, Some(uid), Some(gid))?;
        }
    }
    Ok(())
}

/// Hands over a folder that the service sees. At the first time, or if it had another owner, this includes everything
/// in it; after that files keep the owners that created them.
pub(crate) fn give_folder(
    folder: &OwnedFd,
    owner: FolderOwner,
    user: ServiceUser,
) -> io::Result<()> {
    let (group, mode) = match owner {
        FolderOwner::Service => (user.uid, PRIVATE_MODE),
        FolderOwner::App => (user.app_gid, SHARED_MODE),
        FolderOwner::Host | FolderOwner::Supervisor => return Ok(()),
    };
    let about = fstat(folder)?;
    if about.st_gid == group && about.st_mode & 0o7777 == mode {
        return Ok(());
    }
    // The folder's own owner is changed last: after a kill in between everything is handed over again.
    hand_over(folder, owner, user, 0)?;
    fchown(folder, Some(Uid::ROOT), Some(Gid::from_raw(group)))?;
    Ok(fchmod(folder, Mode::from_raw_mode(mode))?)
}

fn hand_over(
    folder: &OwnedFd,
    owner: FolderOwner,
    user: ServiceUser,
    depth: usize,
) -> io::Result<()> {
    if depth == MAX_DEPTH {
        return Err(io::Error::other(format!(
            "it has more than {MAX_DEPTH} nested folders"
        )));
    }
    let is_shared = owner == FolderOwner::App;
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.app_gid));
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        chownat(
            folder,
            name,
            Some(uid),
            Some(gid),
            AtFlags::SYMLINK_NOFOLLOW,
        )?;
        let about = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mode = about.st_mode & 0o1777;
        match FileType::from_raw_mode(about.st_mode) {
            FileType::Directory => {
                let below = open_folder(folder, name)?;
                let more = if is_shared { SHARED_MODE } else { 0o700 };
                fchmod(&below, Mode::from_raw_mode(mode | more))?;
                hand_over(&below, owner, user, depth + 1)?;
            }
            FileType::RegularFile if is_shared => {
                let file = openat(folder, name, plain(), Mode::empty())?;
                fchmod(&file, Mode::from_raw_mode(mode | 0o060))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Opens a folder, but not a link to one.
pub(crate) fn open_folder(parent: impl AsFd, path: impl Arg) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, path, flags, Mode::empty())?)
}

fn plain() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC
}
