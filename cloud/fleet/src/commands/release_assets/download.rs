//! A file comes from the cloud; it is written beside its place until it is whole.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::json;

use super::{found, on_the_cloud};
use crate::cloud::Cloud;
use crate::failure::{Failure, Result};
use crate::find::Release;
use crate::interrupt::told_to_stop;
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
    let answer = cloud.good(answer).await?;
    let mut place = if is_output {
        Place::Output(std::io::stdout())
    } else {
        Place::beside(&to)?
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
            format!("wrote {} ({})", to.display(), size(stored.size)),
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
            Failure::failed(format!(
                "the cloud sent more than the {size} bytes of the file"
            ))
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
    if is_plain {
        Ok(name)
    } else {
        Err(
            Failure::usage(format!("`{name}` is not a valid file name here"))
                .hint("choose a file with `--output`"),
        )
    }
}

/// Where a file is written.
enum Place {
    Output(std::io::Stdout),
    File(PartialFile),
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
            .map_err(|error| Failure::unwritable(to, error))?;
        Ok(Place::File(PartialFile { file, path }))
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
struct PartialFile {
    file: File,
    path: PathBuf,
}

impl PartialFile {
    /// Has it take its place.
    fn keep(&self, to: &Path, overwrite: bool) -> Result<()> {
        let free = if overwrite {
            Ok(())
        } else {
            // A renaming alone would take the place of what came meanwhile.
            File::create_new(to).map(drop)
        };
        let result = free.and_then(|()| std::fs::rename(&self.path, to));
        result.map_err(|error| Failure::unwritable(to, error))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
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
