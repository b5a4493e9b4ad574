//! Uploads a file to the cloud in as many parts as it wants; a lost part is sent again, and a failed upload is undone.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::ETAG;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Asset, found, on_the_cloud, row};
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::Release;
use crate::interrupt::wait_for_interrupt;
use crate::output::{Output, size};

/// The time limit from the first byte of a part to its answer.
const PART: Duration = Duration::from_secs(600);
/// The maximum number of times that a part is sent.
const TRIES: u32 = 4;

/// A file to upload.
pub(super) struct UploadFile {
    file: File,
    path: PathBuf,
    pub(super) name: String,
    size: u64,
}

impl UploadFile {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |error| Failure::unreadable(path, error);
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some(name) if about.is_file() => Ok(UploadFile {
                file,
                path: path.to_owned(),
                name: name.to_owned(),
                size: about.len(),
            }),
            Some(_) => Err(Failure::usage(format!("{} is not a file", path.display()))
                .hint("upload a folder as an archive: `tar -czf files.tar.gz FOLDER`")),
            None => Err(Failure::usage(format!(
                "the name of {} is not text",
                path.display()
            ))),
        }
    }

    /// Reads its next bytes.
    fn read(&mut self, bytes: u64) -> Result<Bytes> {
        let mut piece = Vec::new();
        let read = (&mut self.file).take(bytes).read_to_end(&mut piece);
        match read {
            Ok(read) if read as u64 == bytes => Ok(piece.into()),
            Ok(_) => {
                let path = self.path.display();
                Err(Failure::failed(format!("{path} became shorter meanwhile")))
            }
            Err(error) => Err(Failure::unreadable(&self.path, error)),
        }
    }

    fn content_type(&self) -> String {
        let guessed = mime_guess::from_path(&self.name).first_or_octet_stream();
        guessed.essence_str().to_owned()
    }
}

pub(super) async fn upload(
    cloud: &Cloud,
    output: &Output,
    release: &Release,
    mut source: UploadFile,
    key: &str,
    overwrite: bool,
) -> Result<()> {
    let (id, is_new) = match row(cloud, release, key).await? {
        Some(row) if overwrite || row.asset.is_none() => (row.id, false),
        Some(_) => {
            return Err(Failure::failed(format!(
                "a file `{key}` is already attached to the release {}",
                release.name()
            ))
            .hint("`--overwrite` replaces it, `--key` gives this one another key"));
        }
        None => {
            let body = json!({ "release": release.id, "asset_key": key });
            (cloud.create("release_asset", &body).await?, true)
        }
    };
    let sent = tokio::select! {
        sent = send(cloud, output, id, &mut source) => sent,
        stopped = wait_for_interrupt() => Err(stopped),
    };
    if let Err(failure) = sent {
        // A partial file is useless; a previous file is kept.
        if is_new {
            let _ = cloud.delete(&format!("release_asset({id})")).await;
        }
        return Err(failure.within(format!("{} was not uploaded", source.path.display())));
    }
    let row = found(cloud, release, key).await?;
    output.done(
        format!(
            "uploaded {} as {key} of the release {} ({})",
            source.path.display(),
            release.name(),
            size(source.size)
        ),
        &serde_json::to_value(Asset::from(&row)).unwrap_or_default(),
    );
    Ok(())
}

/// Uploads a file in as many parts as the cloud wants.
async fn send(cloud: &Cloud, output: &Output, id: i64, source: &mut UploadFile) -> Result<()> {
    if source.size == 0 {
        return send_nothing(cloud, id, source).await;
    }
    #[derive(Deserialize)]
    struct UploadStart {
        asset: Parts,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Parts {
        uuid: String,
        upload_parts: Vec<Part>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Part {
        url: String,
        chunk_size: u64,
        part_number: u64,
    }
    let address = format!("/v7/release_asset({id})");
    let announced = json!({ "asset": {
        "filename": source.name, "content_type": source.content_type(), "size": source.size,
    }});
    let begun: UploadStart = cloud
        .post(&format!("{address}/beginUpload"), &announced)
        .await?;
    let Parts { uuid, upload_parts } = begun.asset;
    let bar = output.bytes(&source.name, source.size);
    let sent: Result<Vec<Value>> = async {
        let mut sent = Vec::new();
        for part in upload_parts {
            let bytes = source.read(part.chunk_size)?;
            let etag = send_part(cloud, on_the_cloud(&part.url)?, bytes).await?;
            sent.push(json!({ "PartNumber": part.part_number, "ETag": etag }));
            bar.inc(part.chunk_size);
        }
        Ok(sent)
    }
    .await;
    match sent {
        Ok(parts) => {
            let body = json!({ "uuid": uuid, "providerCommitData": { "Parts": parts } });
            let _: Value = cloud
                .post(&format!("{address}/commitUpload"), &body)
                .await?;
            Ok(())
        }
        Err(failure) => {
            let path = format!("{address}/cancelUpload");
            let _ = cloud
                .answer(Method::POST, &path, Some(&json!({ "uuid": uuid })))
                .await;
            Err(failure)
        }
    }
}

/// Sends a part, and sends it again if it is lost.
async fn send_part(cloud: &Cloud, path: &str, bytes: Bytes) -> Result<String> {
    let mut tries = 0;
    loop {
        tries += 1;
        let sent = cloud
            .send_bytes(
                Method::PUT,
                path,
                "application/octet-stream",
                bytes.clone(),
                PART,
            )
            .await;
        let failure = match sent {
            Ok(answer) if answer.status().is_success() => {
                let etag = answer.headers().get(ETAG).and_then(|it| it.to_str().ok());
                return etag.map(str::to_owned).ok_or_else(|| {
                    Failure::failed(
                        "the answer of the cloud does not name the part that it received",
                    )
                });
            }
            Ok(answer) => {
                let status = answer.status();
                let failure = cloud.refused(answer).await?;
                if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT {
                    return Err(failure);
                }
                failure
            }
            Err(failure) => failure,
        };
        if tries == TRIES {
            return Err(failure);
        }
        tokio::time::sleep(Duration::from_secs(1) * tries).await;
    }
}

/// Uploads a file without bytes, which has no parts, as a form.
async fn send_nothing(cloud: &Cloud, id: i64, source: &UploadFile) -> Result<()> {
    let boundary = "5d41402abc4b2a76b9719d911017c592";
    // The cloud would not store a name that ends the line or the quotes anyway.
    let name: String = source
        .name
        .chars()
        .filter(|c| !c.is_control() && *c != '"' && *c != '\\')
        .collect();
    let form = format!(
        "--{boundary}\r\ncontent-disposition: form-data; name=\"asset\"; filename=\"{name}\"\r\n\
         content-type: {}\r\n\r\n\r\n--{boundary}--\r\n",
        source.content_type()
    );
    let kind = format!("multipart/form-data; boundary={boundary}");
    let path = format!("/v7/release_asset({id})");
    let answer = cloud
        .send_bytes(Method::PATCH, &path, &kind, form.into(), PART)
        .await?;
    cloud.require_success(answer).await.map(drop)
}
