//! Which component each reference names, and which components are needed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{EngineImageId, EngineKind, Image, ImageRef};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use wasm_service::record;

use super::component_file::{
    FileMark, MAX_COMPONENT, check_component, digest_file, file_path, image_id, open_file,
    too_large,
};
use super::record::ContainerRecord;
use super::{WasmState, folders};
use crate::{EngineError, EngineEvent};

/// One reference to an image.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ImageRecord {
    pub(super) reference: ImageRef,
    /// The component's digest.
    pub(super) id: EngineImageId,
    /// The size in bytes.
    pub(super) size: u64,
    /// For a `file:` reference: the mark of the file when it was read.
    pub(super) file: Option<FileMark>,
}

/// A component that is stored but not named by a record yet. It is not swept while this value
/// exists.
pub(super) struct ArrivingImages {
    shared: Arc<WasmState>,
    id: EngineImageId,
}

impl ArrivingImages {
    pub(super) fn new(shared: &Arc<WasmState>, id: &EngineImageId) -> Self {
        let (shared, id) = (shared.clone(), id.clone());
        *shared.arriving.lock().entry(id.clone()).or_default() += 1;
        ArrivingImages { shared, id }
    }
}

impl Drop for ArrivingImages {
    fn drop(&mut self) {
        let mut arriving = self.shared.arriving.lock();
        if let Some(count) = arriving.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                arriving.remove(&self.id);
            }
        }
    }
}

impl WasmState {
    pub(super) fn list_images(&self) -> Result<Vec<Image>, EngineError> {
        let _changing = self.changing.lock();
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

    /// Updates the record of a file that may have changed. If the file is gone, the reference names
    /// nothing.
    fn as_it_is_now(&self, mut record: ImageRecord) -> Option<ImageRecord> {
        let Some(mark_before) = record.file else {
            // A component that was lost is pulled again.
            return self.has_component(&record.id).then_some(record);
        };
        let path = file_path(&record.reference).ok()?;
        let mark = FileMark::from_metadata(&fs::metadata(&path).ok()?);
        if mark == mark_before {
            return Some(record);
        }
        let (id, size) = digest_file(&path).ok()?;
        record.id = id;
        record.size = size;
        record.file = Some(mark);
        if let Err(error) = self.record_image(&record) {
            tracing::warn!(
                %error,
                path = %path.display(),
                "failed to note that `{}` changed",
                path.display()
            );
        }
        Some(record)
    }

    pub(super) fn remove_reference(&self, reference: &ImageRef) -> Result<(), EngineError> {
        let _changing = self.changing.lock();
        let records = self.image_records();
        let Some(removed) = records.iter().find(|record| record.reference == *reference) else {
            return Ok(());
        };
        let of_image: Vec<&ImageRecord> = records
            .iter()
            .filter(|record| record.id == removed.id)
            .collect();
        let mut going = vec![reference];
        // A digest that was recorded with a tag is removed with the last tag of its repository.
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
            return Err(EngineError::in_use(format!("the image `{reference}`")));
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
        self.emit(EngineEvent::Other);
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

    /// Removes the component that only this removed container still needed. The caller holds the lock on records.
    pub(super) fn sweep_component_of(&self, removed: &ContainerRecord) {
        let containers = self.containers.records();
        let is_needed = containers
            .iter()
            .any(|one| one.image_id == removed.image_id);
        let names_it = |image: ImageRecord| image.id == removed.image_id;
        // If its own reference still names the image, nothing else needs checking.
        let reference = self.folders.image(&removed.config.image);
        if !is_needed && !folders::read(&reference).is_some_and(names_it) {
            self.sweep_components();
        }
    }

    /// Removes the components that neither a reference nor a container needs. The caller holds the
    /// lock on records.
    pub(super) fn sweep_components(&self) {
        // Before the records: an arriving component is recorded before it stops counting as
        // arriving.
        let arriving: Vec<EngineImageId> = self.arriving.lock().keys().cloned().collect();
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
                tracing::warn!(
                    %error,
                    path = %path.display(),
                    "failed to remove `{}`",
                    path.display()
                );
            }
        }
    }

    /// Stores the file at `path` as a component, and returns the record of its current version.
    pub(super) fn take_file(
        self: &Arc<Self>,
        reference: &ImageRef,
        path: &Path,
    ) -> Result<(ImageRecord, ArrivingImages), EngineError> {
        let action = || format!("read `{}`", path.display());
        let (file, metadata) = open_file(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => EngineError::not_found(format!("`{}`", path.display())),
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
            file: Some(FileMark::from_metadata(&metadata)),
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

/// Returns a unique name, because several tasks may store the same component at the same time.
fn unfinished_in(folder: &Path, id: &EngineImageId) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = id.as_str().replace(['/', ':'], "-");
    folder.join(format!(".{name}.{number}"))
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
}
