//! Which component each reference names, and which components are needed.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};

use model::{EngineImageId, EngineKind, Image, ImageRef};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use wasm_service::record;

use super::record::ContainerRecord;
use super::{Shared, folders};
use crate::{EngineError, EngineEvent};

/// The largest component that is taken, in bytes.
pub(super) const MAX_COMPONENT: u64 = 64 << 20;

/// One reference.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    pub(super) reference: ImageRef,
    /// The component's digest.
    pub(super) id: EngineImageId,
    /// Bytes.
    pub(super) size: u64,
    /// Of a `file:` reference: as the file was when it was looked at.
    pub(super) file: Option<FileMark>,
}

/// What tells, without reading it, that a file is not the one it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileMark {
    device: u64,
    inode: u64,
    size: u64,
    /// Nanoseconds since the epoch: of the content, and of the file's entry, which nobody can set.
    modified: i128,
    changed: i128,
}

impl FileMark {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        FileMark {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Components that are stored and that no record names yet. They are not swept while this is held.
pub(super) struct ArrivingImages {
    shared: Arc<Shared>,
    id: EngineImageId,
}

impl ArrivingImages {
    pub(super) fn new(shared: &Arc<Shared>, id: &EngineImageId) -> Self {
        let (shared, id) = (shared.clone(), id.clone());
        *shared.arriving().entry(id.clone()).or_default() += 1;
        ArrivingImages { shared, id }
    }
}

impl Drop for ArrivingImages {
    fn drop(&mut self) {
        let mut arriving = self.shared.arriving();
        if let Some(count) = arriving.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                arriving.remove(&self.id);
            }
        }
    }
}

/// The path that a `file:` reference names.
///
/// # Errors
/// [`EngineError::Invalid`] where it is not absolute.
pub(super) fn file_path(reference: &ImageRef) -> Result<PathBuf, EngineError> {
    let text = reference.as_str();
    let path = text.strip_prefix("file:").unwrap_or(text);
    // Both `file:/path` and `file:///path` are in use.
    let path = path
        .strip_prefix("//")
        .filter(|p| p.starts_with('/'))
        .unwrap_or(path);
    if path.starts_with('/') {
        return Ok(PathBuf::from(path));
    }
    Err(EngineError::Invalid(format!(
        "`{reference}` does not name a file: the path after `file:` begins with `/`"
    )))
}

impl Shared {
    pub(super) fn list_images(&self) -> Result<Vec<Image>, EngineError> {
        let _changing = self.change();
        let mut images: BTreeMap<String, Image> = BTreeMap::new();
        for record in self.image_records() {
            let Some(record) = self.as_it_is_now(record) else {
                continue;
            };
            images
                .entry(record.id.as_str().to_owned())
                .or_insert_with(|| Image {
                    engine: EngineKind::Wasm,
                    id: record.id.clone(),
                    references: Vec::new(),
                    size: record.size,
                })
                .references
                .push(record.reference);
        }
        Ok(images.into_values().collect())
    }

    /// A file may have become another one, or none: then the reference names nothing.
    fn as_it_is_now(&self, mut record: ImageRecord) -> Option<ImageRecord> {
        let Some(seen) = record.file else {
            // A component that was lost is pulled again.
            return self.has_component(&record.id).then_some(record);
        };
        let path = file_path(&record.reference).ok()?;
        let mark = FileMark::of(&fs::metadata(&path).ok()?);
        if mark == seen {
            return Some(record);
        }
        let (id, size) = digest_file(&path).ok()?;
        record.id = id;
        record.size = size;
        record.file = Some(mark);
        if let Err(error) = self.record_image(&record) {
            tracing::warn!(%error, "failed to note that `{}` changed", path.display());
        }
        Some(record)
    }

    pub(super) fn remove_reference(&self, reference: &ImageRef) -> Result<(), EngineError> {
        let _changing = self.change();
        let records = self.image_records();
        let Some(removed) = records.iter().find(|record| record.reference == *reference) else {
            return Ok(());
        };
        let of_image: Vec<&ImageRecord> = records
            .iter()
            .filter(|record| record.id == removed.id)
            .collect();
        let mut going = vec![reference];
        // A digest that came with a tag goes with the last tag of its repository.
        let repository = repository(reference);
        let mut others = of_image.iter().filter(|r| r.reference != *reference);
        let keeps_tag = others
            .any(|r| !is_digest(&r.reference) && self::repository(&r.reference) == repository);
        if !is_digest(reference) && !keeps_tag {
            let digests = of_image.iter().map(|r| &r.reference);
            going.extend(digests.filter(|r| is_digest(r) && self::repository(r) == repository));
        }
        let is_last = of_image.len() == going.len();
        let mut containers = self.containers.records().into_iter();
        if is_last && containers.any(|container| container.image_id == removed.id) {
            return Err(EngineError::InUse {
                what: format!("the image `{reference}`"),
            });
        }
        for reference in going {
            match fs::remove_file(self.folders.image(reference)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let action = format!("remove the image `{reference}`");
                    return Err(EngineError::failed(action, error));
                }
                _ => {}
            }
        }
        self.sweep_components();
        self.tell(EngineEvent::Other);
        Ok(())
    }

    pub(super) fn image_records(&self) -> Vec<ImageRecord> {
        let names = folders::names(&self.folders.images).into_iter();
        names
            .filter_map(|name| folders::read(&self.folders.images.join(name)))
            .collect()
    }

    pub(super) fn record_image(&self, record: &ImageRecord) -> io::Result<()> {
        record::write(&self.folders.image(&record.reference), record)
    }

    pub(super) fn has_component(&self, id: &EngineImageId) -> bool {
        self.folders.component(id.as_str()).is_file()
    }

    fn arriving(&self) -> MutexGuard<'_, BTreeMap<EngineImageId, usize>> {
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what a container that is gone was the last to need. Held by the caller: the right to change records.
    pub(super) fn sweep_component_of(&self, gone: &ContainerRecord) {
        let containers = self.containers.records();
        let is_needed = containers.iter().any(|one| one.image_id == gone.image_id);
        let names_it = |image: ImageRecord| image.id == gone.image_id;
        // Where its own reference still names the image, nothing else has to be looked at.
        let reference = self.folders.image(&gone.config.image);
        if !is_needed && !folders::read(&reference).is_some_and(names_it) {
            self.sweep_components();
        }
    }

    /// Removes the components that neither a reference nor a container needs. Held by the caller: the
    /// right to change records.
    pub(super) fn sweep_components(&self) {
        // Before the records: what arrives is recorded before it no longer counts as arriving.
        let arriving: Vec<EngineImageId> = self.arriving().keys().cloned().collect();
        let images = self.image_records().into_iter().map(|record| record.id);
        let containers = self.containers.records().into_iter();
        let needed: Vec<PathBuf> = images
            .chain(arriving)
            .chain(containers.map(|container| container.image_id.clone()))
            .map(|id| self.folders.component(id.as_str()))
            .collect();
        for name in folders::names(&self.folders.components) {
            let path = self.folders.components.join(name);
            if !needed.contains(&path)
                && let Err(error) = fs::remove_file(&path)
            {
                tracing::warn!(%error, "failed to remove `{}`", path.display());
            }
        }
    }

    /// Takes the file at `path` in among the components, and answers it as it was then.
    pub(super) fn take_file(
        self: &Arc<Self>,
        reference: &ImageRef,
        path: &Path,
    ) -> Result<(ImageRecord, ArrivingImages), EngineError> {
        let action = || format!("read `{}`", path.display());
        let (file, metadata) = open_file(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => EngineError::NotFound {
                what: format!("`{}`", path.display()),
            },
            _ => EngineError::failed(action(), error),
        })?;
        let mut bytes = Vec::new();
        file.take(MAX_COMPONENT + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| EngineError::failed(action(), error))?;
        if bytes.len() as u64 > MAX_COMPONENT {
            return Err(too_large(reference));
        }
        check_component(reference, &bytes)?;
        let id = image_id(&Sha256::digest(&bytes))?;
        let arriving = ArrivingImages::new(self, &id);
        self.put_component(&id, &bytes)?;
        let record = ImageRecord {
            reference: reference.clone(),
            id,
            size: bytes.len() as u64,
            file: Some(FileMark::of(&metadata)),
        };
        Ok((record, arriving))
    }

    pub(super) fn put_component(
        &self,
        id: &EngineImageId,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let put = || -> io::Result<()> {
            let unfinished = unfinished_in(&self.folders.components, id);
            let mut file = File::create(&unfinished)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&unfinished, self.folders.component(id.as_str()))
        };
        put().map_err(|error| EngineError::failed(format!("store the component `{id}`"), error))
    }
}

/// A name of its own for each of those that store the same component at the same time.
fn unfinished_in(folder: &Path, id: &EngineImageId) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = id.as_str().replace(['/', ':'], "-");
    folder.join(format!(".{name}.{number}"))
}

/// # Errors
/// Never: the text is one that an id can be.
pub(super) fn image_id(digest: &[u8]) -> Result<EngineImageId, EngineError> {
    let id = format!("sha256:{}", hex::encode(digest)).parse();
    id.map_err(|error| EngineError::failed("name a component", error))
}

pub(super) fn too_large(reference: &ImageRef) -> EngineError {
    EngineError::Invalid(format!(
        "the component of `{reference}` is larger than {} MiB",
        MAX_COMPONENT >> 20
    ))
}

/// # Errors
/// [`EngineError::WrongKind`] where the bytes cannot be a component.
pub(super) fn check_component(reference: &ImageRef, bytes: &[u8]) -> Result<(), EngineError> {
    let reason = match bytes.get(..8) {
        Some(b"\0asm\x0d\0\x01\0") => return Ok(()),
        Some(b"\0asm\x01\0\0\0") => {
            "it is a core module, not a component; build it for the target wasm32-wasip2"
        }
        _ => "it is not a WebAssembly file",
    };
    Err(EngineError::WrongKind {
        image: reference.to_string(),
        engine: EngineKind::Wasm,
        reason: reason.into(),
    })
}

/// The file at `path`, and nothing but a file: a pipe would keep who opens or reads it waiting for ever, and a device
/// may do something when it is opened.
fn open_file(path: &Path) -> io::Result<(File, Metadata)> {
    let no_file = || io::Error::other("it is not a file");
    // Before it is opened, for devices; and once more, since it may be another by then.
    if !fs::metadata(path)?.is_file() {
        return Err(no_file());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(no_file())
    }
}

fn digest_file(path: &Path) -> Result<(EngineImageId, u64), EngineError> {
    let failed = |error| EngineError::failed(format!("read `{}`", path.display()), error);
    let mut digest = Sha256::new();
    let (file, _) = open_file(path).map_err(failed)?;
    let size = io::copy(&mut file.take(MAX_COMPONENT + 1), &mut digest).map_err(failed)?;
    Ok((image_id(&digest.finalize())?, size))
}

fn is_digest(reference: &ImageRef) -> bool {
    reference.as_str().contains('@')
}

/// The part before tag or digest.
pub(super) fn repository(reference: &ImageRef) -> &str {
    let text = reference.as_str();
    if let Some((repository, _)) = text.split_once('@') {
        return repository;
    }
    let name = text.rfind('/').map_or(0, |slash| slash + 1);
    text[name..]
        .find(':')
        .map_or(text, |colon| &text[..name + colon])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> ImageRef {
        text.parse().unwrap()
    }

    #[test]
    fn file_references_are_absolute_paths() {
        for (text, path) in [
            ("file:/srv/a.wasm", Some("/srv/a.wasm")),
            ("file:///srv/a.wasm", Some("/srv/a.wasm")),
            ("file:a.wasm", None),
            ("file:", None),
            ("file://host/a.wasm", Some("//host/a.wasm")),
        ] {
            let found = file_path(&reference(text)).ok();
            assert_eq!(found.as_deref(), path.map(Path::new), "{text}");
        }
    }

    #[test]
    fn repositories_are_found_before_tags_and_digests() {
        for (text, expected) in [
            ("127.0.0.1:5000/shop/web:2", "127.0.0.1:5000/shop/web"),
            (
                "127.0.0.1:5000/shop/web@sha256:ab",
                "127.0.0.1:5000/shop/web",
            ),
            ("web:latest", "web"),
        ] {
            assert_eq!(repository(&reference(text)), expected);
        }
    }

    #[test]
    fn only_components_are_taken() {
        let web = reference("web:1");
        assert!(check_component(&web, b"\0asm\x0d\0\x01\0rest").is_ok());
        for (bytes, says) in [
            (&b"\0asm\x01\0\0\0"[..], "wasm32-wasip2"),
            (b"\x7fELF....", "not a WebAssembly"),
            (b"", "not a WebAssembly"),
        ] {
            let error = check_component(&web, bytes).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
