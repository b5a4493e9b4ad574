//! `PUT /release-asset/v1/upload/:uuid/:part`: a part of a file, from a caller who received its address.

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use bytes::{Buf as _, BytesMut};
use cloud_core::answer::{Answer, Refusal};
use cloud_core::cloud::SharedCloud;
use data::file::PIECE;
use futures::StreamExt as _;
use http::{StatusCode, header};
use sha2::{Digest as _, Sha256};

/// Stores the part, and answers with its digest as its ETag. The uuid in the address is the credential: clients send no
/// other.
pub(crate) async fn put(
    State(cloud): State<SharedCloud>,
    Path((uuid, number)): Path<(String, String)>,
    request: Request,
) -> Answer {
    let (parts, body) = request.into_parts();
    cloud.auth.admit(&parts).await?;
    let missing = || Refusal::Missing("there is no such upload, or it has no such part".to_owned());
    let number: u64 = number.parse().map_err(|_| missing())?;
    let upload = cloud.database.upload(&uuid).await?.ok_or_else(missing)?;
    let size = upload.announced.bytes_of(number).ok_or_else(missing)?;
    let announced = parts.headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced != size) {
        return Err(wrong_size(number, size));
    }
    let database = &cloud.database;
    let mut writer = database
        .begin_part(&upload, number)
        .await?
        .ok_or_else(missing)?;
    let mut digest = Sha256::new();
    let mut waiting = BytesMut::new();
    let mut left = size;
    let mut body = body.into_data_stream();
    while let Some(some) = body.next().await {
        let some = some.map_err(|error| {
            Refusal::Wrong(format!(
                "part {number} did not arrive completely; send it again: {error}"
            ))
        })?;
        left = left
            .checked_sub(some.len() as u64)
            .ok_or_else(|| wrong_size(number, size))?;
        digest.update(&some);
        waiting.extend_from_slice(&some);
        while waiting.len() >= PIECE {
            if !database
                .add_part_piece(&mut writer, &waiting[..PIECE])
                .await?
            {
                return Err(again(number));
            }
            waiting.advance(PIECE);
        }
    }
    if left > 0 {
        return Err(wrong_size(number, size));
    }
    if !waiting.is_empty() && !database.add_part_piece(&mut writer, &waiting).await? {
        return Err(again(number));
    }
    let digest = hex::encode(digest.finalize());
    if !database.end_part(writer, &digest).await? {
        return Err(again(number));
    }
    Ok((StatusCode::OK, [(header::ETAG, format!("\"{digest}\""))]).into_response())
}

fn wrong_size(number: u64, size: u64) -> Refusal {
    Refusal::Wrong(format!("part {number} of this upload has {size} bytes"))
}

fn again(number: u64) -> Refusal {
    Refusal::Conflict(format!(
        "part {number} is also being sent by another client, or its upload ended"
    ))
}
