//! The last successful build of a project. Some compilers make another component each time, with new seeds in its memory;
//! it would lose its signature, and a policy that names its digest would not accept it. So if a project has not changed,
//! its component is used again.
//!
//! The record of a build is in the tool's cache, and not in the project: a project that somebody has given to the author
//! could contain a record that fits a component of theirs, and `build --key` would sign that component.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;
use compiled_code::digest;
use plugins::signed_content;
use serde::{Deserialize, Serialize};

use super::BuildMode;
use super::inputs::Inputs;
use crate::compiler::cache_folder;
use crate::output::Output;
use crate::project::{LARGEST_COMPONENT, ProjectFolder};

/// The maximum length of a record, in bytes.
const LONGEST_RECORD: u64 = 1024;
/// The most records that are kept, each of one project.
const MOST_RECORDS: usize = 256;

/// What the tool remembers of a build.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BuildRecord {
    /// The digest of the inputs.
    inputs: String,
    /// The digest of the component without its signature.
    component: String,
}

/// The last build of a project. Until this is dropped, other builds of the project wait.
pub(super) struct LastBuild {
    /// The project's component.
    component: PathBuf,
    /// The locked file of the record; `None` if it cannot be opened, and then nothing is remembered.
    file: Option<RecordFile>,
    /// `None` if there is none, or if the project should be built in any case.
    record: Option<BuildRecord>,
    /// The inputs of the present build with their digest, if they can be known.
    inputs: Option<(Inputs, String)>,
}

impl LastBuild {
    /// Finds the last build of a project, after other builds of it have ended. A missing or damaged record is no error: the
    /// project is built.
    pub(super) fn load(project: &ProjectFolder, mode: BuildMode, output: &Output) -> LastBuild {
        // Without a cache there is no compiler either, and its error says why.
        let folder = cache_folder().ok().map(|cache| cache.join("builds"));
        LastBuild::load_from(folder.as_deref(), project, mode, output)
    }

    fn load_from(
        folder: Option<&Path>,
        project: &ProjectFolder,
        mode: BuildMode,
        output: &Output,
    ) -> LastBuild {
        let component = project.component();
        let name = digest(component.as_os_str().as_bytes());
        let file = folder.and_then(|folder| RecordFile::lock(folder, &name, output).ok());
        let record = match mode {
            BuildMode::IfChanged => file.as_ref().and_then(RecordFile::read),
            BuildMode::Always => None,
        };
        LastBuild {
            component,
            file,
            record,
            inputs: None,
        }
    }

    /// Returns whether the last build had these inputs, and its component still exists.
    pub(super) fn has_inputs(&mut self, inputs: Inputs, output: &Output) -> bool {
        let digest = match inputs.digest() {
            Ok(digest) => digest,
            Err(error) => {
                output.note(&format!("each build makes another component: {error:#}"));
                return false;
            }
        };
        let is_same = self.record.as_ref().is_some_and(|record| {
            record.inputs == digest
                && content_digest(&self.component).as_ref() == Some(&record.component)
        });
        if is_same {
            if let Some(file) = &self.file {
                file.keep();
            }
        } else {
            self.inputs = Some((inputs, digest));
        }
        is_same
    }

    /// Remembers that the present build has made the component `wasm`, which has no signature yet.
    pub(super) fn remember(self, wasm: &[u8]) {
        let (Some((inputs, before)), Some(file)) = (self.inputs, &self.file) else {
            return;
        };
        // If a source was saved during the build, nobody knows which version the compiler has read.
        if inputs.digest().ok().as_ref() != Some(&before) {
            return;
        }
        let record = BuildRecord {
            inputs: before,
            component: digest(wasm),
        };
        // Without a record, or with a part of it, the project is built again.
        let _ = file.write(&record);
        let _ = remove_oldest(&file.folder, MOST_RECORDS);
    }
}

/// The file of a record, which is locked until this is dropped.
struct RecordFile {
    /// The folder of all records.
    folder: PathBuf,
    file: File,
}

impl RecordFile {
    /// Opens the file, which is created if necessary, and waits for the exclusive right to use it.
    fn lock(folder: &Path, name: &str, output: &Output) -> Result<RecordFile> {
        std::fs::create_dir_all(folder)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join(name))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                output.note("waiting for another build of this project");
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        Ok(RecordFile {
            folder: folder.to_owned(),
            file,
        })
    }

    /// Returns the record; `None` if it is not a whole one.
    fn read(&self) -> Option<BuildRecord> {
        let mut text = Vec::new();
        let mut file = (&self.file).take(LONGEST_RECORD);
        file.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps the record for longer than those of projects that were last built, or used again, before this one.
    fn keep(&self) {
        let _ = self.file.set_modified(SystemTime::now());
    }

    fn write(&self, record: &BuildRecord) -> Result<()> {
        let text = serde_json::to_vec(record)?;
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&text)?;
        Ok(())
    }
}

/// Removes the oldest files of a folder until it has at most `most`.
fn remove_oldest(folder: &Path, most: usize) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        files.push((entry.metadata()?.modified()?, entry.path()));
    }
    files.sort();
    let excess = files.len().saturating_sub(most);
    for (_, file) in files.into_iter().take(excess) {
        std::fs::remove_file(file)?;
    }
    Ok(())
}

/// Returns the digest of a component without its signature; `None` if there is no such file, or no device would accept it.
fn content_digest(component: &Path) -> Option<String> {
    let metadata = component.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_COMPONENT {
        return None;
    }
    let wasm = std::fs::read(component).ok()?;
    Some(digest(signed_content(&wasm)))
}

#[cfg(test)]
mod tests;
