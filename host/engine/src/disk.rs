//! Checks that the disk has room for an image before it is downloaded.
//!
//! Called by both engines before a transfer. A full disk breaks more than the download, so some space stays reserved,
//! and an image that would need it is refused before its first byte.

use std::io;
use std::path::Path;
use std::sync::Arc;

use model::ImageRef;

use crate::EngineError;

/// The space that a download leaves free, in bytes, for the device itself: databases, logs,
/// compiled code.
pub const RESERVE: u64 = 64 << 20;

/// Reports how much space is free in a file system.
#[derive(Clone)]
pub struct Disk(Arc<FreeSpace>);

/// Returns the free bytes in the file system of a folder.
type FreeSpace = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

impl Default for Disk {
    /// The space that the operating system reports as free for users other than root.
    fn default() -> Self {
        Disk(Arc::new(|folder| {
            let about = rustix::fs::statvfs(folder)?;
            Ok(about.f_bavail.saturating_mul(about.f_frsize))
        }))
    }
}

impl Disk {
    /// Creates a disk that reports what `free` returns, in bytes: for tests.
    #[must_use]
    pub fn that_says(free: impl Fn(&Path) -> io::Result<u64> + Send + Sync + 'static) -> Self {
        Disk(Arc::new(free))
    }

    /// Returns the free bytes in the file system of `folder`.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn free(&self, folder: &Path) -> io::Result<u64> {
        (self.0)(folder)
    }

    /// Refuses `image` if `folder` has no room for it. If the free space cannot be determined,
    /// there is assumed to be room: the download will show.
    ///
    /// # Errors
    /// [`EngineError::NoRoom`], with the figures.
    pub(crate) fn check(
        &self,
        image: &ImageRef,
        folder: &Path,
        need: Need,
    ) -> Result<(), EngineError> {
        let free = match self.free(folder) {
            Ok(free) => free,
            Err(error) => {
                tracing::debug!(
                    %error,
                    path = %folder.display(),
                    "failed to determine the free space of `{}`",
                    folder.display()
                );
                return Ok(());
            }
        };
        if need.room.saturating_add(RESERVE) > free && need.room > 0 {
            Err(EngineError::NoRoom {
                image: image.to_string(),
                download: need.download,
                needed: need.room,
                reserved: RESERVE,
                free,
                folder: folder.to_owned(),
            })
        } else {
            Ok(())
        }
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}

/// What a download needs, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Need {
    /// The bytes to transfer.
    pub(crate) download: u64,
    /// The most space that they take on the disk.
    pub(crate) room: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(room: u64, free: u64) -> Result<(), EngineError> {
        let disk = Disk::that_says(move |_| Ok(free));
        let need = Need {
            download: room / 3,
            room,
        };
        let image = "shop/web:1".parse().unwrap();
        disk.check(&image, Path::new("/data"), need)
    }

    #[test]
    fn an_image_has_room_where_the_reserve_stays_free() {
        let mib = |count: u64| count << 20;
        for (room, free, fits) in [
            (mib(30), mib(94), true),
            (mib(30), mib(94) - 1, false),
            (mib(30), 0, false),
            // A download of nothing needs no room.
            (0, 0, true),
            (u64::MAX, u64::MAX - 1, false),
        ] {
            assert_eq!(check(room, free).is_ok(), fits, "{room} of {free}");
        }
    }

    #[test]
    fn the_refusal_has_the_figures_and_what_to_do() {
        let refused = check(90 << 20, 100 << 20).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there is no room for `shop/web:1`: the 30.0 MiB to download take up to 90.0 MiB and 64.0 MiB stay \
             reserved, but the file system of `/data` has only 100.0 MiB free; remove what nothing needs, for example \
             unused volumes with `GET /v2/cleanup-volumes`, or publish a smaller image"
        );
    }

    #[test]
    fn a_disk_that_says_nothing_is_no_reason_to_refuse() {
        let disk = Disk::that_says(|_| Err(io::ErrorKind::Other.into()));
        let need = Need {
            download: 1,
            room: u64::MAX,
        };
        let image = "shop/web:1".parse().unwrap();
        disk.check(&image, Path::new("/data"), need).unwrap();
    }

    #[test]
    fn the_real_disk_says_what_is_free() {
        let folder = std::env::temp_dir();
        assert!(Disk::default().free(&folder).unwrap() > 0);
        assert!(Disk::default().free(Path::new("/no/such/folder")).is_err());
    }
}
