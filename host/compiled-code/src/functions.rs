//! The functions that earlier compilations have translated: files that the compiler gets and returns, and which only it
//! understands.
//!
//! They are native code, so they are kept in the same way as compiled files: with a keyed digest in their names, in the
//! same folder, and removed with the least recently used of them.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::SystemTime;

use tokio::process::ChildStdin;

use crate::code_key::CodeKey;
use crate::entries::UnfinishedFile;
use crate::source::settings;
use crate::{CompileError, Profile, entries};

/// From this size on, in bytes, a component is large: it contains an interpreter or a language's runtime, whose functions
/// take seconds to compile. Passing the functions of earlier compilations to the compiler takes as long as compiling a
/// smaller one.
pub const LARGE_COMPONENT: usize = 1 << 20;
/// The most bytes of known functions that a compilation gets. An interpreter of Python has 29 MB.
const MOST_KNOWN: u64 = 192 << 20;
/// The most bytes of new functions that a compilation returns.
pub(crate) const MOST_NEW: u64 = 64 << 20;

/// Returns the beginning of the names of files with functions for `profile`.
fn stem(profile: Profile) -> String {
    entries::stem("functions", profile.into(), &settings(profile))
}

/// The functions of earlier compilations, and a file for those that the present one adds.
pub(crate) struct Functions {
    pub(crate) known: KnownFunctions,
    pub(crate) new: UnfinishedFile,
}

impl Functions {
    /// Opens those in `folder`, which takes reading them whole.
    pub(crate) async fn open(
        folder: &Path,
        key: &CodeKey,
        profile: Profile,
    ) -> Result<Functions, CompileError> {
        let new = UnfinishedFile::create(folder, key, &stem(profile))?;
        let (folder, key) = (folder.to_owned(), key.clone());
        let open = move || KnownFunctions::open(&folder, &key, profile);
        let known = tokio::task::spawn_blocking(open).await.unwrap_or_default();
        Ok(Functions { known, new })
    }

    /// Keeps those that the compilation of `name` has added.
    pub(crate) async fn keep_new(self, name: &str) {
        if self.new.size() > 0
            && let Err(error) = self.new.finish().await
        {
            tracing::debug!(name, "functions of `{name}` are not kept: {error}");
        }
    }
}

/// The functions of earlier compilations.
#[derive(Default)]
pub(crate) struct KnownFunctions {
    files: Vec<(File, u64)>,
}

impl KnownFunctions {
    /// Opens the intact files in `folder`, those first that were used last, and marks them as used. Removes damaged ones.
    fn open(folder: &Path, key: &CodeKey, profile: Profile) -> KnownFunctions {
        let mut found: Vec<_> = entries::find(folder, &stem(profile))
            .into_iter()
            .filter_map(|path| {
                let about = path.metadata().ok()?;
                let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some((used, about.len(), path))
            })
            .collect();
        found.sort_by(|one, other| other.cmp(one));
        let (mut files, mut total) = (Vec::new(), 0);
        for (_, size, path) in found {
            total += size;
            if total > MOST_KNOWN {
                break;
            }
            if !matches!(entries::is_sound(key, &path), Ok(true)) {
                let _ = std::fs::remove_file(&path);
                continue;
            }
            entries::touch(&path);
            files.extend(File::open(&path).ok().map(|file| (file, size)));
        }
        KnownFunctions { files }
    }

    /// Returns the number of bytes that [`KnownFunctions::send`] writes.
    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }

    /// Writes all of them to the compiler, in a thread that may wait: there, the kernel copies from the files to the pipe,
    /// and otherwise each few kilobytes would take two changes of threads.
    pub(crate) async fn send(&mut self, compiler: ChildStdin) -> io::Result<ChildStdin> {
        let files = std::mem::take(&mut self.files);
        if files.is_empty() {
            return Ok(compiler);
        }
        let mut pipe = File::from(compiler.into_owned_fd()?);
        let send = move || {
            for (file, size) in files {
                let sent = io::copy(&mut file.take(size), &mut pipe)?;
                if sent < size {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok::<_, io::Error>(OwnedFd::from(pipe))
        };
        let pipe = tokio::task::spawn_blocking(send).await??;
        ChildStdin::from_std(pipe.into())
    }
}
