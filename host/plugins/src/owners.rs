//! Checks who could have changed a file. Plugins and the policy are only read if nobody but root and the supervisor's
//! own user can write them: anyone else who could would decide what runs here and what it may do.
//!
//! A group counts as somebody else, unless it is root's or the supervisor's own: a user's files are often writable by
//! the group that has the user's name and no other member.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Others may write.
const OTHERS_WRITE: u32 = 0o002;
/// The group may write.
const GROUP_WRITES: u32 = 0o020;
/// Users who may write into the folder can neither rename nor remove what others have put there.
const STICKY: u32 = 0o1000;

/// Why a file or a folder is not read: it cannot be inspected, or somebody else could have changed it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct OwnerError(String);

/// A user and a group.
#[derive(Debug, Clone, Copy)]
struct Identity {
    user: u32,
    group: u32,
}

/// Checks that nobody else could have changed the file or folder at `path`, nor put it there. If `path` is a link, its
/// target counts.
///
/// # Errors
/// [`OwnerError`], also if it does not exist.
pub(crate) fn check(path: &Path) -> Result<(), OwnerError> {
    let own = Identity {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    let look =
        |error: io::Error| OwnerError(format!("failed to inspect `{}`: {error}", path.display()));
    let target = fs::canonicalize(path).map_err(look)?;
    let parent = target.parent().unwrap_or(Path::new("/"));
    check_one(parent, &fs::metadata(parent).map_err(look)?, true, own)?;
    check_one(&target, &fs::metadata(&target).map_err(look)?, false, own)
}

/// Checks one of them; if it is the folder around the other (`around`), what others may add to it does no harm.
fn check_one(path: &Path, meta: &Metadata, around: bool, own: Identity) -> Result<(), OwnerError> {
    let (owner, group, mode) = (meta.uid(), meta.gid(), meta.mode() & 0o7777);
    let (place, user) = (path.display(), own.user);
    let lossy = path.to_string_lossy();
    let word = shell_words::quote(&lossy);
    if owner != 0 && owner != user {
        return Err(OwnerError(format!(
            "the supervisor does not use `{place}`: it belongs to the user {owner}, not to root or the supervisor's own user {user}; check its content, then run `chown {user} {word}`"
        )));
    }
    let by_group = mode & GROUP_WRITES != 0 && group != 0 && group != own.group;
    let by_others = mode & OTHERS_WRITE != 0;
    if (by_group || by_others) && !(around && mode & STICKY != 0) {
        return Err(OwnerError(format!(
            "the supervisor does not use `{place}`: others than its owner can write it (mode {mode:04o}, group {group}); check its content, then run `chmod go-w {word}`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_that_others_can_write_is_not_read() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("plugins");
        let file = folder.join("a.wasm");
        fs::create_dir(&folder).unwrap();
        fs::write(&file, "a").unwrap();
        let link = root.path().join("link");
        symlink(&file, &link).unwrap();
        for (file_mode, folder_mode, refused) in [
            (0o644, 0o755, None),
            (0o600, 0o700, None),
            // Anything that others add is checked itself.
            (0o644, 0o1777, None),
            (0o646, 0o755, Some(&file)),
            (0o646, 0o1777, Some(&file)),
            (0o644, 0o757, Some(&folder)),
        ] {
            set_mode(&file, file_mode);
            set_mode(&folder, folder_mode);
            for path in [&file, &link] {
                match (check(path), refused) {
                    (Ok(()), None) => {}
                    (Err(error), Some(refused)) => {
                        let error = error.to_string();
                        let cure = format!("`chmod go-w {}`", refused.display());
                        assert!(error.contains(&cure), "{error}");
                    }
                    (found, _) => panic!("{file_mode:o} in {folder_mode:o}: {found:?}"),
                }
            }
        }
        // A folder of plugins belongs to everyone who can add to it.
        set_mode(&folder, 0o1777);
        assert!(check(&folder).is_err());
        assert!(check(&folder.join("none")).is_err());
    }

    #[test]
    fn the_owner_and_the_group_are_root_or_the_supervisors_own() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("my a.wasm");
        fs::write(&path, "a").unwrap();
        set_mode(&path, 0o664);
        // When the tests run as root, the file is given to another user; otherwise the tests' user already is one.
        let _ = std::os::unix::fs::chown(&path, Some(4711), Some(4711));
        let meta = fs::metadata(&path).unwrap();
        let (user, group) = (meta.uid(), meta.gid());
        let allowed = |user, group| check_one(&path, &meta, false, Identity { user, group });
        allowed(user, group).unwrap();
        let error = allowed(0, group).unwrap_err().to_string();
        assert!(
            error.contains(&format!("belongs to the user {user}")),
            "{error}"
        );
        let remedy = format!("`chown 0 '{}'`", path.display());
        assert!(error.contains(&remedy), "{error}");
        if group != 0 {
            let error = allowed(user, group + 1).unwrap_err().to_string();
            assert!(error.contains("mode 0664"), "{error}");
            let remedy = format!("`chmod go-w '{}'`", path.display());
            assert!(error.contains(&remedy), "{error}");
        }
    }
}
