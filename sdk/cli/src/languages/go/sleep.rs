//! Calls of `time.Sleep`, with which most authors begin. Without the capability `clock` they never return, so the build
//! refuses them; `without_clock.go` is for timers and for packages of others.

use anyhow::{Result, bail};
use plugin_manifest::Capability;

use crate::languages::syntax_tree::SyntaxTree;
use crate::project::ProjectFolder;

const IMPORTS: &str = "(import_spec name: (_)? @name path: (_) @path)";
const SELECTORS: &str = "
    (selector_expression operand: (identifier) @package field: (field_identifier) @function)";

/// Checks that the sources of a package do not call `time.Sleep`, unless the plugin asks for a clock.
///
/// # Errors
/// One does; the error names the first place, and what to call instead.
pub(super) fn check(project: &ProjectFolder, sources: &[SyntaxTree]) -> Result<()> {
    if project.project.manifest.asks_for(Capability::Clock) {
        return Ok(());
    }
    for source in sources {
        if let Some(line) = line_of_sleep(source) {
            let file = source.file.strip_prefix(&project.path);
            bail!(
                "`time.Sleep` is used in {}:{line}, but without the capability `clock` it never returns: use `timer.Sleep` of \
                 the package `supervisor/timer`, which needs none, or add `clock = \"why\"` to [capabilities] of plugin.toml",
                file.unwrap_or(&source.file).display()
            );
        }
    }
    Ok(())
}

/// Returns the line of the first call.
fn line_of_sleep(source: &SyntaxTree) -> Option<usize> {
    let imports = source.matches(IMPORTS, ["name", "path"]).into_iter();
    let mut names = imports.filter_map(|[name, path]| {
        let is_time = ["\"time\"", "`time`"].contains(&path?.text);
        is_time.then(|| name.map_or("time", |name| name.text))
    });
    let time = names.find(|name| *name != "_" && *name != ".")?;
    let mut selectors = source
        .matches(SELECTORS, ["package", "function"])
        .into_iter();
    selectors.find_map(|[package, function]| {
        let is_sleep = package?.text == time && function?.text == "Sleep";
        is_sleep.then_some(package?.line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::syntax_tree::Grammar;

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
            ("import _ \"time\"", "time.Sleep(1)", None),
            ("import `time`", "time.Sleep(1)", Some(6)),
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
            let written = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(written.path(), &text).unwrap();
            let source = SyntaxTree::read(written.path(), Grammar::Go);
            assert_eq!(line_of_sleep(&source), expected, "{text}");
        }
    }
}
