//! A form with a file in it, read as a stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;

use axum::body::{Body, Bytes};
use bytes::{Buf as _, BytesMut};
use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use data::file::{File, PIECE};
use data::query::{self, Caller};
use futures::{Stream, StreamExt as _};
use http::{HeaderMap, header};
use multer::{Field, Multipart};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use resources::Method;
use serde_json::{Map, Value};

/// The field of the file.
const FILE: &str = "asset";
/// Maximum number of parts of a form.
const PARTS: usize = 32;
/// Maximum bytes of all parts except the file.
const TEXTS: usize = 64 << 10;
/// Received bytes that belong to no part yet: heads of parts.
const AHEAD: u64 = 256 << 10;
/// Maximum number of characters of the name and of the media type of a file.
const NAME: usize = 255;

/// The contents of a form.
pub(crate) struct AssetForm {
    /// Its texts, and an object for the file, if there is one.
    pub(crate) fields: Map<String, Value>,
    pub(crate) file: Option<File>,
}

/// Whether a body is such a form.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    kind(headers).is_some_and(|kind| {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("multipart/form-data")
    })
}

fn kind(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::CONTENT_TYPE)?.to_str().ok()
}

/// Reads a form; its file is then in the database, and belongs to no row yet.
///
/// # Errors
/// If it is too large, or not a form, or has a file for a release that the caller may not change; in these cases
/// nothing is stored.
pub(crate) async fn read(
    cloud: &Cloud,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<AssetForm, Refusal> {
    let most = cloud.configuration.limits.release_asset;
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most + AHEAD) {
        return Err(too_large(most));
    }
    let boundary =
        multer::parse_boundary(kind(headers).unwrap_or_default()).map_err(|error| wrong(&error))?;
    let bytes_taken = Arc::new(AtomicU64::new(0));
    let form = Multipart::new(unhurried(body, bytes_taken.clone()), boundary);
    let mut reading = FormReader {
        cloud,
        caller,
        form,
        bytes_taken,
        file: None,
    };
    match reading.all().await {
        Ok(fields) => Ok(AssetForm {
            fields,
            file: reading.file,
        }),
        Err(refusal) => {
            if let Some(file) = reading.file {
                cloud.database.drop_file(file.id).await?;
            }
            Err(refusal)
        }
    }
}

/// Passes a body to the parser gradually: otherwise, the parser would take everything that has arrived, and keep it.
fn unhurried(
    body: Body,
    bytes_taken: Arc<AtomicU64>,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let mut body = body.into_data_stream();
    let mut came = 0;
    let mut rests = false;
    futures::stream::poll_fn(move |context| {
        if rests {
            rests = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let some = std::task::ready!(body.poll_next_unpin(context));
        rests = true;
        Poll::Ready(some.map(|some| {
            let some = some.map_err(std::io::Error::other)?;
            came += some.len() as u64;
            if came.saturating_sub(bytes_taken.load(Ordering::Relaxed)) > AHEAD + some.len() as u64
            {
                Err(std::io::Error::other("the head of a part is too long"))
            } else {
                Ok(some)
            }
        }))
    })
}

struct FormReader<'a> {
    cloud: &'a Cloud,
    caller: &'a Caller,
    form: Multipart<'static>,
    /// Bytes of parts that have been read.
    bytes_taken: Arc<AtomicU64>,
    file: Option<File>,
}

impl FormReader<'_> {
    async fn all(&mut self) -> Result<Map<String, Value>, Refusal> {
        let mut fields = Map::new();
        let (mut parts, mut texts) = (0, 0);
        while let Some(mut part) = self
            .form
            .next_field()
            .await
            .map_err(|error| wrong(&error))?
        {
            parts += 1;
            if parts > PARTS {
                return Err(Refusal::Wrong(format!("a form has {PARTS} parts at most")));
            }
            let name = part.name().unwrap_or_default().to_owned();
            if name == FILE {
                if self.file.is_some() {
                    return Err(Refusal::Wrong(format!("the form contains `{FILE}` twice")));
                }
                self.check_right(&fields).await?;
                self.file(part).await?;
                fields.insert(name, Value::Object(Map::new()));
                continue;
            }
            if part.file_name().is_some() {
                let name: String = name.chars().take(100).collect();
                return Err(Refusal::Wrong(format!(
                    "`{name}` is not a file; the file of a release asset is `{FILE}`"
                )));
            }
            let mut text = Vec::new();
            while let Some(some) = self.next(&mut part).await? {
                texts += some.len();
                if texts > TEXTS {
                    return Err(Refusal::TooLarge(TEXTS));
                }
                text.extend_from_slice(&some);
            }
            let text = String::from_utf8(text)
                .map_err(|_| Refusal::Wrong("a part of the form is not UTF-8 text".to_owned()))?;
            fields.insert(name, Value::String(text));
        }
        Ok(fields)
    }

    /// Checks that the file is for a release that the caller may change; if the form names the release later, or the
    /// address does, any such release counts.
    async fn check_right(&self, fields: &Map<String, Value>) -> Result<(), Refusal> {
        let (cloud, method) = (self.cloud, Method::Update);
        let release = fields.get("release").and_then(Value::as_str);
        let may = match release.and_then(|release| release.trim().parse().ok()) {
            Some(release) => {
                let right = cloud.right(self.caller, "release", release, method);
                right.await?.is_some()
            }
            None => {
                let any = query::permitted_any(&cloud.setting(self.caller), "release", method)?;
                cloud.database.row(&any).await?.is_some()
            }
        };
        if may {
            Ok(())
        } else {
            Err(Refusal::Unauthorized)
        }
    }

    async fn next(&self, part: &mut Field<'_>) -> Result<Option<Bytes>, Refusal> {
        let some = part.chunk().await.map_err(|error| wrong(&error))?;
        if let Some(some) = &some {
            self.bytes_taken
                .fetch_add(some.len() as u64, Ordering::Relaxed);
        }
        Ok(some)
    }

    /// Writes the file to the database, piece by piece.
    async fn file(&mut self, mut part: Field<'_>) -> Result<(), Refusal> {
        let database = &self.cloud.database;
        let most = self.cloud.configuration.limits.release_asset;
        let id = database.begin_file(now()).await?;
        let filename = part.file_name().map(plain_name);
        let content_type = media_type(part.content_type().map(ToString::to_string));
        self.file = Some(File {
            id,
            content_disposition: disposition(filename.as_deref()),
            content_type,
            filename,
            size: 0,
            parts: None,
        });
        let (mut size, mut number) = (0, 0);
        let mut waiting = BytesMut::new();
        while let Some(some) = self.next(&mut part).await? {
            size += some.len() as u64;
            if size > most {
                return Err(too_large(most));
            }
            waiting.extend_from_slice(&some);
            while waiting.len() >= PIECE {
                database.add_piece(id, number, &waiting[..PIECE]).await?;
                waiting.advance(PIECE);
                number += 1;
            }
        }
        if !waiting.is_empty() {
            database.add_piece(id, number, &waiting).await?;
        }
        if let Some(file) = &mut self.file {
            file.size = size;
        }
        Ok(())
    }
}

fn too_large(most: u64) -> Refusal {
    Refusal::TooLarge(usize::try_from(most).unwrap_or(usize::MAX))
}

fn wrong(error: &multer::Error) -> Refusal {
    Refusal::Wrong(format!("the form cannot be read: {error}"))
}

/// Returns only the name, as a file in one folder may have it.
pub(crate) fn plain_name(given: &str) -> String {
    let name = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let shown = name.chars().filter(|one| !one.is_control());
    shown.take(NAME).collect()
}

/// Returns the media type stated by the sender, if it is short enough.
pub(crate) fn media_type(kind: Option<String>) -> String {
    kind.filter(|kind| !kind.is_empty() && kind.len() <= NAME)
        .unwrap_or_else(|| "application/octet-stream".to_owned())
}

/// Returns the header that makes browsers save the file under a name (RFC 6266): it is never displayed, since anybody
/// may have uploaded it.
pub(crate) fn disposition(filename: Option<&str>) -> String {
    let Some(name) = filename.filter(|name| !name.is_empty()) else {
        return "attachment".to_owned();
    };
    let is_plain = |one: char| one.is_ascii_graphic() && one != '"' && one != '\\' || one == ' ';
    if name.chars().all(is_plain) {
        format!("attachment; filename=\"{name}\"")
    } else {
        format!(
            "attachment; filename*=UTF-8''{}",
            utf8_percent_encode(name, NON_ALPHANUMERIC)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_saved_under_its_name_and_nowhere_else() {
        assert_eq!(plain_name("../../etc/pass\nwd"), "passwd");
        assert_eq!(plain_name("C:\\firmware.bin"), "firmware.bin");
        assert_eq!(
            disposition(Some("firmware 1.bin")),
            "attachment; filename=\"firmware 1.bin\""
        );
        assert_eq!(
            disposition(Some("a\"ü")),
            "attachment; filename*=UTF-8''a%22%C3%BC"
        );
        assert_eq!(disposition(Some("")), "attachment");
    }
}
