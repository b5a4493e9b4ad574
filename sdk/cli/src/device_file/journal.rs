//! The table `[journal]` of a device file: a program that replaces the journal command.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    /// The lines that every reader receives, whatever it selects.
    lines: Vec<String>,
}

impl Journal {
    /// Writes a program that prints the lines and replaces the journal command.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn program(&self, folder: &Path) -> Result<PathBuf> {
        let program = folder.join("journal");
        // In a file of their own: the shell must not read them, since a device file may come from somebody else.
        let lines: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(program.with_extension("lines"), lines)
            .and_then(|()| std::fs::write(&program, "#!/bin/sh\nexec cat \"$0.lines\"\n"))
            .and_then(|()| {
                std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            })
            .with_context(|| format!("cannot write `{}`", program.display()))?;
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_lines_are_printed_and_nothing_in_them_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let lines = [
            "END OF THE JOURNAL",
            "EOF",
            "touch run",
            "$(touch run) `touch run`",
            "'",
            "",
        ];
        let journal = Journal {
            lines: lines.map(str::to_owned).to_vec(),
        };
        let program = journal.program(folder.path()).unwrap();
        let printed = Command::new(program)
            .args(["--follow", "--unit", "x"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(printed.status.success());
        let expected = lines.map(|line| format!("{line}\n")).concat();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);
        assert!(!folder.path().join("run").exists());
    }
}
