//! Sizes of structs: if everything has access to everything, no part can be read or tested separately.
//!
//! The loop of the device once had 38 fields, and each of its eleven files used any of them. A struct that needs more
//! than [`MOST_FIELDS`] must be divided into parts with names, which own their methods.

use anyhow::{Result, bail};

use crate::text_files::TextFile;

/// The maximum number of fields of a struct.
const MOST_FIELDS: usize = 12;
/// The folders to which this applies.
const FOLDERS: [&str; 5] = [
    "cloud/core/src/",
    "cloud/dashboard/src/",
    "cloud/server/src/",
    "host/plugins/src/",
    "host/reconcile/src/",
];
/// Structs that list an owner's configuration, with a field for each setting: the file of each, and its name.
const CONFIGURATION: [(&str, &str); 4] = [
    ("cloud/core/src/configuration.rs", "Configuration"),
    ("cloud/core/src/configuration.rs", "Limits"),
    ("cloud/server/src/configuration_file.rs", "File"),
    ("host/plugins/src/policy/grants.rs", "Grants"),
];

/// Fails if a struct has more fields.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let is_counted = |file: &&TextFile| {
        let in_folder = FOLDERS.iter().any(|it| file.path.starts_with(it));
        in_folder && file.path.ends_with(".rs")
    };
    let problems: Vec<String> = files
        .iter()
        .filter(is_counted)
        .flat_map(|file| {
            let large = large_structs(&file.path, &file.text).into_iter();
            large.map(|(name, fields)| format!("{}: `{name}` has {fields}", file.path))
        })
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "structs have more than {MOST_FIELDS} fields:\n{}\ngroup them in structs of their own",
        problems.join("\n")
    )
}

/// Returns the structs of the file at `path`, as rustfmt formats it, that have too many fields, and their numbers of
/// fields.
fn large_structs<'a>(path: &str, text: &'a str) -> Vec<(&'a str, usize)> {
    let mut large = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = struct_name(line) else {
            continue;
        };
        let depth = line.len() - line.trim_start().len();
        let fields = lines
            .by_ref()
            .take_while(|line| line.get(depth..) != Some("}"))
            .filter(|line| line.len() - line.trim_start().len() == depth + 4)
            .filter(|line| is_field(line.trim_start()))
            .count();
        if fields > MOST_FIELDS && !CONFIGURATION.contains(&(path, name)) {
            large.push((name, fields));
        }
    }
    large
}

/// Returns the name of the struct with named fields that begins in a line.
fn struct_name(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("struct ")?;
    let is_declaration = before.trim().is_empty() || before.trim_start().starts_with("pub");
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    (is_declaration && rest.ends_with('{')).then(|| &rest[..end])
}

/// Returns whether a line of a struct, without its indentation, begins a field.
fn is_field(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(fields: usize) -> String {
        let field = |number| {
            format!(
                "    /// Its docs: x.\n    #[serde(default)]\n    pub(crate) a{number}: Vec<\n        u8,\n    >,\n"
            )
        };
        let fields: String = (0..fields).map(field).collect();
        format!("pub(crate) struct Loop<'a> {{\n{fields}}}\n\nstruct Other;\n")
    }

    #[test]
    fn a_struct_with_too_many_fields_is_named_with_their_number() {
        let path = "host/reconcile/src/task.rs";
        assert_eq!(large_structs(path, &source(MOST_FIELDS)), []);
        assert_eq!(
            large_structs(path, &source(MOST_FIELDS + 1)),
            [("Loop", 13)]
        );
    }

    #[test]
    fn a_struct_is_exempt_in_its_own_file_only() {
        let grants = source(20).replace("Loop", "Grants");
        let own_file = "host/plugins/src/policy/grants.rs";
        assert_eq!(large_structs(own_file, &grants), []);
        let other_file = "host/plugins/src/policy.rs";
        assert_eq!(large_structs(other_file, &grants), [("Grants", 20)]);
    }
}
