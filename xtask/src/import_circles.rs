//! Imports between the files of a crate: files that import each other in a circle can only be read, tested and moved
//! together (docs/CONTRIBUTING.md).
//!
//! [`check`] reads all paths in the code of each crate, those of `use` declarations and others, without tests. A `mod`
//! declaration alone is no import. A file (`x.rs`) and its parts (`x/`) may import each other, since they have one
//! subject; but the parts may not do so among themselves, nor with other files in between. All files are parts of the
//! root (`lib.rs`, `main.rs`). What a file exports again counts as imported from the file that it comes from; `*` does not
//! count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Result, bail};

use crate::rust_code;
use crate::text_files::TextFile;

/// The roots of crates.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];
/// The beginning of a declaration of tests. Tests in the same file are its end.
const TESTS: &str = "#[cfg(test)]\nmod ";

/// Fails if files of a crate import each other in a circle.
pub(crate) fn check(files: &[TextFile]) -> Result<()> {
    let mut problems = Vec::new();
    for folder in folders(files) {
        for problem in Crate::new(folder, files).problems() {
            problems.push(format!("{folder}: {problem}"));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!(
        "files import each other in circles:\n{}\nmove what two files need into one that imports neither",
        problems.join("\n")
    )
}

/// Returns the folders of the sources of all crates.
fn folders(files: &[TextFile]) -> BTreeSet<&str> {
    let folders = files.iter().filter_map(|TextFile { path, .. }| {
        let mut roots = ROOTS.iter();
        roots.find_map(|root| path.strip_suffix(root))
    });
    folders.filter(|folder| folder.ends_with("/src/")).collect()
}

/// The most files through which a name is followed that each exports again.
const MOST_EXPORTS: usize = 8;

/// The paths in the files of a crate, by the files' modules, such as `a::b`; the root's is empty.
struct Crate(BTreeMap<String, BTreeSet<CodePath>>);

/// A path of several names in a code.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CodePath {
    path: String,
    /// The name that it has in the file, if it is in a `use` declaration.
    import: Option<String>,
}

/// The imports of modules.
type ImportGraph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

impl Crate {
    fn new(folder: &str, files: &[TextFile]) -> Self {
        let mut modules: BTreeMap<String, BTreeSet<CodePath>> = BTreeMap::new();
        let mut tests = Vec::new();
        for TextFile { path, text } in files {
            let path = path.strip_prefix(folder);
            let Some(path) = path.and_then(|path| path.strip_suffix(".rs")) else {
                continue;
            };
            let module = match path {
                "lib" | "main" => String::new(),
                path => path.replace('/', "::"),
            };
            let names = text.split(TESTS).skip(1);
            let names = names.filter_map(|rest| rest.split_once(';'));
            tests.extend(names.map(|(name, _)| join(&module, name)));
            let code = text.split(&format!("{TESTS}tests {{")).next();
            // A crate may have both roots.
            let paths_of_module = modules.entry(module).or_default();
            paths_of_module.extend(paths(&rust_code::code(code.unwrap_or_default())));
        }
        modules.retain(|module, _| !tests.iter().any(|test| is_in(module, test)));
        Crate(modules)
    }

    /// Returns a sentence for each circle.
    fn problems(&self) -> BTreeSet<String> {
        let graph = self.graph();
        let mut without_parts = graph.clone();
        for (module, imports) in &mut without_parts {
            imports.retain(|import| !is_in(import, module));
        }
        let mut problems = BTreeSet::new();
        // In the second graph, circles among parts are within the larger one of their file.
        for graph in [without_parts, graph] {
            for circle in circles(&graph) {
                let mut files = circle.iter();
                if !files.any(|file| circle.iter().all(|module| is_in(module, file))) {
                    problems.insert(describe(&circle, &graph));
                }
            }
        }
        problems
    }

    fn graph(&self) -> ImportGraph<'_> {
        let files = self.0.iter().filter(|(module, _)| !module.is_empty());
        let modules = files.map(|(module, paths)| {
            let imports = paths
                .iter()
                .filter_map(|path| self.import(module, &path.path));
            let others = imports.filter(|import| !import.is_empty() && import != module);
            (module.as_str(), others.collect())
        });
        modules.collect()
    }

    /// Returns the module of the file that declares what a path in a module leads to.
    fn import(&self, module: &str, path: &str) -> Option<&str> {
        let absolute = self.absolute(module, path);
        let mut path = absolute.or_else(|| self.through_import(module, path))?;
        for _ in 0..MOST_EXPORTS {
            let file = self.file_of(&path)?;
            let rest = path[file.len()..].trim_start_matches("::");
            match self.through_import(file, rest) {
                Some(next) if next != path => path = next,
                _ => return Some(file),
            }
        }
        self.file_of(&path)
    }

    /// Returns a path in a module as a path from the root; `None` if it begins with another name than a part's.
    fn absolute(&self, module: &str, path: &str) -> Option<String> {
        let (first, rest) = path.split_once("::").unwrap_or((path, ""));
        let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
        match first {
            "crate" => Some(rest.to_owned()),
            "self" => Some(join(module, rest)),
            "super" if rest.starts_with("super::") => self.absolute(parent, rest),
            "super" => Some(join(parent, rest)),
            part => {
                let is_part = self.0.contains_key(&join(module, part));
                is_part.then(|| join(module, path))
            }
        }
    }

    /// Returns a path that begins with a name which a module imports, as a path from the root.
    fn through_import(&self, module: &str, path: &str) -> Option<String> {
        let (name, rest) = path.split_once("::").unwrap_or((path, ""));
        let mut paths = self.0.get(module)?.iter();
        let import = paths.find_map(|path| {
            let is_of_name = path.import.as_deref() == Some(name);
            is_of_name
                .then(|| self.absolute(module, &path.path))
                .flatten()
        })?;
        Some(join(&import, rest))
    }

    /// Returns the module of the file to which a path from the root leads.
    fn file_of(&self, path: &str) -> Option<&str> {
        match self.0.get_key_value(path) {
            Some((module, _)) => Some(module),
            None if path.is_empty() => None,
            None => self.file_of(path.rsplit_once("::").map_or("", |(start, _)| start)),
        }
    }
}

/// Returns the paths in a code that consist of several names. A group in braces is several paths.
fn paths(code: &str) -> BTreeSet<CodePath> {
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
    let mut spaced = String::new();
    for letter in code.chars() {
        match letter {
            letter if is_of_path(letter) => spaced.push(letter),
            letter => spaced.extend([' ', letter, ' ']),
        }
    }
    let mut words = spaced.split_whitespace().peekable();
    let mut groups = Vec::new();
    let mut paths = BTreeSet::new();
    let mut is_in_use = false;
    while let Some(word) = words.next() {
        if word == "}" {
            groups.pop();
        } else if word == "use" || word == ";" {
            is_in_use = word == "use";
        } else if word.ends_with("::") && words.next_if_eq(&"{").is_some() {
            groups.push(word);
        } else if word.starts_with(is_of_path) {
            let path = groups.concat() + word;
            let path = path.trim_end_matches(':');
            let path = path.strip_suffix("::self").unwrap_or(path);
            let alias = words.next_if_eq(&"as").and_then(|_| words.peek());
            let name = path.rsplit("::").next().unwrap_or_default();
            let name = alias.copied().unwrap_or(name);
            if path.contains("::") {
                paths.insert(CodePath {
                    path: path.to_owned(),
                    import: is_in_use.then(|| name.to_owned()),
                });
            }
        }
    }
    paths
}

/// Returns the path that consists of two others, each of which may be empty.
fn join(beginning: &str, end: &str) -> String {
    let parts = [beginning, end].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("::")
}

/// Returns whether a module is `whole` or a part of it.
fn is_in(module: &str, whole: &str) -> bool {
    let rest = module.strip_prefix(whole);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Returns the largest sets of modules that all import each other, directly or through others of them.
fn circles<'a>(graph: &ImportGraph<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reached = |module: &'a str| {
        let mut reached = BTreeSet::new();
        let mut next = vec![module];
        while let Some(module) = next.pop() {
            let imports = graph.get(module).into_iter().flatten();
            next.extend(imports.filter(|import| reached.insert(**import)));
        }
        reached
    };
    let reached: ImportGraph<'a> = graph.keys().map(|it| (*it, reached(it))).collect();
    let circles = reached.iter().map(|(module, imports)| {
        let back = |import: &&&str| reached.get(*import).is_some_and(|it| it.contains(module));
        imports.iter().filter(back).copied().collect()
    });
    circles
        .filter(|circle: &BTreeSet<_>| !circle.is_empty())
        .collect()
}

/// Names the files on the shortest way from the first module of a circle back to it.
fn describe(circle: &BTreeSet<&str>, graph: &ImportGraph<'_>) -> String {
    let first = circle.first().copied().unwrap_or_default();
    let mut ways = VecDeque::from([vec![first]]);
    let mut visited = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let last = way.last().and_then(|last| graph.get(last));
        for import in last.into_iter().flatten() {
            let way = [&way[..], &[import]].concat();
            if *import == first {
                let files = way.iter().map(|module| module.replace("::", "/") + ".rs");
                let files = files.collect::<Vec<_>>().join(" -> ");
                return format!("{files} ({} files import each other)", circle.len());
            }
            if visited.insert(*import) {
                ways.push_back(way);
            }
        }
    }
    String::new()
}

#[cfg(test)]
mod tests;
