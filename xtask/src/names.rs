//! Names of types, values, functions, modules and files: each must say what it names, and not be a participle for what was
//! done to it, a pronoun, or `mod.rs` (docs/CONTRIBUTING.md).
//!
//! A participle alone is meaningless to a reader who has not seen the value's origin: `Asked` and `Taken` were the
//! names of ten types each, for ten different things. [`check`] finds regular ones by their endings, and knows those
//! irregular ones that were most common; it cannot know them all. It also finds types of one crate with the same name.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::rust_code::code;
use crate::text_files::{TextFile, numbered};

/// Irregular participles and past tenses, which types must not be called.
const PARTICIPLES: [&str; 41] = [
    "Begun",
    "Broken",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Come",
    "Done",
    "Drawn",
    "Driven",
    "Fallen",
    "Forgotten",
    "Found",
    "Given",
    "Gone",
    "Grown",
    "Heard",
    "Held",
    "Hidden",
    "Kept",
    "Known",
    "Left",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Paid",
    "Ran",
    "Read",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Shut",
    "Sought",
    "Spent",
    "Stolen",
    "Taken",
    "Told",
    "Withdrawn",
    "Written",
];
/// Pronouns and words like them, which types must not be called: what they refer to is only in the author's head.
const PRONOUNS: [&str; 36] = [
    "All",
    "Another",
    "Any",
    "Anybody",
    "Anyone",
    "Anything",
    "Both",
    "Each",
    "Either",
    "Everybody",
    "Everyone",
    "Everything",
    "Few",
    "It",
    "Many",
    "Neither",
    "Nobody",
    "None",
    "Nothing",
    "One",
    "Ones",
    "Other",
    "Others",
    "Some",
    "Somebody",
    "Someone",
    "Something",
    "Such",
    "That",
    "These",
    "This",
    "Those",
    "What",
    "Which",
    "Who",
    "Whom",
];
/// The endings of regular participles.
const ENDINGS: [&str; 2] = ["ed", "ing"];
/// Nouns that end like participles.
const NOUNS: [&str; 11] = [
    "Binding", "Branding", "Framing", "Greeting", "Keyring", "Led", "Listing", "Need", "Reading",
    "Ring", "Setting",
];
/// Identifiers that must not occur: each named results, messages, targets and rows alike.
const IDENTIFIERS: [&str; 6] = ["asked", "heard", "said", "taken", "told", "wanted"];
/// The keywords that declare a type.
const DECLARATIONS: [&str; 4] = ["enum ", "struct ", "trait ", "type "];
/// The sources of the crate whose types may have the same names: plugin authors use them by the paths of their modules.
const SDK: &str = "sdk/src/";
/// Files that may be called `mod.rs`, and why they cannot have the name of their module.
const MOD_FILES: [(&str, &str); 1] = [(
    "host/engine/tests/suite/mod.rs",
    "a module of two test binaries: cargo would build `tests/suite.rs` as a third one",
)];
/// Types that are declared twice, for different targets: the sources of the crate, and the name.
const ALTERNATIVES: [(&str, &str); 1] = [("examples/hello-server/src/", "Clients")];

/// Fails if a type or another identifier of the repository has one of these names, if two types of a crate have the same
/// name, or if a file is called `mod.rs`.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let names: Vec<String> = files.iter().flat_map(problems).collect();
    if !names.is_empty() {
        bail!(
            "participles or pronouns are names:\n{}\ncall each by a noun that says what it is",
            names.join("\n")
        );
    }
    let paths = files.iter().map(|file| file.path.as_str());
    let mod_files: Vec<&str> = paths.filter(|path| is_forbidden_mod_file(path)).collect();
    if !mod_files.is_empty() {
        bail!(
            "files are called `mod.rs`:\n{}\ncall each after its module, and put it next to the module's folder; if it \
             cannot have that name, add it to `MOD_FILES` in `xtask/src/names.rs` with the reason",
            mod_files.join("\n")
        );
    }
    let duplicates = duplicates(files);
    if !duplicates.is_empty() {
        bail!(
            "types of a crate have the same name:\n{}\ngive each a name of its own",
            duplicates.join("\n")
        );
    }
    Ok(())
}

/// Returns the names of one file that need to be others, as `path:line: sentence`.
fn problems(file: &TextFile) -> Vec<String> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let code = code(&file.text);
    let problems = numbered(&code).filter_map(|(line, text)| {
        let problem = match meaningless_type_name(text) {
            Some(name) => format!("a type is called `{name}`"),
            None => format!("an identifier is `{}`", identifier(text)?),
        };
        Some(format!("{}:{line}: {problem}", file.path))
    });
    problems.collect()
}

/// Returns the first identifier of a line of code that must not occur, whatever it names.
fn identifier(line: &str) -> Option<&'static str> {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.find_map(|word| IDENTIFIERS.into_iter().find(|it| *it == word))
}

/// Returns whether a file is called `mod.rs` without a reason: in a list of open files, one cannot be distinguished from
/// another.
fn is_forbidden_mod_file(path: &str) -> bool {
    let is_mod_file = path.rsplit('/').next() == Some("mod.rs");
    is_mod_file && MOD_FILES.iter().all(|(exception, _)| *exception != path)
}

/// Returns the participle or pronoun that names the type which a line of code declares.
///
/// A regular participle or a pronoun may name an associated type, which is read together with its trait.
fn meaningless_type_name(line: &str) -> Option<&str> {
    let TypeDeclaration { keyword, name, .. } = TypeDeclaration::parse(line)?;
    let is_associated = keyword == "type " && line.starts_with(' ');
    let is_one_word = name.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let is_regular =
        is_one_word && ENDINGS.into_iter().any(|it| name.ends_with(it)) && !NOUNS.contains(&name);
    let is_bad_alone = is_regular || PRONOUNS.contains(&name);
    (PARTICIPLES.contains(&name) || (is_bad_alone && !is_associated)).then_some(name)
}

/// Returns a sentence for each name that several types of one crate have, without private types and tests.
///
/// A type in an inline module is indented, and not counted.
fn duplicates(files: &[TextFile]) -> Vec<String> {
    let tests: Vec<String> = files.iter().flat_map(test_modules).collect();
    let mut places: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    for file in files {
        let Some(sources) = find_sources(&file.path).filter(|sources| *sources != SDK) else {
            continue;
        };
        if tests.iter().any(|test| is_of_module(&file.path, test)) {
            continue;
        }
        for (line, text) in numbered(&code(&file.text)) {
            let declaration = TypeDeclaration::parse(text).filter(|_| text.starts_with("pub"));
            if let Some(declaration) = declaration
                && declaration.is_for_whole_crate()
                && !ALTERNATIVES.contains(&(sources, declaration.name))
            {
                let name = declaration.name.to_owned();
                let place = format!("{}:{line}", file.path);
                places.entry((sources, name)).or_default().push(place);
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    let sentences = places.into_iter().map(|((_, name), places)| {
        let places = places.join(" and ");
        format!("{places}: a type is called `{name}`")
    });
    sentences.collect()
}

/// Returns the folder of a crate's sources, with a slash at the end, for a Rust file in it.
fn find_sources(path: &str) -> Option<&str> {
    let at = path.find("/src/")?;
    path.ends_with(".rs").then(|| &path[..at + "/src/".len()])
}

/// Returns the modules in files of their own that one file declares for tests, each as the path of its folder.
fn test_modules(file: &TextFile) -> Vec<String> {
    let Some(path) = file.path.strip_suffix(".rs") else {
        return Vec::new();
    };
    let is_root = |name: &str| matches!(name, "lib" | "main" | "mod");
    let folder = match path.rsplit_once('/') {
        Some((folder, name)) if is_root(name) => folder,
        _ => path,
    };
    let code = code(&file.text);
    let lines = code.lines().zip(code.lines().skip(1));
    let modules = lines.filter_map(|(attribute, line)| {
        let mut words = attribute.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_for_tests = attribute.starts_with("#[cfg(") && words.any(|word| word == "test");
        let (_, declaration) = split_visibility(line);
        let name = declaration.strip_prefix("mod ")?.strip_suffix(';')?;
        is_for_tests.then(|| format!("{folder}/{name}"))
    });
    modules.collect()
}

/// Returns whether a file is a module, given by the path of its folder, or a part of it.
fn is_of_module(path: &str, module: &str) -> bool {
    let rest = path.strip_prefix(module);
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The beginning of a declaration of a type.
struct TypeDeclaration<'a> {
    /// Such as `pub(crate)`; empty for a private type.
    visibility: &'a str,
    /// One of [`DECLARATIONS`].
    keyword: &'static str,
    name: &'a str,
}

impl<'a> TypeDeclaration<'a> {
    /// Reads the declaration with which a line of code begins, if it does.
    fn parse(line: &'a str) -> Option<Self> {
        let (visibility, rest) = split_visibility(line.trim_start());
        let keyword = DECLARATIONS
            .into_iter()
            .find(|keyword| rest.starts_with(*keyword))?;
        let declared = &rest[keyword.len()..];
        let end = declared.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        Some(TypeDeclaration {
            visibility,
            keyword,
            name: &declared[..end.unwrap_or(declared.len())],
        })
    }

    /// Returns whether all of its crate may use the type.
    fn is_for_whole_crate(&self) -> bool {
        matches!(self.visibility, "pub" | "pub(crate)")
    }
}

/// Splits a declaration into its visibility, which may be empty, and the rest.
fn split_visibility(declaration: &str) -> (&str, &str) {
    let Some(rest) = declaration.strip_prefix("pub") else {
        return ("", declaration);
    };
    let in_parentheses = match rest.find(')') {
        Some(end) if rest.starts_with('(') => end + 1,
        _ => 0,
    };
    let (visibility, rest) = declaration.split_at("pub".len() + in_parentheses);
    (visibility, rest.trim_start())
}

#[cfg(test)]
mod tests;
