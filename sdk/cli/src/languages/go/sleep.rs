//! Calls of `time.Sleep`, with which most authors begin. Without the capability `clock` they never return, so the build
//! refuses them; `without_clock.go` is for timers and for packages of others.

use std::path::Path;

use anyhow::{Result, bail};
use plugin_manifest::Capability;

use super::{DECLARATIONS, sources};
use crate::languages::source_code::{Syntax, bare_code_of, code_of};
use crate::languages::source_functions::first_word;
use crate::project::ProjectFolder;

/// Checks that the files of a package do not call `time.Sleep`, unless the plugin asks for a clock.
///
/// # Errors
/// One does; the error names the first place, and what to call instead.
pub(super) fn check(project: &ProjectFolder, package: &Path) -> Result<()> {
    if project.project.manifest.asks_for(Capability::Clock) {
        return Ok(());
    }
    for file in sources(package)? {
        let code = code_of(&file, Syntax::Go);
        if let Some(line) = line_of_sleep(&code, &bare_code_of(&file, Syntax::Go)) {
            let file = file.strip_prefix(&project.path).unwrap_or(&file);
            bail!(
                "`time.Sleep` is used in {}:{line}, but without the capability `clock` it never returns: use `timer.Sleep` of \
                 the package `supervisor/timer`, which needs none, or add `clock = \"why\"` to [capabilities] of plugin.toml",
                file.display()
            );
        }
    }
    Ok(())
}

/// Returns the line of the first call, counted from 1, of a file whose code is given with and without its texts.
fn line_of_sleep(code: &str, bare_code: &str) -> Option<usize> {
    let sleep = format!("{}.Sleep", name_of_time(code)?);
    let mut lines = bare_code.lines();
    let is_part = |char: char| char.is_alphanumeric() || char == '_' || char == '.';
    let calls = |line: &str| {
        line.match_indices(&sleep).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + sleep.len()..].chars().next();
            !before.is_some_and(is_part) && !after.is_some_and(is_part)
        })
    };
    lines.position(calls).map(|index| index + 1)
}

/// Returns the name under which a file imports the package `time`.
fn name_of_time(code: &str) -> Option<&str> {
    let lines = code.lines();
    // The imports are before everything else.
    let mut imports = lines.take_while(|line| {
        let mut keywords = DECLARATIONS.iter();
        !keywords.any(|keyword| line.starts_with(keyword))
    });
    imports.find_map(|line| {
        let name = line.trim().strip_suffix("\"time\"")?;
        let name = name.trim_start_matches("import").trim();
        Some(first_word(name.trim_start_matches('(').trim()).unwrap_or("time"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::source_code::{without_comments, without_texts};

    #[test]
    fn a_call_is_found_under_the_name_of_the_import() {
        let file = |import: &str, body: &str| {
            format!("package main\n\n{import}\n\nfunc hello() {{\n\t{body}\n}}\n")
        };
        for (import, body, expected) in [
            ("import \"time\"", "time.Sleep(time.Second)", Some(6)),
            ("import clock \"time\"", "clock.Sleep(1)", Some(6)),
            (
                "import (\n\t\"fmt\"\n\t\"time\"\n)",
                "wait := time.Sleep",
                Some(9),
            ),
            (
                "import (\n\tclock \"time\"\n)",
                "defer clock.Sleep(1)",
                Some(8),
            ),
            ("import clock \"time\"", "time.Sleep(1)", None),
            ("import \"time\"", "// time.Sleep(1)", None),
            ("import \"time\"", "log.Info(\"time.Sleep(1)\")", None),
            ("import \"time\"", "log.Info(`\n\ttime.Sleep(1)`)", None),
            (
                "import \"time\"",
                "log.Info(`C:\\`)\n\ttime.Sleep(1)",
                Some(7),
            ),
            ("import \"time\"", "time.SleepUntil(1)", None),
            ("import \"time\"", "own.time.Sleep(1)", None),
            ("import \"time\"", "sometime.Sleep(1)", None),
            ("import \"supervisor/timer\"", "timer.Sleep(1)", None),
        ] {
            let text = file(import, body);
            let code = without_comments(&text, Syntax::Go);
            assert_eq!(
                line_of_sleep(&code, &without_texts(&text, Syntax::Go)),
                expected,
                "{text}"
            );
        }
    }
}
