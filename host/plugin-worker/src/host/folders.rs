//! The folders that a worker can reach.

use std::os::unix::fs::MetadataExt as _;

use plugin_protocol::FolderView;

/// Identifies the folder at a path: one that is mounted or created there later is different.
pub(super) type FolderState = Option<(u64, u64)>;

/// Returns which folders are at these paths now. A worker follows links to them, with the rights of the supervisor if
/// they are root's.
///
/// # Errors
/// If somebody else can replace one of them, for example by a link to `/etc`; in words.
pub(super) async fn folder_states(folders: Vec<FolderView>) -> Result<Vec<FolderState>, String> {
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    let look = move || {
        let folders = folders.iter();
        folders
            .map(|folder| {
                secure_fs::check_location(&folder.host).map_err(|error| {
                    format!("a folder that the policy grants is not used: {error}")
                })?;
                let about = std::fs::metadata(&folder.host).ok();
                Ok(about.map(|about| (about.dev(), about.ino())))
            })
            .collect()
    };
    // This takes time if the disk is on another machine.
    let looked = tokio::task::spawn_blocking(look).await;
    looked.unwrap_or_else(|error| Err(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[tokio::test]
    async fn a_folder_that_others_can_replace_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("shared");
        let host = parent.join("data");
        fs::create_dir_all(&host).unwrap();
        let folders = vec![FolderView {
            host: host.clone(),
            guest: "/data".to_owned(),
            write: true,
            optional: false,
        }];
        let before = folder_states(folders.clone()).await.unwrap();
        assert!(before[0].is_some());
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).unwrap();
        fs::remove_dir(&host).unwrap();
        symlink("/etc", &host).unwrap();
        let reason = folder_states(folders.clone()).await.unwrap_err();
        for part in [&host, &parent] {
            assert!(
                reason.contains(&format!("`{}`", part.display())),
                "{reason}"
            );
        }
        // A link in a folder of the supervisor's own is the owner's decision.
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o755)).unwrap();
        let state = folder_states(folders).await.unwrap();
        let etc = fs::metadata("/etc").unwrap();
        assert_eq!(state, [Some((etc.dev(), etc.ino()))]);
    }
}
