//! What determines the component of a project: everything that its build reads. While the digest of that stays the same,
//! another build would make a component that differs only in what the compiler chooses at random.
//!
//! If the tool cannot know what a build reads, or if that is too much to read, there is no digest, and the project is built.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

use crate::project::ProjectFolder;
use crate::toolchain;

/// This program, with the SDKs in it. The link leads to the file that runs, also after an update has replaced that file.
const TOOL: &str = "/proc/self/exe";
/// How the names of those environment variables begin that change what Node.js, its packages and Python do.
const VARIABLES: [&str; 3] = ["NAPI_", "NODE_", "PYTHON"];
/// The most files and folders that are read.
const MOST_ENTRIES: usize = 20_000;
/// The most bytes that are read.
const MOST_BYTES: u64 = 512 << 20;
/// The folder in which Python keeps compiled sources.
const COMPILED: &str = "__pycache__";
/// How the names of the files end that an editor keeps while somebody edits a file.
const SWAP: [&str; 3] = [".swp", ".swo", ".swx"];

/// The inputs of a build.
pub(super) struct Inputs {
    /// What the tool has read already, each with what it is.
    texts: Vec<(String, Vec<u8>)>,
    programs: Vec<PathBuf>,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    /// What builds and signatures write, which may be in one of the folders.
    outputs: Vec<PathBuf>,
}

impl Inputs {
    /// Creates the inputs that projects in each language have.
    pub(super) fn new(project: &ProjectFolder) -> Inputs {
        let mut texts = vec![("plugin.toml".to_owned(), project.text.clone().into_bytes())];
        let mut variables: Vec<_> = std::env::vars_os().collect();
        variables.sort();
        for (name, value) in variables {
            let name = name.to_string_lossy();
            if VARIABLES.iter().any(|begin| name.starts_with(begin)) {
                texts.push((name.into_owned(), value.as_bytes().to_owned()));
            }
        }
        let description = project.project.openapi.as_ref();
        let files = description.map(|file| project.path.join(file));
        let component = project.component();
        let outputs = vec![
            project.path.join("build"),
            component.with_added_extension("new"),
            component.with_added_extension("minisig"),
            component,
        ];
        Inputs {
            texts,
            programs: Vec::new(),
            files: files.into_iter().collect(),
            folders: Vec::new(),
            outputs,
        }
    }

    /// Adds a program of the language, in its present version.
    pub(super) fn add_program(&mut self, program: &OsStr) {
        self.programs.push(program.into());
    }

    pub(super) fn add_file(&mut self, file: &Path) {
        self.files.push(file.to_owned());
    }

    /// Adds everything below a folder.
    pub(super) fn add_folder(&mut self, folder: &Path) {
        self.folders.push(folder.to_owned());
    }

    /// Reads the inputs and returns their digest, in hexadecimal.
    ///
    /// # Errors
    /// One of them cannot be read, or could change without a change of what is read, or they are too large.
    pub(super) fn digest(&self) -> Result<String> {
        let mut digest = InputDigest {
            hasher: Sha256::new(),
            entries: 0,
            bytes: 0,
        };
        digest.add("tool", tool_digest()?.as_bytes(), &[]);
        for (name, text) in &self.texts {
            digest.add("text", name.as_bytes(), text);
        }
        for program in &self.programs {
            let identity = identity(program)?;
            digest.add("program", identity.as_bytes(), &[]);
        }
        for file in &self.files {
            digest.add_file(file.as_os_str().as_bytes(), file)?;
        }
        for folder in &self.folders {
            digest.add_folder(folder, &self.outputs)?;
        }
        Ok(hex::encode(digest.hasher.finalize()))
    }
}

/// A digest of inputs, while they are read.
struct InputDigest {
    hasher: Sha256,
    entries: usize,
    bytes: u64,
}

impl InputDigest {
    /// The lengths of the parts are digested too, so that two different lists of inputs never look the same.
    fn add(&mut self, kind: &str, name: &[u8], content: &[u8]) {
        for part in [kind.as_bytes(), name, content] {
            self.hasher.update((part.len() as u64).to_le_bytes());
            self.hasher.update(part);
        }
    }

    fn add_file(&mut self, name: &[u8], path: &Path) -> Result<()> {
        let unreadable = || format!("cannot read `{}`", path.display());
        let file = File::open(path).with_context(unreadable)?;
        let metadata = file.metadata().with_context(unreadable)?;
        ensure!(
            metadata.is_file(),
            "`{}` is not a regular file",
            path.display()
        );
        let left = MOST_BYTES - self.bytes;
        let mut hasher = Sha256::new();
        let mut length = metadata.len();
        if length <= left {
            // The file may grow while it is read.
            length =
                std::io::copy(&mut file.take(left + 1), &mut hasher).with_context(unreadable)?;
        }
        ensure!(
            length <= left,
            "the sources have more than {} MiB with `{}`",
            MOST_BYTES >> 20,
            path.display()
        );
        self.bytes += length;
        self.add("file", name, &hasher.finalize());
        Ok(())
    }

    fn add_folder(&mut self, folder: &Path, outputs: &[PathBuf]) -> Result<()> {
        let missing = || format!("cannot read `{}`", folder.display());
        let root = folder.canonicalize().with_context(missing)?;
        self.add("root", folder.as_os_str().as_bytes(), &[]);
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for path in self.entries(&folder)? {
                if outputs.contains(&path) || is_ignored(&path) {
                    continue;
                }
                let unreadable = || format!("cannot read `{}`", path.display());
                let kind = path
                    .symlink_metadata()
                    .with_context(unreadable)?
                    .file_type();
                let below = path.strip_prefix(&root).unwrap_or(&path).to_owned();
                let name = below.as_os_str().as_bytes();
                if kind.is_file() {
                    self.add_file(name, &path)?;
                } else if kind.is_dir() {
                    // Python creates this folder during a build. Another empty folder is a module without content.
                    if path.file_name() != Some(OsStr::new(COMPILED)) {
                        self.add("folder", name, &[]);
                    }
                    folders.push(path);
                } else {
                    // What a link leads to may be anywhere, and a pipe or a device has no content that stays.
                    bail!(
                        "`{}` is a link or a special file, so the tool cannot know whether it has changed",
                        path.display()
                    );
                }
            }
        }
        Ok(())
    }

    /// Returns the paths of what a folder contains, sorted.
    fn entries(&mut self, folder: &Path) -> Result<Vec<PathBuf>> {
        let unreadable = || format!("cannot read `{}`", folder.display());
        let mut paths = Vec::new();
        for entry in folder.read_dir().with_context(unreadable)? {
            self.entries += 1;
            ensure!(
                self.entries <= MOST_ENTRIES,
                "the sources have more than {MOST_ENTRIES} files with those in `{}`",
                folder.display()
            );
            paths.push(entry.with_context(unreadable)?.path());
        }
        paths.sort();
        Ok(paths)
    }
}

/// Returns the digest of this program.
fn tool_digest() -> Result<&'static str> {
    static DIGEST: OnceLock<String> = OnceLock::new();
    if let Some(digest) = DIGEST.get() {
        return Ok(digest);
    }
    let mut hasher = Sha256::new();
    File::open(TOOL)
        .and_then(|mut file| std::io::copy(&mut file, &mut hasher))
        .context("cannot read this program")?;
    Ok(DIGEST.get_or_init(|| hex::encode(hasher.finalize())))
}

/// Returns what identifies a program: its file and its version. A package's program is often a script that is the same in
/// all versions of the package.
fn identity(program: &Path) -> Result<String> {
    let unreadable = || format!("cannot read `{}`", program.display());
    let file = program.canonicalize().with_context(unreadable)?;
    let metadata = file.metadata().with_context(unreadable)?;
    let modified = metadata.modified().with_context(unreadable)?;
    let version = toolchain::line(toolchain::command(program).arg("--version"))?;
    let length = metadata.len();
    Ok(format!(
        "{}\n{length}\n{modified:?}\n{version}",
        file.display()
    ))
}

/// Returns whether something in a folder of sources is never a part of a plugin: git's own folder, what an editor keeps
/// beside a file, and sources that Python has compiled, which it reads only if they belong to a source.
fn is_ignored(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_of_editor = name.ends_with('~')
        || name.starts_with(".#")
        || (name.starts_with('#') && name.ends_with('#'))
        || (name.starts_with('.') && SWAP.iter().any(|end| name.ends_with(end)));
    let folder = path.parent().and_then(Path::file_name);
    let is_compiled = folder == Some(OsStr::new(COMPILED)) && name.contains(".pyc");
    name == ".git" || is_of_editor || is_compiled
}

#[cfg(test)]
mod tests;
