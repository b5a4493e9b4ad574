//! Downloads a file from the cloud; it has a temporary name in the same folder until it is
//! complete.

use std::error::Error as _;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;

use reqwest::Method;
use serde_json::json;

use super::{found, on_the_cloud};
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::files;
use crate::find::Release;
use crate::interrupt::wait_for_interrupt;
use crate::output::{Output, size};

pub(super) async fn download(
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
        return Err(Failure::failed(format!("{} already exists", to.display()))
            .hint("`--overwrite` replaces it, `--output` names another file"));
    }
    let answer = cloud
        .send(Method::GET, on_the_cloud(&stored.href)?, None, None)
        .await?;
    let answer = cloud.require_success(answer).await?;
    let bar = output.bytes(key, stored.size);
    if is_output {
        let mut place = io::stdout();
        let to = Path::new("standard output");
        return match copy(cloud, answer, stored.size, &bar, &mut place, to).await {
            // A reader that stops early (`… --output - | head`) is not a failure.
            Err(failure) if is_unread(&failure) => Ok(()),
            result => result,
        };
    }
    let unwritable = |error| Failure::unwritable(&to, error);
    let mut beside = files::beside(&to, 0o666).map_err(unwritable)?;
    copy(cloud, answer, stored.size, &bar, &mut beside, &to).await?;
    drop(bar);
    beside.as_file().sync_all().map_err(unwritable)?;
    let placed = if overwrite {
        beside.persist(&to)
    } else {
        // A plain rename would replace a file that was created in the meantime.
        beside.persist_noclobber(&to)
    };
    placed.map_err(|error| unwritable(error.error))?;
    output.done(
        format!("wrote {} ({})", to.display(), size(stored.size)),
        &json!({ "file": to, "key": key, "size": stored.size, "content_type": stored.content_type }),
    );
    Ok(())
}

/// Returns whether writing failed because nobody reads the output any more.
fn is_unread(failure: &Failure) -> bool {
    let cause = failure.source();
    let error = cause.and_then(|cause| cause.downcast_ref::<io::Error>());
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Copies until the file is complete, or somebody stops the program. Errors call `place` by the name `to`.
async fn copy(
    cloud: &Cloud,
    mut answer: reqwest::Response,
    size: u64,
    bar: &indicatif::ProgressBar,
    place: &mut impl Write,
    to: &Path,
) -> Result<()> {
    let unwritable = |error| Failure::unwritable(to, error);
    let mut left = size;
    let mut stopped = pin!(wait_for_interrupt());
    while let Some(piece) = tokio::select! {
        piece = answer.chunk() => piece.map_err(|error| cloud.unreachable(error))?,
        stopped = &mut stopped => return Err(stopped),
    } {
        left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
            Failure::failed(format!(
                "the cloud sent more than the {size} bytes of the file"
            ))
        })?;
        place.write_all(&piece).map_err(unwritable)?;
        bar.inc(piece.len() as u64);
    }
    match left {
        0 => place.flush().map_err(unwritable),
        left => {
            Err(Failure::failed(format!("the download ended {left} bytes early")).hint("try again"))
        }
    }
}

/// Returns a file's own name if it is a name within this folder: the cloud cannot redirect it
/// elsewhere.
fn own_name(name: &str) -> Result<&str> {
    let is_plain = !name.is_empty()
        && !name.starts_with(['.', '-'])
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control);
    if is_plain {
        Ok(name)
    } else {
        Err(
            Failure::usage(format!("`{name}` is not a valid file name here"))
                .hint("choose a file with `--output`"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cloud_chooses_no_other_folder() {
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
