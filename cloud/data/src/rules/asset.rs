//! Files attached to releases (docs/spec/cloud.md#model-release-asset).

use resources::StoredValue;
use serde_json::json;

use crate::file;
use crate::random;
use crate::statement::sql;
use crate::upload;
use crate::write::{Change, WriteError, WriteResult, Writer};

/// Sets the description of the file sent with the request, or clears it if the file is deleted.
pub(super) fn before_change(writer: &mut Writer<'_>, change: &mut Change) -> WriteResult {
    match (change.inputs.get("asset"), writer.file) {
        (None, _) => Ok(()),
        (Some(StoredValue::Null), _) => {
            change.new.set("file", StoredValue::Null);
            Ok(())
        }
        (Some(_), Some(file)) => {
            let description = json!({
                "filename": file.filename,
                "href": file::path(file.id, &random::digits()?),
                "content_type": file.content_type,
                "content_disposition": file.content_disposition,
                "size": file.size,
            });
            change.new.set_text("file", description.to_string());
            Ok(())
        }
        (Some(_), None) => Err(WriteError::refused(
            "`asset` is a file: send the fields as multipart/form-data, or null to delete the file",
        )),
    }
}

pub(super) fn before_changes(writer: &mut Writer<'_>, changes: &mut [Change]) -> WriteResult {
    if writer.file.is_some() && changes.len() > 1 {
        return Err(WriteError::refused(
            "a file belongs to one asset: name the asset by its key",
        ));
    }
    changes
        .iter_mut()
        .try_for_each(|change| before_change(writer, change))
}

/// Attaches the new file to the row, and deletes all others.
pub(super) async fn after_change(writer: &mut Writer<'_>, change: &Change) -> WriteResult {
    if !change.new.has("file") {
        return Ok(());
    }
    let stored = writer.file.filter(|_| change.new.text("file").is_some());
    let others = sql("DELETE FROM release_asset_file WHERE release_asset = ? AND id <> ?");
    let others = others
        .with(change.id)
        .with(stored.map_or(-1, |file| file.id));
    writer.transaction.execute(&others).await?;
    let Some(file) = stored else {
        return Ok(());
    };
    if let Some(parts) = &file.parts
        && upload::end(writer.transaction, file.id).await? != *parts
    {
        return Err(WriteError::Conflict(
            "a part was sent again in the meantime, or the upload was committed or cancelled; check, and commit again"
                .to_owned(),
        ));
    }
    let take = sql(
        "UPDATE release_asset_file SET release_asset = ? WHERE id = ? AND release_asset IS NULL",
    );
    let take = take.with(change.id).with(file.id);
    if writer.transaction.execute(&take).await? != 1 {
        return Err(WriteError::refused(
            "the upload took so long that its file was deleted; send it again",
        ));
    }
    Ok(())
}
