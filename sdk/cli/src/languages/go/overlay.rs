//! Files that the compiler reads in place of others: the author's package gets one that is not in the author's folder, and
//! Go's own library some that say which capability a plugin lacks. Go itself would end the call without a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use plugin_manifest::Capability;
use serde_json::json;

use super::GO;
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::sdk_sources::write_file;
use crate::toolchain;

/// The file of Go's own library that reads random bytes, below its root.
const RANDOM: &str = "src/crypto/internal/sysrand/rand_wasip1.go";
/// Its replacement in a plugin that does not ask for random numbers.
const WITHOUT_RANDOM: &str = include_str!("without_random.go");

/// The file of Go's own library with [`BEFORE_IDLE`], below its root.
const IDLE: &str = "src/runtime/lock_wasip1.go";
/// What Go does before it waits for a timer, which is nothing.
const BEFORE_IDLE: &str = "func beforeIdle(int64, int64) (*g, bool) {\n\treturn nil, false\n}\n";
/// The file that is added in its place to a plugin that does not ask for a clock, below the same root.
const ADDED: &str = "src/runtime/before_idle_wasip1.go";
const WITHOUT_CLOCK: &str = include_str!("without_clock.go");

/// Writes the files into `build`, and the one that names them for the compiler. Returns the path of the latter.
///
/// # Errors
/// A file cannot be written, or Go does not say where its library is.
pub(super) fn write(
    project: &ProjectFolder,
    package: &Path,
    routes: &str,
    output: &Output,
) -> Result<PathBuf> {
    let build = project.path.join("build");
    let mut overlay = Overlay {
        folder: &build,
        replaced: BTreeMap::new(),
    };
    // The file that names the functions belongs to the author's package, but is not in the author's folder.
    overlay.replace(&package.join("supervisor_routes.go"), "routes.go", routes)?;
    let manifest = &project.project.manifest;
    let has_random = manifest.asks_for(Capability::Random);
    let has_clock = manifest.asks_for(Capability::Clock);
    if !has_random || !has_clock {
        let mut go = toolchain::python_program(&GO, "go", output)?;
        let root = toolchain::line(go.args(["env", "GOROOT"]).env("GOTOOLCHAIN", "local"))?;
        let root = Path::new(&root);
        if !has_random {
            overlay.replace_random(root)?;
        }
        if !has_clock {
            overlay.replace_waiting(root)?;
        }
    }
    let path = build.join("overlay.json");
    let named = json!({ "Replace": overlay.replaced });
    write_file(&path, named.to_string().as_bytes())?;
    Ok(path)
}

/// The files of one build.
struct Overlay<'a> {
    /// Where they are written.
    folder: &'a Path,
    /// Their paths, by those of the files in whose place the compiler reads them.
    replaced: BTreeMap<String, String>,
}

impl Overlay<'_> {
    fn replace(&mut self, file: &Path, name: &str, content: &str) -> Result<()> {
        let written = self.folder.join(name);
        write_file(&written, content.as_bytes())?;
        let (file, written) = (file.display().to_string(), written.display().to_string());
        self.replaced.insert(file, written);
        Ok(())
    }

    /// Another version of Go may read random bytes elsewhere. There, an error of Go's own ends the call.
    fn replace_random(&mut self, root: &Path) -> Result<()> {
        let random = root.join(RANDOM);
        if random.is_file() {
            self.replace(&random, "without_random.go", WITHOUT_RANDOM)?;
        }
        Ok(())
    }

    /// Another version of Go may wait elsewhere. There, an error of Go's own ends the call.
    fn replace_waiting(&mut self, root: &Path) -> Result<()> {
        let idle = root.join(IDLE);
        if !idle.is_file() {
            return Ok(());
        }
        let text = std::fs::read_to_string(&idle)
            .with_context(|| format!("cannot read `{}`", idle.display()))?;
        if text.contains(BEFORE_IDLE) {
            self.replace(&idle, "idle.go", &text.replacen(BEFORE_IDLE, "", 1))?;
            self.replace(&root.join(ADDED), "without_clock.go", WITHOUT_CLOCK)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the files that are replaced in a library whose file for waiting has this text.
    fn replaced(idle: Option<&str>) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = idle {
            write_file(&root.path().join(IDLE), text.as_bytes()).unwrap();
        }
        let mut overlay = Overlay {
            folder: folder.path(),
            replaced: BTreeMap::new(),
        };
        overlay.replace_waiting(root.path()).unwrap();
        overlay.replace_random(root.path()).unwrap();
        let below = |path: String| {
            let path = Path::new(&path).strip_prefix(root.path()).unwrap();
            path.display().to_string()
        };
        overlay.replaced.into_keys().map(below).collect()
    }

    #[test]
    fn only_a_library_with_the_known_function_gets_another_one() {
        let known = format!("package runtime\n\n{BEFORE_IDLE}\nfunc other() {{}}\n");
        assert_eq!(replaced(Some(&known)), [ADDED, IDLE]);
        assert!(replaced(Some("package runtime\n")).is_empty());
        assert!(replaced(None).is_empty());
    }
}
