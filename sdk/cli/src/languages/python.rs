//! Python: componentize-py puts an interpreter, the SDK and the sources into a component.

mod messages;
mod source;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Capability, Language};

use super::entry_functions::EntryFunctions;
use super::inputs::Inputs;
use super::last_build::LastBuild;
use super::wasi_stubs::{self, OutputStreams};
use super::{capability_use, source_functions, typed_actions};
use crate::files::{write_file, write_folder};
use crate::output::{Output, note_line};
use crate::project::ProjectFolder;
use crate::toolchain::{self, PythonPackage};
use crate::world;

/// The package that builds the component.
const COMPONENTIZE: PythonPackage = PythonPackage {
    name: "componentize-py",
    version: "0.25.1",
};
/// The default source file.
const SOURCE: &str = "src/plugin.py";
/// The typed actions, each with the class that a component exports for it, and the function of the SDK that makes the class.
const PROVIDERS: [(Action, &str, &str); 4] = [
    (Action::Identify, "Identify", "identifier"),
    (Action::BootConfig, "BootConfig", "boot_configurator"),
    (
        Action::ProxyRedirector,
        "ProxyRedirector",
        "proxy_configurator",
    ),
    (Action::OsUpdate, "OsUpdate", "os_updater"),
];
/// The name of the second `--python-path` inside componentize-py, which is the folder of the author's sources.
const SOURCES: &str = "/1";

static SDK: Dir = include_dir!("$CARGO_MANIFEST_DIR/../python/supervisor_sdk");

/// Builds the module in the project's folder; returns `None` if the last build had the same inputs.
///
/// # Errors
/// The sources lack a function or use a capability that the project does not ask for, the tools cannot be installed, or
/// the sources cannot be imported; the error names the place in them.
pub(super) fn build(
    project: &ProjectFolder,
    last: &mut LastBuild,
    output: &Output,
) -> Result<Option<PathBuf>> {
    let source = project.source(SOURCE)?;
    let routes = routes(project, &source)?;
    let main = source::read(&source);
    source_functions::check(project, &source, &source::functions(&main))?;
    typed_actions::check(project, source::provider_uses(&main))?;
    capability_use::check(project, source::capability_uses(&source))?;
    let build = project.path.join("build");
    let wit = build.join("wit");
    world::write(&wit, &project.project.manifest)?;
    let sdk = build.join("sdk");
    write_folder(&sdk.join("supervisor_sdk"), &SDK)?;
    // In a folder without the files that a build writes: an import could find those.
    let entry = build.join("entry");
    write_file(&entry.join("routes.py"), routes.as_bytes())?;
    let folder = source.parent().unwrap_or(&project.path);
    let component = build.join("component.wasm");
    let mut command = toolchain::python_program(&COMPONENTIZE, COMPONENTIZE.name, output)?;
    let mut inputs = Inputs::new(project);
    inputs.add_program(command.get_program());
    for read in [&wit, &entry, folder, &sdk] {
        inputs.add_folder(read);
    }
    if last.has_inputs(inputs, output) {
        return Ok(None);
    }
    command.arg("--quiet").arg("--wit-path").arg(&wit).args([
        "--world",
        world::WORLD,
        "componentize",
    ]);
    let manifest = &project.project.manifest;
    let uses_wasi = world::uses_wasi(manifest);
    if !uses_wasi {
        command.arg("--stub-wasi");
    }
    for path in [&entry, folder, &sdk] {
        command.arg("--python-path").arg(path);
    }
    command.arg("routes").arg("--output").arg(&component);
    // Its own backtrace says nothing about the plugin.
    command.env("RUST_BACKTRACE", "0");
    command.env("VIRTUAL_ENV", environment_without_packages(&build)?);
    let log = build.join("componentize-py.log");
    let run = toolchain::compile_into(&mut command, &log)?;
    if run.succeeded {
        // What the plugin prints while it is imported.
        if !run.output.is_empty() {
            note_line(run.output.trim_end());
        }
        if uses_wasi {
            let wasm = std::fs::read(&component).context("cannot read what was built")?;
            let wasm = wasi_stubs::replace_missing(&wasm, manifest, OutputStreams::Stub)?;
            write_file(&component, &wasm)?;
        }
        return Ok(Some(component));
    }
    let folder = shown_folder(project, &source).display().to_string();
    let reason = messages::exception(&run.output, SOURCES, &folder);
    bail!(
        "{}\nbuild failed: the compiler's whole output is in `build/componentize-py.log`",
        reason.unwrap_or(run.output)
    );
}

/// Returns a virtual environment without packages. componentize-py puts the packages of the environment into the component,
/// or those of the whole machine, so that the same sources would work on one machine and not on another one.
fn environment_without_packages(build: &Path) -> Result<PathBuf> {
    let environment = build.join("without-packages");
    let packages = environment.join("lib/site-packages");
    std::fs::create_dir_all(&packages)
        .with_context(|| format!("cannot create `{}`", packages.display()))?;
    Ok(environment)
}

/// Returns the folder of the sources as the author names it.
fn shown_folder<'a>(project: &ProjectFolder, source: &'a Path) -> &'a Path {
    let folder = source.parent().unwrap_or(Path::new(""));
    folder.strip_prefix(&project.path).unwrap_or(folder)
}

/// Returns the component's entry module, which maps routes, events and actions to functions.
fn routes(project: &ProjectFolder, source: &Path) -> Result<String> {
    let module = source
        .file_stem()
        .and_then(|stem| stem.to_str())
        .with_context(|| format!("`{}` is not the name of a Python module", source.display()))?;
    let folder = shown_folder(project, source).display().to_string();
    let manifest = &project.project.manifest;
    let has_random = manifest.asks_for(Capability::Random);
    let has_random = if has_random { "True" } else { "False" };
    let mut without = String::new();
    for (capability, module) in [
        (Capability::Clock, "without_clock"),
        (Capability::Files, "without_files"),
    ] {
        if !manifest.asks_for(capability) {
            let _ = write!(without, ", {module}");
        }
    }
    let functions = EntryFunctions::read(project, Language::Python, "Python")?;
    let mut text = format!(
        "# Written by `supervisor-plugin build` from plugin.toml.\nfrom supervisor_sdk import places, randomness{without}\nfrom supervisor_sdk.handler import handler\n\nplaces.sources = {folder:?}\nrandomness.is_granted = {has_random}\n\nimport {module}\n\nHandler = handler({{\n"
    );
    for (route, handler) in &functions.routes {
        let _ = writeln!(text, "    {:?}: {module}.{handler},", route.to_string());
    }
    text.push_str("})\n");
    if let Some(watcher) = functions.watcher {
        let _ = writeln!(
            text,
            "\nfrom supervisor_sdk.handler import watcher\n\nEvents = watcher({module}.{watcher})"
        );
    }
    let mut actions = String::new();
    for (name, function) in &functions.actions {
        let _ = writeln!(actions, "    {name:?}: {module}.{function},");
    }
    if !actions.is_empty() {
        let _ = writeln!(
            text,
            "\nfrom supervisor_sdk.handler import action_provider\n\nActionProvider = action_provider({{\n{actions}}})"
        );
    }
    for (action, class, function) in PROVIDERS {
        let Some(provider) = functions.provider(action) else {
            continue;
        };
        let _ = writeln!(
            text,
            "\nfrom supervisor_sdk.handler import {function}\n\n{class} = {function}({module}.{provider})"
        );
    }
    Ok(text)
}
