//! Rust: cargo does everything.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use plugin_test_host::{BuiltPlugin, try_build_plugin_without_variables};

use super::source_functions::{self, SourceFunctions};
use super::syntax_tree::{Grammar, SyntaxTree};
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::toolchain;

/// The target of components.
const TARGET: &str = "wasm32-wasip2";
/// The main source file, unless `Cargo.toml` names another one.
const SOURCE: &str = "src/lib.rs";
/// The functions of the module itself.
const FUNCTIONS: &str = "(source_file (function_item name: (identifier) @found))";
/// Uses of the module itself, of which those with a `*` make names of another module names here.
const USES: &str = "(source_file (use_declaration) @found)";
/// The names of another file become names here, also if a macro includes it.
const INCLUDES: &str = r#"((identifier) @found (#eq? @found "include"))"#;

/// Macros whose content, or whose definition in another file, may define functions. `plugin!` defines none.
const MACROS: &str = r#"
    ((source_file [
        (macro_invocation macro: (_) @found)
        (expression_statement (macro_invocation macro: (_) @found))
    ]) (#not-eq? @found "plugin"))"#;

/// Builds the crate in the project's folder.
///
/// # Errors
/// The source lacks a function, or cargo or the target is missing, or cargo failed; it has printed the reason.
pub(crate) fn build(project: &ProjectFolder, output: &Output) -> Result<BuiltPlugin> {
    ensure!(
        project.path.join("Cargo.toml").is_file(),
        "there is no `Cargo.toml` beside plugin.toml"
    );
    let source = project.path.join(SOURCE);
    if source.is_file() {
        source_functions::check(project, &source, &functions(&source))?;
    }
    add_target(output)?;
    try_build_plugin_without_variables(&project.path, &toolchain::SECRETS).map_err(cause_for_author)
}

/// Returns the error of a build as an author needs it: what cargo has printed says more than its exit status.
fn cause_for_author(error: anyhow::Error) -> anyhow::Error {
    if error.to_string().starts_with("cargo failed (") {
        return anyhow::anyhow!(toolchain::FAILED);
    }
    error
}

/// Returns the functions of the crate's main module, `source`. A macro may define a function and another module may
/// contain it, so any word of the source may be the name of one.
fn functions(source: &Path) -> SourceFunctions {
    let mut functions = SourceFunctions::default();
    let source = SyntaxTree::read(source, Grammar::Rust);
    for name in source.find(FUNCTIONS) {
        functions.add(name.text);
    }
    functions.add_words(&source);
    functions.has_others = source.find(USES).any(|used| used.text.contains('*'))
        || source.find(INCLUDES).next().is_some()
        || source.find(MACROS).next().is_some()
        || source.has_errors();
    functions
}

/// Has rustup install the target if it is missing. Without rustup, the compiler itself reports what is missing.
fn add_target(output: &Output) -> Result<()> {
    let Ok(installed) = toolchain::command("rustup")
        .args(["target", "list", "--installed"])
        .output()
    else {
        return Ok(());
    };
    let installed = String::from_utf8_lossy(&installed.stdout);
    if installed.lines().any(|target| target == TARGET) {
        return Ok(());
    }
    output.note(&format!("installing the Rust target {TARGET}"));
    let status = toolchain::command("rustup")
        .args(["target", "add", TARGET])
        .status()
        .context("failed to start rustup")?;
    ensure!(status.success(), "`rustup target add {TARGET}` failed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_of_a_crate_are_listed_and_any_word_may_be_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write(
            "//! A plugin with greet.\nuse own::reset;\n\nplugin! {}\n\nasync fn hello(Path(name): Path<String>) {}\n\
             pub(crate) fn helper() {}\nmod tests {\n    use super::*;\n    fn inner() {}\n}\n",
        );
        let found = functions(file.path());
        assert_eq!(found.listed, ["hello", "helper"]);
        for (name, is_there) in [
            ("hello", true),
            ("reset", true),
            ("inner", true),
            ("greet", false),
        ] {
            assert_eq!(found.names.contains(name), is_there, "{name}");
        }
        assert!(!found.has_others);
        write("const USAGE: &str = \"\n    GET /v3/*\n\";\n\nasync fn hello() {}\n");
        assert_eq!(functions(file.path()).listed, ["hello"]);
        for text in [
            "use own::*;\n",
            "pub use own::{reset, inner::{self, led::*}};\n",
            "use {own::*, other};\n",
            "include!(\"routes.rs\");\n",
            "std::include!(\"routes.rs\");\n",
            "#[macro_use]\nmod own;\nhandlers!();\n",
            "own::handlers! { hello }\n",
            "own! { include!(\"routes.rs\"); }\n",
            // What the compiler says about a mistake is more useful.
            "fn hello( {\n",
        ] {
            write(text);
            assert!(functions(file.path()).has_others, "{text}");
        }
    }

    #[test]
    fn the_exit_status_of_cargo_is_not_shown() {
        let shown = |error| cause_for_author(anyhow::Error::msg(error)).to_string();
        assert_eq!(
            shown("cargo failed (exit status: 101)"),
            "build failed: the compiler's messages are above"
        );
        assert_eq!(shown("cannot run cargo"), "cannot run cargo");
    }
}
