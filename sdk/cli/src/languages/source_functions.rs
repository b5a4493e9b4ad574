//! The functions that the sources of a plugin define. They are compared with those that `plugin.toml` names before the
//! tools of a language run, because each of these reports a missing function in its own words, at a place in a file that
//! the author has not written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use plugin_manifest::{Action, Language, Project, ProjectFile, Spanned, line_and_column};

use super::is_identifier;
use super::syntax_tree::SyntaxTree;
use super::typed_actions::{TYPED_ACTIONS, provider_kind};
use crate::project::ProjectFolder;

/// The most functions that an error lists.
const LISTED: usize = 20;

/// The functions that a source defines.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SourceFunctions {
    /// All of them, and other names that may stand for functions.
    pub(super) names: BTreeSet<String>,
    /// Those that an error lists.
    pub(super) listed: Vec<String>,
    /// Whether the source has names that only the tools of the language can find.
    pub(super) has_others: bool,
    /// Where they are defined, as far as the language's build needs it.
    pub(super) places: BTreeMap<String, SourcePlace>,
}

/// A line of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourcePlace {
    pub(super) file: PathBuf,
    /// Counted from 1.
    pub(super) line: usize,
}

impl SourceFunctions {
    /// Adds all words of a source, which may stand for functions.
    pub(super) fn add_words(&mut self, source: &SyntaxTree) {
        self.names
            .extend(source.words().map(|(_, word)| word.to_owned()));
    }

    /// Adds a function.
    pub(super) fn add(&mut self, name: &str) {
        self.names.insert(name.to_owned());
        if !self.listed.iter().any(|listed| listed == name) {
            self.listed.push(name.to_owned());
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.has_others || self.names.contains(name)
    }

    fn list(&self) -> String {
        if self.listed.is_empty() {
            return "it exports no function".to_owned();
        }
        let names: Vec<String> = self.listed.iter().take(LISTED).cloned().collect();
        let more = match self.listed.len().saturating_sub(LISTED) {
            0 => String::new(),
            count => format!(" and {count} others"),
        };
        format!("it exports: {}{more}", names.join(", "))
    }
}

/// Checks that `source` defines the functions that `plugin.toml` names.
///
/// # Errors
/// It does not; the error names the first one, its line in `plugin.toml`, and the functions that exist.
pub(super) fn check(
    project: &ProjectFolder,
    source: &Path,
    functions: &SourceFunctions,
) -> Result<()> {
    let function = "function";
    let routes = project.routes();
    let routes = routes.map(|(route, handler)| (format!("the route {route}"), function, handler));
    let watcher = project.provider(Action::Events);
    let watcher = watcher.map(|watcher| ("`events` in [provides]".to_owned(), function, watcher));
    let actions = project.actions();
    let actions = actions.map(|(name, action)| (format!("the action `{name}`"), function, action));
    let typed = TYPED_ACTIONS.into_iter().filter_map(|action| {
        let kind = checked_kind(project.language(), action)?;
        let provider = project.provider(action)?;
        Some((format!("`{action}` in [provides]"), kind, provider))
    });
    // What cannot be a name at all is refused with another message; in Rust it may be a path.
    let mut named = routes
        .chain(watcher)
        .chain(actions)
        .chain(typed)
        .filter(|(_, _, function)| is_identifier(function, project.language()));
    let missing = named.find(|(_, _, function)| !functions.contains(function));
    let Some((what, kind, function)) = missing else {
        return Ok(());
    };
    let source = source.strip_prefix(&project.path).unwrap_or(source);
    bail!(
        "{}: {what} names the {kind} \"{function}\", which {} does not export: add {} to it, or name another; {}",
        place(project, function),
        source.display(),
        definition(project.language(), kind, function),
        functions.list()
    );
}

/// Returns how the definition of a function or provider begins in a language.
fn definition(language: Language, kind: &str, name: &str) -> String {
    let beginning = match (language, kind) {
        (Language::Python, "function") => format!("async def {name}("),
        (Language::JavaScript | Language::TypeScript, "function") => {
            format!("export async function {name}(")
        }
        (Language::Rust, "function") => format!("async fn {name}("),
        (Language::Go, "function") => format!("func {name}("),
        (Language::JavaScript | Language::TypeScript, "constant") => {
            format!("export const {name} =")
        }
        (Language::Python, "class") => format!("class {name}"),
        (Language::Go, "type") => format!("type {name}"),
        // What comes before the name depends on the route or action.
        _ => return format!("the {kind}"),
    };
    format!("`{beginning}`")
}

/// Returns what provides an action in a language; `None` if the SDK or the compiler reports a missing one.
fn checked_kind(language: Language, action: Action) -> Option<&'static str> {
    let is_checked = match language {
        Language::C | Language::Go => true,
        Language::JavaScript | Language::TypeScript | Language::Python => {
            action == Action::Identify
        }
        Language::Rust | Language::Component => false,
    };
    is_checked.then(|| provider_kind(language, action))
}

/// Returns the place in `plugin.toml` where a function is named, with its line if the file can be read again.
fn place(project: &ProjectFolder, function: &str) -> String {
    let file = Project::FILE;
    let text = std::fs::read_to_string(project.path.join(file)).unwrap_or_default();
    match ProjectFile::parse(&text) {
        Ok(written) => match offset(&written, function) {
            Some(offset) => format!("{file}:{}", line_and_column(&text, offset).0),
            None => file.to_owned(),
        },
        Err(_) => file.to_owned(),
    }
}

fn offset(written: &ProjectFile, function: &str) -> Option<usize> {
    let others = written.provides.values().chain(written.actions.values());
    let mut functions = written.routes.values().chain(others);
    let found = functions.find(|named: &&Spanned<String>| named.get_ref() == function)?;
    Some(found.span().start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_functions_is_bounded() {
        let mut functions = SourceFunctions::default();
        assert_eq!(functions.list(), "it exports no function");
        for number in 0..1_000 {
            functions.add(&format!("f{number}"));
        }
        let list = functions.list();
        assert!(list.starts_with("it exports: f0, f1, "), "{list}");
        assert!(list.ends_with(", f19 and 980 others"), "{list}");
        assert!(!functions.contains("g") && functions.contains("f999"));
        functions.has_others = true;
        assert!(functions.contains("g"));
    }
}
