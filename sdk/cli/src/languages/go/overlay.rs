//! Files that the compiler reads in place of others: the author's package gets one that is not in the author's folder, and
//! Go's own library some that say which capability a plugin lacks, or that it has ended itself. Go itself would end the call
//! without a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use plugin_manifest::Capability;
use serde_json::json;

use super::GO;
use crate::files::write_file;
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::toolchain;

/// The file of Go's own library that reads random bytes, below its root.
const RANDOM: &str = "src/crypto/internal/sysrand/rand_wasip1.go";
/// Its replacement in a plugin that does not ask for random numbers.
const WITHOUT_RANDOM: &str = include_str!("without_random.go");

/// A change of a file of Go's own library.
struct Change {
    /// The file, below the library's root.
    file: &'static str,
    /// What it contains, and what replaces that.
    from: &'static str,
    to: &'static str,
    /// The name of the changed file in the folder of the build.
    name: &'static str,
    /// A file that is added, below the same root; its name in the folder of the build, and its content.
    added: &'static str,
    added_name: &'static str,
    content: &'static str,
}

/// What Go does before it waits for a timer, which is nothing, in a plugin that does not ask for a clock.
const WAITING: Change = Change {
    file: "src/runtime/lock_wasip1.go",
    from: "func beforeIdle(int64, int64) (*g, bool) {\n\treturn nil, false\n}\n",
    to: "",
    name: "idle.go",
    added: "src/runtime/before_idle_wasip1.go",
    added_name: "without_clock.go",
    content: include_str!("without_clock.go"),
};
/// What Go does before a program ends itself.
const EXIT: Change = Change {
    file: "src/os/proc.go",
    from: "\truntime_beforeExit(code)\n",
    to: "\tlogExit(code)\n",
    name: "exit.go",
    added: "src/os/log_exit_wasip1.go",
    added_name: "log_exit.go",
    content: include_str!("log_exit.go"),
};

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
    let mut go = toolchain::python_program(&GO, "go", output)?;
    let root = toolchain::line(go.args(["env", "GOROOT"]).env("GOTOOLCHAIN", "local"))?;
    let root = Path::new(&root);
    overlay.change(root, &EXIT)?;
    if !has_random {
        overlay.replace_random(root)?;
    }
    if !has_clock {
        overlay.change(root, &WAITING)?;
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

    /// Another version of Go may have other text there. Then the call ends as Go ends it.
    fn change(&mut self, root: &Path, change: &Change) -> Result<()> {
        let file = root.join(change.file);
        if !file.is_file() {
            return Ok(());
        }
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("cannot read `{}`", file.display()))?;
        if text.contains(change.from) {
            let changed = text.replacen(change.from, change.to, 1);
            self.replace(&file, change.name, &changed)?;
            self.replace(&root.join(change.added), change.added_name, change.content)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the files that are replaced in a library whose files for waiting and for the end have these texts.
    fn replaced(texts: [Option<&str>; 2]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (change, text) in [WAITING, EXIT].iter().zip(texts) {
            if let Some(text) = text {
                write_file(&root.path().join(change.file), text.as_bytes()).unwrap();
            }
        }
        let mut overlay = Overlay {
            folder: folder.path(),
            replaced: BTreeMap::new(),
        };
        overlay.change(root.path(), &WAITING).unwrap();
        overlay.change(root.path(), &EXIT).unwrap();
        overlay.replace_random(root.path()).unwrap();
        let below = |path: String| {
            let path = Path::new(&path).strip_prefix(root.path()).unwrap();
            path.display().to_string()
        };
        overlay.replaced.into_keys().map(below).collect()
    }

    #[test]
    fn only_a_library_with_the_known_text_gets_another_one() {
        let waiting = format!("package runtime\n\n{}\nfunc other() {{}}\n", WAITING.from);
        let exit = format!("package os\n\nfunc Exit(code int) {{\n{}}}\n", EXIT.from);
        assert_eq!(
            replaced([Some(&waiting), None]),
            [WAITING.added, WAITING.file]
        );
        assert_eq!(replaced([None, Some(&exit)]), [EXIT.added, EXIT.file]);
        assert!(replaced([Some("package runtime\n"), Some("package os\n")]).is_empty());
        assert!(replaced([None, None]).is_empty());
    }
}
