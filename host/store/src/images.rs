//! The owners of images: engines know images by reference, the API by app, service and number.

use model::{AppId, AppUuid, ImageId, ImageRef, ServiceName};

use crate::error::StoreError;
use crate::rows::{name_at, number_at, row_id};
use crate::store::Store;

/// One image as one service of one app uses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageRecord {
    /// The name in the target; the key of the record together with app and service.
    pub image: ImageRef,
    /// The app that uses it.
    pub app: AppUuid,
    /// The number of the same app, which identifies it in the v1 and v2 API.
    pub app_id: AppId,
    /// The service of the app that uses it.
    pub service: ServiceName,
    /// The image's number in the target; the newest, if the reference has had several.
    pub image_id: ImageId,
}

impl Store {
    /// Records that a service uses an image; if that is known already, its number is updated.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
    pub fn record_image(&self, record: &ImageRecord) -> Result<(), StoreError> {
        self.execute(
            "record an image",
            "INSERT INTO image (reference, app, app_id, service, image_id)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (reference, app, service)
             DO UPDATE SET app_id = excluded.app_id, image_id = excluded.image_id",
            (
                record.image.as_str(),
                record.app.as_str(),
                row_id("app id", record.app_id.0)?,
                record.service.as_str(),
                row_id("image id", record.image_id.0)?,
            ),
        )
    }

    /// Returns all records, by reference, app and service.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
    pub fn image_records(&self) -> Result<Vec<ImageRecord>, StoreError> {
        let query = "SELECT reference, app, app_id, service, image_id FROM image
                     ORDER BY reference, app, service";
        self.rows("read the image records", query, |row| {
            Ok(ImageRecord {
                image: name_at(row, 0, "an image reference")?,
                app: name_at(row, 1, "an app's uuid")?,
                app_id: AppId(number_at(row, 2)?),
                service: name_at(row, 3, "a service's name")?,
                image_id: ImageId(number_at(row, 4)?),
            })
        })
    }

    /// Removes all records of an image; it is not an error if there are none.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn forget_image(&self, image: &ImageRef) -> Result<(), StoreError> {
        self.execute(
            "delete an image record",
            "DELETE FROM image WHERE reference = ?1",
            [image.as_str()],
        )
    }
}
