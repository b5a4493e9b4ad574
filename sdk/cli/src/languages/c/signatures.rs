//! The types of the functions that `plugin.toml` names. The file that calls them is not the author's, so the linker would put
//! a trap in place of a function of another type, and only warn of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use plugin_manifest::Action;

use crate::files::write_file;
use crate::languages::capability_use::files_in;
use crate::languages::syntax_tree::{Capture, Grammar, SyntaxTree};
use crate::project::ProjectFolder;
use crate::toolchain;

const DEFINITIONS: &str = "(function_definition) @found";
/// What the compiler says of a function of another type, before its name.
const WRONG: &str = "another type: ";

/// A function that `plugin.toml` names.
#[derive(Clone)]
struct NamedFunction {
    name: String,
    /// What it does, as errors say it.
    purpose: String,
    kind: &'static FunctionKind,
}

/// The type of functions with the same purpose.
#[derive(PartialEq)]
struct FunctionKind {
    result: &'static str,
    parameter: &'static str,
    /// The name of the parameter in errors. Empty if there is none.
    parameter_name: &'static str,
    /// The header of the SDK with these types.
    header: &'static str,
}

const ROUTE: FunctionKind = FunctionKind {
    result: "void",
    parameter: "request_t *",
    parameter_name: "request",
    header: "supervisor.h",
};
const WATCHER: FunctionKind = FunctionKind {
    result: "event_answer_t",
    parameter: "const event_t *",
    parameter_name: "event",
    header: "events.h",
};
const ACTION: FunctionKind = FunctionKind {
    result: "output_t",
    parameter: "input_t ",
    parameter_name: "input",
    header: "action_provider.h",
};
const IDENTIFIER: FunctionKind = FunctionKind {
    result: "identify_result_t",
    parameter: "void",
    parameter_name: "",
    header: "identify.h",
};

impl NamedFunction {
    /// Returns the function as an author writes it.
    fn signature(&self) -> String {
        let FunctionKind {
            result,
            parameter,
            parameter_name,
            ..
        } = self.kind;
        format!("{result} {}({parameter}{parameter_name})", self.name)
    }

    /// Returns a line at which the compiler fails if the function has another type.
    fn assertion(&self) -> String {
        let FunctionKind {
            result, parameter, ..
        } = self.kind;
        let name = &self.name;
        format!(
            "_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {result}({parameter})), \"{WRONG}{name}\");\n"
        )
    }
}

/// A definition of a function in the author's sources.
struct Definition {
    file: PathBuf,
    /// Counted from 1.
    line: usize,
    /// What precedes the body.
    head: String,
    is_static: bool,
}

/// A function with a definition of it.
type DefinedFunction = (NamedFunction, Definition);

/// Checks that the functions that `plugin.toml` names have the types with which the build calls them. `clang` creates a
/// command without files.
///
/// # Errors
/// One has another type; the error names its place and what to write. Or a source cannot be read, or the compiler cannot be
/// started.
pub(super) fn check(
    project: &ProjectFolder,
    folder: &Path,
    clang: impl Fn() -> Result<Command>,
) -> Result<()> {
    let mut unclear = definitions(project, folder)?;
    // Most of them are obviously right, and need no further run of the compiler.
    unclear.retain(|(function, definition)| {
        !definition.is_static && tokens(&definition.head) != tokens(&function.signature())
    });
    let mut files: Vec<&Path> = unclear.iter().map(|(_, it)| it.file.as_path()).collect();
    files.dedup();
    for file in files {
        let of_file = unclear.iter().filter(|(_, it)| it.file == file);
        check_file(project, file, &of_file.collect::<Vec<_>>(), clang()?)?;
    }
    Ok(())
}

/// Checks the types of functions of a file.
fn check_file(
    project: &ProjectFolder,
    file: &Path,
    functions: &[&DefinedFunction],
    mut clang: Command,
) -> Result<()> {
    let build = project.path.join("build");
    let assertions = build.join("signatures.c");
    write_file(&assertions, assertions_of(functions).as_bytes())?;
    clang.args(["-w", "-fsyntax-only", "-include"]);
    clang.arg(file).arg(&assertions);
    let run = toolchain::compile_into(&mut clang, &build.join("signatures.log"))?;
    let is_wrong = |name: &str| {
        let ending = format!("{WRONG}{name}");
        run.output.lines().any(|line| line.ends_with(&ending))
    };
    let mut functions = functions.iter();
    let wrong = functions.find(|(function, _)| is_wrong(&function.name));
    let Some((function, definition)) = wrong else {
        return Ok(());
    };
    bail!(
        "{}: the function `{}`, which {}, must be `{}`",
        place(project, definition),
        function.name,
        function.purpose,
        function.signature()
    );
}

/// Checks that the functions that `plugin.toml` names are not `static`, for a build that has failed: the linker's message
/// does not say why it does not find such a function.
///
/// # Errors
/// One is; the error names its place. Or a source cannot be read.
pub(super) fn check_linkage(project: &ProjectFolder, folder: &Path) -> Result<()> {
    let found = definitions(project, folder)?;
    let is_linked = |name: &str| {
        let mut others = found.iter();
        others.any(|(function, definition)| function.name == name && !definition.is_static)
    };
    let local = found
        .iter()
        .find(|(function, _)| !is_linked(&function.name));
    let Some((function, definition)) = local else {
        return Ok(());
    };
    bail!(
        "{}: the function `{}`, which {}, is `static`, so nothing outside its file can call it: write `{}`",
        place(project, definition),
        function.name,
        function.purpose,
        function.signature()
    );
}

/// Returns the place of a definition in the project.
fn place(project: &ProjectFolder, definition: &Definition) -> String {
    let file = &definition.file;
    let file = file.strip_prefix(&project.path).unwrap_or(file);
    format!("{}:{}", file.display(), definition.line)
}

/// Returns a source that follows the author's, and at which the compiler fails if a function has another type.
fn assertions_of(functions: &[&DefinedFunction]) -> String {
    let mut headers: Vec<&str> = Vec::new();
    let mut assertions = String::new();
    for (function, _) in functions {
        let header = function.kind.header;
        if !headers.contains(&header) {
            headers.push(header);
        }
        assertions += &function.assertion();
    }
    let includes = headers.iter().map(|name| format!("#include \"{name}\"\n"));
    includes.collect::<String>() + &assertions
}

/// Returns the definitions of the functions that `plugin.toml` names, as far as they are visible in the sources: macros may
/// define others.
fn definitions(project: &ProjectFolder, folder: &Path) -> Result<Vec<DefinedFunction>> {
    let mut found = Vec::new();
    for file in [files_in(folder, "h")?, files_in(folder, "c")?].concat() {
        let source = SyntaxTree::read(&file, Grammar::C);
        let defined: Vec<_> = function_definitions(&source).collect();
        for function in named_functions(project) {
            let definition = |line, head: &str, is_static| Definition {
                file: file.clone(),
                line,
                head: head.to_owned(),
                is_static,
            };
            // There may be several, one for each case of an `#ifdef`.
            let written = defined.iter().filter(|it| it.name.text == function.name);
            let mut definitions: Vec<Definition> = written
                .map(|it| definition(it.name.line, it.head(), it.is_static()))
                .collect();
            // The grammar does not know macros: only the compiler can find the definition.
            if definitions.is_empty() && source.has_errors() {
                let mut words = source.words();
                let place = words.find(|(_, word)| *word == function.name);
                definitions.extend(place.map(|(line, _)| definition(line, "", false)));
            }
            let definitions = definitions.into_iter();
            found.extend(definitions.map(|definition| (function.clone(), definition)));
        }
    }
    Ok(found)
}

/// Returns the functions that `plugin.toml` names.
fn named_functions(project: &ProjectFolder) -> Vec<NamedFunction> {
    let function = |name: &str, purpose: String, kind| NamedFunction {
        name: name.to_owned(),
        purpose,
        kind,
    };
    let routes = project.routes();
    let routes = routes.map(|(route, name)| function(name, format!("answers `{route}`"), &ROUTE));
    let watcher = project.provider(Action::Events);
    let watcher = watcher.map(|name| function(name, "provides `events`".to_owned(), &WATCHER));
    let identifier = project.provider(Action::Identify);
    let identifier =
        identifier.map(|name| function(name, "provides `identify`".to_owned(), &IDENTIFIER));
    let actions = project.actions();
    let actions = actions
        .map(|(action, name)| function(name, format!("performs the action `{action}`"), &ACTION));
    let others = watcher.into_iter().chain(identifier);
    routes.chain(others).chain(actions).collect()
}

/// A function that a source defines.
pub(super) struct FunctionDefinition<'tree> {
    pub(super) name: Capture<'tree>,
    definition: Capture<'tree>,
}

impl<'tree> FunctionDefinition<'tree> {
    fn new(definition: Capture<'tree>, source: &'tree SyntaxTree) -> Option<Self> {
        let mut node = definition.node.child_by_field_name("declarator")?;
        // The name may be in parentheses, or behind the `*` of a result.
        while node.kind() != "identifier" {
            let inner = node.child_by_field_name("declarator");
            node = inner.or_else(|| node.named_child(0))?;
        }
        let name = source.capture(node);
        Some(Self { name, definition })
    }

    /// Returns what precedes the body of the function.
    pub(super) fn head(&self) -> &'tree str {
        let body = self.definition.node.child_by_field_name("body");
        let start = self.definition.node.start_byte();
        let length = body.map_or(self.definition.text.len(), |body| body.start_byte() - start);
        &self.definition.text[..length]
    }

    /// Whether nothing outside of the source can call it.
    pub(super) fn is_static(&self) -> bool {
        let mut cursor = self.definition.node.walk();
        let mut parts = self.definition.node.named_children(&mut cursor);
        parts.any(|part| {
            let start = part.start_byte() - self.definition.node.start_byte();
            let text = &self.definition.text[start..][..part.byte_range().len()];
            part.kind() == "storage_class_specifier" && text == "static"
        })
    }
}

/// Returns the functions that a source defines.
pub(super) fn function_definitions(
    source: &SyntaxTree,
) -> impl Iterator<Item = FunctionDefinition<'_>> {
    let found = source.find(DEFINITIONS);
    found.filter_map(|definition| FunctionDefinition::new(definition, source))
}

/// Returns the words and signs of a function's definition up to the end of its parameters, without the name of the last one.
fn tokens(definition: &str) -> Vec<&str> {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let end = definition.find(')').unwrap_or(definition.len());
    let mut rest = definition[..end].trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let length = match rest.find(|char| !is_part(char)) {
            Some(0) => first.len_utf8(),
            Some(length) => length,
            None => rest.len(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    // A parameter need not have a name.
    if let [.., before, last] = tokens.as_slice()
        && *before != "("
        && last.starts_with(is_part)
    {
        tokens.pop();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_found_outside_of_functions() {
        for (code, expected) in [
            ("void rail(request_t *r) {}", Some((1, false))),
            ("\nint rail (void)\n{}", Some((2, false))),
            ("static void rail(request_t *r) {}", Some((1, true))),
            ("inline static void rail(request_t *r) {}", Some((1, true))),
            ("static void\nrail(request_t *r) {}", Some((2, true))),
            ("void\nrail(request_t *r) {}", Some((2, false))),
            ("const char *rail(void) {}", Some((1, false))),
            ("const char **rail(void) {}", Some((1, false))),
            ("void (rail)(request_t *r) {}", Some((1, false))),
            ("int (*rail(void))(int) {}", Some((1, false))),
            (
                "void rail(request_t *r /* static page */) {}",
                Some((1, false)),
            ),
            (
                "#ifdef A\nvoid rail(request_t *r) {}\n#endif",
                Some((2, false)),
            ),
            (
                "// void rail(request_t *r) {}\n/* void rail(void) {} */",
                None,
            ),
            ("const char *a = \"void rail(void) {}\";", None),
            (
                "void rail(request_t *r);\nint rail(int a) { return a; }",
                Some((2, false)),
            ),
            ("void other(void) {\n    rail(1);\n    rail(2);\n}", None),
            (
                "void monorail(request_t *r) {}\nvoid rails(request_t *r) {}",
                None,
            ),
            ("#define rail(a) a", None),
            ("HANDLER(rail)", None),
            ("}\n}\nvoid rail(request_t *r) {}", Some((3, false))),
            ("", None),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), code).unwrap();
            let source = SyntaxTree::read(file.path(), Grammar::C);
            let mut found = function_definitions(&source);
            let found = found.find(|found| found.name.text == "rail");
            let found = found.map(|found| (found.name.line, found.is_static()));
            assert_eq!(found, expected, "{code}");
        }
    }

    #[test]
    fn a_function_without_parameters_has_no_name_of_one() {
        let function = NamedFunction {
            name: "blink".to_owned(),
            purpose: String::new(),
            kind: &IDENTIFIER,
        };
        let expected = function.signature();
        assert_eq!(expected, "identify_result_t blink(void)");
        for (text, is_same) in [
            ("identify_result_t blink(void) {", true),
            ("identify_result_t blink() {", false),
            ("identify_result_t blink(int a) {", false),
        ] {
            assert_eq!(tokens(text) == tokens(&expected), is_same, "{text}");
        }
    }

    #[test]
    fn only_the_name_of_the_parameter_may_differ() {
        let function = NamedFunction {
            name: "rail".to_owned(),
            purpose: String::new(),
            kind: &ROUTE,
        };
        let expected = function.signature();
        assert_eq!(expected, "void rail(request_t *request)");
        for (text, is_same) in [
            ("void rail(request_t *request) {", true),
            ("void  rail ( request_t* r ) { return; }", true),
            ("void rail(request_t *)", true),
            ("int rail(request_t *request) {", false),
            ("void rail(request_t request) {", false),
            ("void rail(const request_t *request) {", false),
            ("void rail(request_t *request, int a) {", false),
            ("void rail(void) {", false),
            ("void rail() {", false),
            ("rail(request_t *request) {", false),
            ("", false),
        ] {
            assert_eq!(tokens(text) == tokens(&expected), is_same, "{text}");
        }
    }
}
