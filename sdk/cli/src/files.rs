//! Writes files, also while others read them.

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use include_dir::Dir;
use wit_bindgen_core::Files;

/// Writes the files of a folder.
pub(crate) fn write_folder(place: &Path, folder: &Dir) -> Result<()> {
    for file in folder.files() {
        let name = file.path().file_name().context("a file has a name")?;
        write_file(&place.join(name), file.contents())?;
    }
    for inner in folder.dirs() {
        let name = inner.path().file_name().context("a folder has a name")?;
        write_folder(&place.join(name), inner)?;
    }
    Ok(())
}

/// Writes generated files.
pub(crate) fn write_files(place: &Path, files: &Files) -> Result<()> {
    for (name, content) in files.iter() {
        write_file(&place.join(name), content)?;
    }
    Ok(())
}

/// Writes a file and its parent folders. Concurrent readers find either the previous content or the new one, complete:
/// several builds write the same file into the cache and run it.
pub(crate) fn write_file(file: &Path, content: &[u8]) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new(""));
    replace_file(folder, file, content)
        .with_context(|| format!("cannot write `{}`", file.display()))
}

fn replace_file(folder: &Path, file: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mode = std::fs::metadata(file).map_or(0o666, |metadata| metadata.permissions().mode());
    let mut new = tempfile::Builder::new()
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    new.write_all(content)?;
    new.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_again_is_whole_for_those_who_read_it_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("build/script.mjs");
        let content = vec![b'x'; 1 << 20];
        write_file(&file, &content).unwrap();
        std::thread::scope(|threads| {
            let writer = threads.spawn(|| {
                for _ in 0..50 {
                    write_file(&file, &content).unwrap();
                }
            });
            while !writer.is_finished() {
                assert_eq!(std::fs::read(&file).unwrap().len(), content.len());
            }
        });
        assert_eq!(
            std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1
        );
    }
}
