//! Plugins that a developer installs on a device over its API: they are stored in the first plugin folder, as with any
//! other way of copying. Only the policy decides what a file may do.
//!
//! The file arrives in a folder that only the supervisor can write. It is checked there, and put into the plugin folder
//! in one step once it is complete and valid. The caller has already made sure that this is a developer's device, and
//! that the request comes from its owner.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use device_types::{InstallRefusal, PluginInstallation, PluginState};
use model::error_chain;
use plugin_manifest::{Manifest, check_name};
use secure_fs::{Access, SecureDir};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Plugins;
use crate::file_with_signature::{create, replace};
use crate::placement::{PlacementError, listed, place_in};
use crate::policy::{Policy, PolicyFiles};
use crate::settled_file::{SIZE, bytes};
use crate::signature;
use crate::table::Table;
use crate::trust::trust_lines;

/// The folder in the supervisor's state folder in which files arrive.
const FOLDER: &str = "plugin-uploads";
/// The only file in it: one plugin is installed at a time.
const FILE: &str = "component";
/// How long the answer waits for the plugin to serve or be refused: as long as most components take to compile.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// How long it waits until it is known which plugin each file contains.
const IDENTIFIED_WITHIN: Duration = Duration::from_secs(20);
/// How long it waits until a removed plugin is gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The places for installing plugins.
pub(super) struct InstallPlaces {
    /// The first plugin folder; `None` if there is no folder.
    pub(super) folder: Option<PathBuf>,
    pub(super) state_dir: PathBuf,
    pub(super) policy_files: PolicyFiles,
    /// Allows one installation at a time.
    pub(super) turn: Arc<Semaphore>,
}

/// A plugin's file while it arrives. Dropping it before [`PluginUpload::finish`] leaves everything unchanged.
pub struct PluginUpload {
    plugins: Plugins,
    name: String,
    dir: SecureDir,
    file: File,
    length: u64,
    _turn: OwnedSemaphorePermit,
}

/// The file of a plugin.
struct Target {
    file: PathBuf,
    /// The existing version; `None` if the file does not exist yet.
    previous: Option<String>,
}

impl Plugins {
    /// Begins to install the plugin of this name.
    ///
    /// # Errors
    /// [`InstallRefusal`]; also if another plugin is being installed.
    pub async fn begin_install(&self, name: &str) -> Result<PluginUpload, InstallRefusal> {
        let places = &self.inner.install_places;
        let turn = Arc::clone(&places.turn).try_acquire_owned();
        let turn = turn.map_err(|_| {
            InstallRefusal::Failed("another plugin is being installed: try again".to_owned())
        })?;
        // Checked before anything is sent, rather than after 64 MiB.
        self.target(name).await?;
        let path = places.state_dir.join(FOLDER);
        let opened = on_disk(move || open_upload(&path)).await?;
        let (dir, file) = opened.map_err(InstallRefusal::Failed)?;
        Ok(PluginUpload {
            plugins: self.clone(),
            name: name.to_owned(),
            dir,
            file: File::from_std(file),
            length: 0,
            _turn: turn,
        })
    }

    /// Removes the plugin of this name, with its signature.
    ///
    /// # Errors
    /// [`InstallRefusal`].
    pub async fn uninstall(&self, name: &str) -> Result<(), InstallRefusal> {
        let target = self.target(name).await?;
        if target.previous.is_none() {
            return Err(InstallRefusal::Unknown);
        }
        let file = target.file.clone();
        let removed = on_disk(move || {
            fs::remove_file(&file)?;
            match fs::remove_file(signature::file_beside(&file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        });
        removed.await?.map_err(|error| {
            let file = target.file.display();
            InstallRefusal::Failed(format!("`{file}` cannot be removed: {error}"))
        })?;
        tracing::info!(plugin = name, "the plugin was removed over the API");
        let gone = self.until(|table| !table.entries.contains_key(&target.file));
        // The file is gone, however long the supervisor takes to notice.
        let _ = tokio::time::timeout(GONE_WITHIN, gone).await;
        Ok(())
    }

    /// Returns where the file of this plugin is, or has to be.
    async fn target(&self, name: &str) -> Result<Target, InstallRefusal> {
        check_name(name).map_err(|reason| InstallRefusal::Invalid(reason.to_owned()))?;
        let places = &self.inner.install_places;
        let policy = Policy::read(&places.policy_files, self.allow_unpinned());
        let policy = policy.map_err(|error| InstallRefusal::Conflict(error_chain(&error)))?;
        if policy.is_stock(name) {
            return Err(InstallRefusal::Conflict(format!(
                "`{name}` is a plugin that the device ships with: give yours another name"
            )));
        }
        let folder = places.folder.as_deref();
        let folder = folder.ok_or_else(|| {
            InstallRefusal::Conflict("the device has no plugin folder".to_owned())
        })?;
        // A file may have been copied there a moment ago.
        let identified = self.until(|table| !table.has_unknown_files());
        let identified = tokio::time::timeout(IDENTIFIED_WITHIN, identified).await;
        identified.map_err(|_| {
            InstallRefusal::Failed("files of plugins are still being read: try again".to_owned())
        })?;
        target_in(folder, name, &self.inner.table())
    }
}

/// Returns where the file of this plugin is, or has to be, in `folder`.
fn target_in(folder: &Path, name: &str, table: &Table) -> Result<Target, InstallRefusal> {
    let found = table.files_of(name).into_iter();
    let found = found.map(|(file, version)| (file.clone(), version));
    let (file, previous) = place_in(folder, name, found.collect()).map_err(|error| {
        InstallRefusal::Conflict(match error {
            PlacementError::Occupied { file, .. } => format!(
                "`{}` exists already, but is not the plugin `{name}`: remove it",
                file.display()
            ),
            PlacementError::Elsewhere { files, .. } => format!(
                "the plugin `{name}` is in {}, but an installation can replace it only if it is in a single file of `{}`: remove it there first",
                listed(&files),
                folder.display()
            ),
            error => error.to_string(),
        })
    })?;
    Ok(Target { file, previous })
}

impl PluginUpload {
    /// Adds the next piece of the file.
    ///
    /// # Errors
    /// [`InstallRefusal`]: it is too long, or cannot be written to the disk.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), InstallRefusal> {
        self.length = self.length.saturating_add(piece.len() as u64);
        if self.length > SIZE {
            return Err(InstallRefusal::Invalid(format!(
                "it has more than {} MiB, which no plugin may have",
                SIZE >> 20
            )));
        }
        let written = self.file.write_all(&piece).await;
        written.map_err(|error| unwritable(&error))
    }

    /// Checks the complete file, puts it into its place and waits for the result. Continues if the caller does not
    /// wait.
    ///
    /// # Errors
    /// [`InstallRefusal`]: it is not the plugin of that name, or cannot be put there; the plugin folder is then
    /// unchanged.
    pub async fn finish(mut self) -> Result<PluginInstallation, InstallRefusal> {
        let finished = tokio::spawn(async move {
            let flushed = self.file.flush().await;
            flushed.map_err(|error| unwritable(&error))?;
            self.install().await
        });
        finished.await.unwrap_or_else(|_| Err(cut_short()))
    }

    async fn install(&self) -> Result<PluginInstallation, InstallRefusal> {
        let (upload, name) = (self.dir.path().join(FILE), self.name.clone());
        let (wasm, manifest) = on_disk(move || read(&upload, &name)).await??;
        // Checked once more: a file may have been put there during the upload.
        let Target { file, previous } = self.plugins.target(&self.name).await?;
        let digest = compiled_code::digest(&wasm);
        let (to, is_new) = (file.clone(), previous.is_none());
        let placed = on_disk(move || {
            if is_new {
                create(&to, &wasm)
            } else {
                // An existing signature belongs to the previous version.
                replace(&to, &wasm, None)
            }
        });
        let placed = placed.await?;
        placed.map_err(|error| InstallRefusal::Failed(error.to_string()))?;
        let version = manifest.version.to_string();
        tracing::info!(
            plugin = self.name,
            version,
            "the plugin was installed over the API"
        );
        let settled = self
            .plugins
            .until(|table| table.outcome(&file, &digest).is_some());
        // After this time, it is still being loaded.
        let _ = tokio::time::timeout(SETTLED_WITHIN, settled).await;
        let outcome = self.plugins.inner.table().outcome(&file, &digest);
        let (state, refused) = outcome.unwrap_or((PluginState::Loading, None));
        let policy_lines = match &refused {
            Some(_) => {
                let files = self.plugins.inner.install_places.policy_files.clone();
                on_disk(move || trust_lines(&file, &files.owner, &files.stock, None).ok()).await?
            }
            None => None,
        };
        Ok(PluginInstallation {
            version,
            digest,
            previous,
            state,
            refused,
            policy_lines,
        })
    }
}

impl Drop for PluginUpload {
    fn drop(&mut self) {
        // Anything left behind is removed before the next file arrives.
        let _ = self.dir.remove(FILE);
    }
}

/// Opens the folder in which files arrive, and a new file in it.
fn open_upload(path: &Path) -> Result<(SecureDir, fs::File), String> {
    let dir = SecureDir::open(path, Access::Private).map_err(|error| error_chain(&error))?;
    // A file may be left over from a kill.
    let made = dir.remove(FILE).and_then(|()| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(dir.path().join(FILE))
    });
    let file = made.map_err(|error| format!("`{}` cannot be written: {error}", path.display()))?;
    Ok((dir, file))
}

/// Reads the file that has arrived, and checks that it is the plugin of this name.
fn read(upload: &Path, name: &str) -> Result<(Vec<u8>, Manifest), InstallRefusal> {
    let (_, wasm) = bytes(upload).map_err(InstallRefusal::Failed)?;
    let manifest = Manifest::from_wasm(&wasm).map_err(|error| {
        let reason = error_chain(&error);
        InstallRefusal::Invalid(format!("the body is not a plugin: {reason}"))
    })?;
    if manifest.name != name {
        return Err(InstallRefusal::Invalid(format!(
            "the body is the plugin `{}`, and the path names `{name}`",
            manifest.name
        )));
    }
    Ok((wasm, manifest))
}

/// Runs work that waits for the disk.
async fn on_disk<R: Send + 'static>(
    work: impl FnOnce() -> R + Send + 'static,
) -> Result<R, InstallRefusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| cut_short())
}

fn cut_short() -> InstallRefusal {
    InstallRefusal::Failed("the installation was interrupted: the log has the cause".to_owned())
}

fn unwritable(error: &io::Error) -> InstallRefusal {
    InstallRefusal::Failed(format!(
        "failed to write the file into the state folder: {error}"
    ))
}
