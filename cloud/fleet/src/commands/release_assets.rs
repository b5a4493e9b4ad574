//! `release-asset …`: files beside releases. Large ones go in parts, each of which is sent again where it is lost;
//! what comes is written beside its place first, so that nobody finds half of a file.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::ETAG;
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::releases;
use crate::arguments::assets::AssetCommand;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::Release;
use crate::interrupt::told_to_stop;
use crate::odata::literal;
use crate::output::{Mood, Output, when};

/// Where the cloud keeps files, on whatever host it says that this is.
const FILES: &str = "/release-asset/v1/";
/// From the first byte of a part to its answer.
const PART: Duration = Duration::from_secs(600);
/// How often a part is sent.
const TRIES: u32 = 4;

/// A file as the API gives it.
#[derive(Deserialize)]
struct Row {
    id: i64,
    asset_key: String,
    asset: Option<Stored>,
    created_at: String,
}

#[derive(Deserialize)]
struct Stored {
    filename: String,
    href: String,
    content_type: String,
    size: u64,
}

/// A file as it is told.
#[derive(Serialize)]
struct Asset {
    id: i64,
    key: String,
    file: Option<String>,
    content_type: Option<String>,
    /// Bytes.
    size: Option<u64>,
    created_at: String,
}

impl From<&Row> for Asset {
    fn from(row: &Row) -> Self {
        let stored = row.asset.as_ref();
        Asset {
            id: row.id,
            key: row.asset_key.clone(),
            file: stored.map(|stored| stored.filename.clone()),
            content_type: stored.map(|stored| stored.content_type.clone()),
            size: stored.map(|stored| stored.size),
            created_at: row.created_at.clone(),
        }
    }
}

pub(crate) async fn run(cloud: &Cloud, output: &Output, command: AssetCommand) -> Result<()> {
    match command {
        AssetCommand::List(release) => {
            let release = releases::found(cloud, &release).await?;
            list(cloud, output, &release).await
        }
        AssetCommand::Upload {
            release,
            file,
            key,
            overwrite,
        } => {
            let file = Source::open(&file)?;
            let release = releases::found(cloud, &release).await?;
            let key = key.unwrap_or_else(|| file.name.clone());
            upload(cloud, output, &release, file, &key, overwrite).await
        }
        AssetCommand::Download {
            release,
            key,
            output: to,
            overwrite,
        } => {
            let release = releases::found(cloud, &release).await?;
            download(cloud, output, &release, &key, to, overwrite).await
        }
        AssetCommand::Delete { release, key, yes } => {
            let release = releases::found(cloud, &release).await?;
            let row = found(cloud, &release, &key).await?;
            let what = format!("delete the file {key} of the release {}", release.name());
            ask::confirmed(&what, yes)?;
            cloud.delete(&format!("release_asset({})", row.id)).await?;
            output.done(
                format!("deleted the file {key} of the release {}", release.name()),
                &json!({ "deleted": { "id": row.id, "key": key }, "release": release.commit }),
            );
            Ok(())
        }
    }
}

const SELECT: &str = "id,asset_key,asset,created_at";

async fn list(cloud: &Cloud, output: &Output, release: &Release) -> Result<()> {
    let filter = format!("release eq {}", release.id);
    let options = [
        ("$select", SELECT),
        ("$filter", &filter),
        ("$orderby", "asset_key asc"),
    ];
    let rows: Vec<Row> = cloud.rows("release_asset", &options).await?;
    let assets: Vec<Asset> = rows.iter().map(Asset::from).collect();
    output.rows(
        &assets,
        &[
            ("KEY", |asset| (asset.key.clone(), Mood::Plain)),
            ("FILE", |asset| match &asset.file {
                Some(file) => (file.clone(), Mood::Plain),
                None => ("(none)".to_owned(), Mood::Quiet),
            }),
            ("SIZE", |asset| {
                let size = asset
                    .size
                    .map(|size| indicatif::HumanBytes(size).to_string());
                (size.unwrap_or_default(), Mood::Plain)
            }),
            ("KIND", |asset| {
                (asset.content_type.clone().unwrap_or_default(), Mood::Quiet)
            }),
            ("MADE", |asset| (when(&asset.created_at), Mood::Quiet)),
        ],
        &format!("there are no files beside the release {}", release.name()),
    );
    Ok(())
}

/// The row of a key, where there is one.
async fn row(cloud: &Cloud, release: &Release, key: &str) -> Result<Option<Row>> {
    let address = format!(
        "release_asset(release={},asset_key={})",
        release.id,
        literal(key)
    );
    cloud.row(&address, &[("$select", SELECT)]).await
}

async fn found(cloud: &Cloud, release: &Release, key: &str) -> Result<Row> {
    row(cloud, release, key).await?.ok_or_else(|| {
        Failure::not_found(format!(
            "there is no file `{key}` beside the release {}",
            release.name()
        ))
        .hint("`fleet release-asset list` lists those that there are")
    })
}

/// A file that is to be sent.
struct Source {
    file: File,
    path: PathBuf,
    name: String,
    size: u64,
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| {
            Failure::failed(format!("{} cannot be read", path.display())).because(error)
        };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some(name) if about.is_file() => Ok(Source {
                file,
                path: path.to_owned(),
                name: name.to_owned(),
                size: about.len(),
            }),
            Some(_) => Err(Failure::usage(format!("{} is no file", path.display()))
                .hint("a folder goes as an archive: `tar -czf files.tar.gz FOLDER`")),
            None => Err(Failure::usage(format!(
                "the name of {} is no text",
                path.display()
            ))),
        }
    }

    /// The next bytes of it.
    fn read(&mut self, bytes: u64) -> Result<Bytes> {
        let mut piece = Vec::new();
        let read = (&mut self.file).take(bytes).read_to_end(&mut piece);
        let changed = match read {
            Ok(read) if read as u64 == bytes => return Ok(piece.into()),
            Ok(_) => Failure::failed(format!("{} became shorter meanwhile", self.path.display())),
            Err(error) => {
                Failure::failed(format!("{} cannot be read", self.path.display())).because(error)
            }
        };
        Err(changed)
    }

    fn content_type(&self) -> String {
        let guessed = mime_guess::from_path(&self.name).first_or_octet_stream();
        guessed.essence_str().to_owned()
    }
}

async fn upload(
    cloud: &Cloud,
    output: &Output,
    release: &Release,
    mut source: Source,
    key: &str,
    overwrite: bool,
) -> Result<()> {
    let there = row(cloud, release, key).await?;
    let (id, is_new) = match there {
        Some(row) if overwrite || row.asset.is_none() => (row.id, false),
        Some(_) => {
            return Err(Failure::failed(format!(
                "there is a file `{key}` beside the release {} already",
                release.name()
            ))
            .hint("`--overwrite` takes its place, `--key` gives this one another key"));
        }
        None => {
            let body = json!({ "release": release.id, "asset_key": key });
            (cloud.create("release_asset", &body).await?, true)
        }
    };
    let sent = tokio::select! {
        sent = send(cloud, output, id, &mut source) => sent,
        stopped = told_to_stop() => Err(stopped),
    };
    if let Err(failure) = sent {
        // Half of it is nothing to anybody; what was there before stays.
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
            indicatif::HumanBytes(source.size)
        ),
        &serde_json::to_value(Asset::from(&row)).unwrap_or_default(),
    );
    Ok(())
}

/// Sends a file in as many parts as the cloud wants.
async fn send(cloud: &Cloud, output: &Output, id: i64, source: &mut Source) -> Result<()> {
    if source.size == 0 {
        return send_nothing(cloud, id, source).await;
    }
    #[derive(Deserialize)]
    struct Begun {
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
    let begun: Begun = cloud
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

/// A part, once more where it is lost on the way.
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
                return etag
                    .map(str::to_owned)
                    .ok_or_else(|| Failure::failed("the cloud did not say which part it has got"));
            }
            Ok(answer) => {
                let status = answer.status();
                let failure = cloud.refusal(status, &cloud.read(answer).await?);
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

/// A file of no bytes has no parts: it is sent as a form.
async fn send_nothing(cloud: &Cloud, id: i64, source: &Source) -> Result<()> {
    let boundary = "5d41402abc4b2a76b9719d911017c592";
    // A name that would end the line or the quotes is none that the cloud keeps anyway.
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
    let status = answer.status();
    let body = cloud.read(answer).await?;
    match status.is_success() {
        true => Ok(()),
        false => Err(cloud.refusal(status, &body)),
    }
}

/// The path of an address of the cloud's: whichever host it names, the one that was signed in to is asked.
fn on_the_cloud(address: &str) -> Result<&str> {
    match address.find(FILES) {
        Some(at) => Ok(&address[at..]),
        None => Err(Failure::failed(
            "the cloud names an address for its file that is none of its own",
        )),
    }
}

async fn download(
    cloud: &Cloud,
    output: &Output,
    release: &Release,
    key: &str,
    to: Option<PathBuf>,
    overwrite: bool,
) -> Result<()> {
    let row = found(cloud, release, key).await?;
    let Some(stored) = &row.asset else {
        return Err(Failure::not_found(format!("`{key}` has no file yet"))
            .hint("`fleet release-asset upload` gives it one"));
    };
    let to = match to {
        Some(to) => to,
        None => PathBuf::from(own_name(&stored.filename)?),
    };
    let is_output = to.as_os_str() == "-";
    if !is_output && !overwrite && to.exists() {
        return Err(
            Failure::failed(format!("{} is there already", to.display()))
                .hint("`--overwrite` takes its place, `--output` names another"),
        );
    }
    let answer = cloud
        .send(Method::GET, on_the_cloud(&stored.href)?, None, None)
        .await?;
    let status = answer.status();
    if !status.is_success() {
        return Err(cloud.refusal(status, &cloud.read(answer).await?));
    }
    let mut place = match is_output {
        true => Place::Output(std::io::stdout()),
        false => Place::beside(&to)?,
    };
    let bar = output.bytes(key, stored.size);
    let copied = tokio::select! {
        copied = copy(cloud, answer, stored.size, &bar, &mut place) => copied,
        stopped = told_to_stop() => Err(stopped),
    };
    drop(bar);
    copied?;
    if let Place::File(file) = place {
        file.keep(&to, overwrite)?;
        output.done(
            format!(
                "wrote {} ({})",
                to.display(),
                indicatif::HumanBytes(stored.size)
            ),
            &json!({ "file": to, "key": key, "size": stored.size, "content_type": stored.content_type }),
        );
    }
    Ok(())
}

async fn copy(
    cloud: &Cloud,
    mut answer: reqwest::Response,
    size: u64,
    bar: &indicatif::ProgressBar,
    place: &mut Place,
) -> Result<()> {
    let mut left = size;
    while let Some(piece) = answer
        .chunk()
        .await
        .map_err(|error| cloud.unreachable(error))?
    {
        left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
            Failure::failed(format!("more than the {size} bytes of the file came"))
        })?;
        place.write(&piece)?;
        bar.inc(piece.len() as u64);
    }
    match left {
        0 => place.flush(),
        left => Err(
            Failure::failed(format!("the file broke off {left} bytes before its end"))
                .hint("try again"),
        ),
    }
}

/// A file's own name, where that is one in this folder: the cloud's word does not lead elsewhere.
fn own_name(name: &str) -> Result<&str> {
    let is_plain = !name.is_empty()
        && !name.starts_with(['.', '-'])
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control);
    match is_plain {
        true => Ok(name),
        false => Err(
            Failure::usage(format!("`{name}` is no name for a file here"))
                .hint("say where to write it by `--output`"),
        ),
    }
}

/// Where a file is written.
enum Place {
    Output(std::io::Stdout),
    File(Unfinished),
}

impl Place {
    fn beside(to: &Path) -> Result<Self> {
        let mut name = to.file_name().unwrap_or_default().to_owned();
        name.push(format!(".part{}", std::process::id()));
        let path = to.with_file_name(name);
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| {
                Failure::failed(format!("{} cannot be written", to.display())).because(error)
            })?;
        Ok(Place::File(Unfinished { file, path }))
    }

    fn write(&mut self, piece: &[u8]) -> Result<()> {
        let written = match self {
            Place::Output(output) => output.write_all(piece),
            Place::File(file) => file.file.write_all(piece),
        };
        written.map_err(|error| Failure::failed("the file cannot be written").because(error))
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = match self {
            Place::Output(output) => output.flush(),
            Place::File(file) => file.file.sync_all(),
        };
        flushed.map_err(|error| Failure::failed("the file cannot be written").because(error))
    }
}

/// A file that is not whole yet; it goes with the value unless it is kept.
struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    /// Has it take its place.
    fn keep(&self, to: &Path, overwrite: bool) -> Result<()> {
        let free = match overwrite {
            true => Ok(()),
            // A renaming alone would take the place of what came meanwhile.
            false => File::create_new(to).map(drop),
        };
        let kept = free.and_then(|()| std::fs::rename(&self.path, to));
        kept.map_err(|error| {
            Failure::failed(format!("{} cannot be written", to.display())).because(error)
        })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cloud_chooses_neither_another_host_nor_another_folder() {
        for (address, expected) in [
            (
                "https://elsewhere.example/release-asset/v1/7?key=a",
                Some("/release-asset/v1/7?key=a"),
            ),
            ("https://elsewhere.example/steal", None),
            ("", None),
        ] {
            assert_eq!(on_the_cloud(address).ok(), expected, "{address}");
        }
        for (name, expected) in [
            ("notes.txt", true),
            ("../notes.txt", false),
            ("/etc/passwd", false),
            (".bashrc", false),
            ("-rf", false),
            ("a\\b", false),
            ("a\nb", false),
            ("", false),
        ] {
            assert_eq!(own_name(name).is_ok(), expected, "{name:?}");
        }
    }
}
