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
        let mut text = "#!/bin/sh\ncat <<'END OF THE JOURNAL'\n".to_owned();
        for line in &self.lines {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("END OF THE JOURNAL\n");
        std::fs::write(&program, text)
            .and_then(|()| {
                std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            })
            .with_context(|| format!("cannot write `{}`", program.display()))?;
        Ok(program)
    }
}
