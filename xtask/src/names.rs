//! Names of types and locals: each must be a noun of its domain, and not a participle for what was done to it
//! (docs/CONTRIBUTING.md).
//!
//! A participle alone is meaningless to a reader who has not seen the value's origin: `Asked` and `Taken` were the
//! names of ten types each, for ten different things. [`check`] knows the ones that were most common; it cannot know
//! them all.

use anyhow::{Result, bail};

use crate::text_files::{TextFile, numbered};

/// Names that types must not have.
const PARTICIPLES: [&str; 24] = [
    "Asked", "Begun", "Counted", "Ended", "Expected", "Fetched", "Found", "Given", "Granted",
    "Heard", "Held", "Kept", "Known", "Missed", "Read", "Received", "Said", "Seen", "Sent",
    "Shown", "Taken", "Told", "Wanted", "Written",
];
/// Names that locals must not have: each was used for results, messages, targets and rows alike.
const LOCAL_PARTICIPLES: [&str; 6] = ["asked", "heard", "said", "taken", "told", "wanted"];
/// The keywords that declare a type.
const DECLARATIONS: [&str; 4] = ["enum ", "struct ", "trait ", "type "];

/// Fails if a type or a local of the repository has one of these names.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let problems: Vec<String> = files.iter().flat_map(problems).collect();
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "participles name types or locals:\n{}\ncall each by a noun that says what it is",
        problems.join("\n")
    )
}

/// Returns the types and locals of one file that need another name, as `path:line: sentence`.
fn problems(file: &TextFile) -> Vec<String> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let problems = numbered(&file.text).filter_map(|(line, text)| {
        let problem = match participle(text) {
            Some(name) => format!("a type is called `{name}`"),
            None => format!("a local is called `{}`", local_participle(text)?),
        };
        Some(format!("{}:{line}: {problem}", file.path))
    });
    problems.collect()
}

/// Returns the participle that names the local which a line of code declares.
fn local_participle(line: &str) -> Option<&'static str> {
    let declared = line.split("let ").skip(1).find_map(|rest| {
        let name = rest.strip_prefix("mut ").unwrap_or(rest);
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name = &name[..end.unwrap_or(name.len())];
        LOCAL_PARTICIPLES.into_iter().find(|it| *it == name)
    });
    declared.filter(|_| !line.trim_start().starts_with("//"))
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
    fn locals_that_participles_name_are_problems() {
        for (line, expected) in [
            ("    LET told = program.run();", Some("told")),
            ("LET mut wanted: Vec<u8> = Vec::new();", Some("wanted")),
            ("if LET Some(taken) = x && LET said = y {", Some("said")),
            ("LET target = wanted(x);", None),
            ("LET told_so = x;", None),
            ("// LET told = x;", None),
        ] {
            // The keyword is inserted here, so that these lines are not problems themselves.
            let line = line.replace("LET", "let");
            assert_eq!(local_participle(&line), expected, "{line}");
        }
    }

    #[test]
    fn a_problem_says_where_the_type_is() {
        let file = TextFile {
            path: "host/a.rs".to_owned(),
            text: "use b;\n\nstruct Told;\n".to_owned(),
        };
        assert_eq!(problems(&file), ["host/a.rs:3: a type is called `Told`"]);
    }
}
