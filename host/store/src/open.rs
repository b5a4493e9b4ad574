//! Opening the store, whose database is replaced by an empty one if it is corrupt.

use std::path::{Path, PathBuf};

use secure_fs::{Access, SecureDir};

use crate::database::{connect_copy, open_database};
use crate::database_files::FILE_NAME;
use crate::error::StoreError;
use crate::folder_lock::lock;
use crate::store::Store;
use crate::{copied, remembered};

/// An open store.
#[derive(Debug)]
pub struct OpenStore {
    /// The store, migrated to this supervisor's schema.
    pub store: Store,
    /// The new path of the file that was found, if it was corrupt; the store is empty then.
    pub set_aside: Option<PathBuf>,
}

impl Store {
    /// Opens the store in `folder`, which is created if it does not exist (only for its owner, as is the file, because
    /// it contains keys; a folder with another owner is refused). The folder stays locked until the last clone is
    /// dropped.
    ///
    /// A file that is not a sound database of ours is renamed, with the date and a number in its name, and replaced by
    /// an empty store for the same device. The newest few of the files that were set aside in this way are kept.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another supervisor uses the folder, [`StoreError::Newer`] if a newer one wrote the
    /// file, else the error of the operating system or SQLite.
    pub fn open(folder: &Path) -> Result<OpenStore, StoreError> {
        Store::open_or_copy(folder, None)
    }

    /// As [`Store::open`], but if the disk of `folder` accepts no writes, because it is full or read-only, a copy of
    /// the store below `copies` is read instead, which has to be on another disk. Writes fail until the disk accepts
    /// them again.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_or_copy(
        folder: &Path,
        copies: Option<&SecureDir>,
    ) -> Result<OpenStore, StoreError> {
        SecureDir::open(folder, Access::Private)
            .map_err(|error| StoreError::file("use the state folder", folder)(error.into()))?;
        let lock = lock(folder)?;
        let path = folder.join(FILE_NAME);
        let file = remembered::file(folder);
        let known = file.as_ref().and_then(remembered::read);
        let failed = match open_database(&path, known.as_ref()) {
            Ok((loaded, set_aside)) => {
                return Ok(OpenStore {
                    store: Store::new(loaded, None, file, lock),
                    set_aside,
                });
            }
            Err(failed) => failed,
        };
        let (Some(copies), Some(why)) = (copies, copied::why_unwritable(folder)) else {
            return Err(failed);
        };
        // A missing or corrupt database contains nothing of the device that could be copied.
        let Ok(loaded) = copied::copy(&path, copies).and_then(|copy| connect_copy(&copy)) else {
            return Err(failed);
        };
        tracing::error!(
            path = %folder.display(),
            "cannot write into `{}` ({why}): the device continues with the stored state, and accepts no target and no setting until there is room",
            folder.display()
        );
        Ok(OpenStore {
            store: Store::new(loaded, Some(path), file, lock),
            set_aside: None,
        })
    }
}
