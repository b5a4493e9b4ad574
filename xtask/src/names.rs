//! Names of types, values, functions and modules: each must say what it names, and not be a participle for what was done
//! to it (docs/CONTRIBUTING.md).
//!
//! A participle alone is meaningless to a reader who has not seen the value's origin: `Asked` and `Taken` were the
//! names of ten types each, for ten different things. [`check`] knows the ones that were most common; it cannot know
//! them all.

use anyhow::{Result, bail};

use crate::rust_code::code;
use crate::text_files::{TextFile, numbered};

/// Names that types must not have.
const PARTICIPLES: [&str; 24] = [
    "Asked", "Begun", "Counted", "Ended", "Expected", "Fetched", "Found", "Given", "Granted",
    "Heard", "Held", "Kept", "Known", "Missed", "Read", "Received", "Said", "Seen", "Sent",
    "Shown", "Taken", "Told", "Wanted", "Written",
];
/// Identifiers that must not occur: each named results, messages, targets and rows alike.
const IDENTIFIERS: [&str; 6] = ["asked", "heard", "said", "taken", "told", "wanted"];
/// The keywords that declare a type.
const DECLARATIONS: [&str; 4] = ["enum ", "struct ", "trait ", "type "];

/// Fails if a type or another identifier of the repository has one of these names.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let problems: Vec<String> = files.iter().flat_map(problems).collect();
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "participles are names:\n{}\ncall each by a noun that says what it is",
        problems.join("\n")
    )
}

/// Returns the names of one file that need to be others, as `path:line: sentence`.
fn problems(file: &TextFile) -> Vec<String> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let code = code(&file.text);
    let problems = numbered(&code).filter_map(|(line, text)| {
        let problem = match participle(text) {
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

/// Returns the participle that names the type which a line of code declares.
fn participle(line: &str) -> Option<&'static str> {
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        rest = public.trim_start();
        if rest.starts_with('(') {
            rest = rest.split_once(')')?.1.trim_start();
        }
    }
    let declared = DECLARATIONS
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))?;
    let end = declared.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = &declared[..end.unwrap_or(declared.len())];
    PARTICIPLES
        .into_iter()
        .find(|participle| *participle == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_participles_name_are_problems() {
        for (line, expected) in [
            ("struct Asked {", Some("Asked")),
            ("    pub(crate) struct Told(u8);", Some("Told")),
            ("pub(in crate::a) enum Wanted {", Some("Wanted")),
            ("pub trait Read {", Some("Read")),
            ("type Kept<'a> = &'a str;", Some("Kept")),
            ("struct AskedQuestion {", None),
            ("    Asked,", None),
            ("// struct Asked", None),
            ("let file: Taken = x;", None),
        ] {
            assert_eq!(participle(line), expected, "{line}");
        }
    }

    #[test]
    fn identifiers_that_are_participles_are_problems() {
        for (line, expected) in [
            ("    let told = program.run();", Some("told")),
            ("let mut wanted: Vec<u8> = Vec::new();", Some("wanted")),
            ("if let Some(taken) = x {", Some("taken")),
            ("let (a, said) = x;", Some("said")),
            ("for (heard, expected) in table {", Some("heard")),
            ("fn run(asked: &str) {", Some("asked")),
            ("fn run<'a>(asked: &'a str) {", Some("asked")),
            ("|told| told.len()", Some("told")),
            ("    pub(crate) taken: usize,", Some("taken")),
            ("Step { part, wanted } => part,", Some("wanted")),
            ("async fn told(x: u8) {", Some("told")),
            ("registry.asked().len()", Some("asked")),
            ("mod told;", Some("told")),
            ("let r#told = x;", Some("told")),
            ("let told_so = until_told(x);", None),
            ("let x: Option<Wanted> = TOLD;", None),
        ] {
            assert_eq!(identifier(&code(line)), expected, "{line}");
        }
    }

    #[test]
    fn a_problem_says_where_the_name_is() {
        let file = |path: &str, text: &str| TextFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let text = "use b;\n\nstruct Told;\n";
        assert_eq!(
            problems(&file("host/a.rs", text)),
            ["host/a.rs:3: a type is called `Told`"]
        );
        let text = [
            "/* told",
            "told */",
            "let a = \"told",
            "told\";",
            "let b = r#\"",
            "struct Told;",
            "\"#;",
            "f(told);",
        ]
        .join("\n");
        assert_eq!(
            problems(&file("host/a.rs", &text)),
            ["host/a.rs:8: an identifier is `told`"]
        );
        assert!(problems(&file("docs/a.md", &text)).is_empty());
    }
}
