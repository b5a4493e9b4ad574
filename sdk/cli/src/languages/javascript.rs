//! JavaScript and TypeScript: esbuild bundles the sources and the SDK into one file, and componentize-qjs puts it into
//! a component with QuickJS.

mod clock_uses;
mod exports;
mod globals;
mod imports;
mod random_uses;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use include_dir::{Dir, include_dir};
use plugin_manifest::{Action, Capability, Language, Manifest};
use serde_json::{Value, json};

use super::entry_functions::EntryFunctions;
use super::inputs::Inputs;
use super::last_build::LastBuild;
use super::wasi_stubs::{self, OutputStreams};
use super::{async_imports, capability_use, source_functions, typed_actions};
use crate::files::{write_file, write_folder};
use crate::output::Output;
use crate::project::ProjectFolder;
use crate::toolchain::{self, NodePackage};
use crate::world;

/// The npm packages, in the versions that this tool is tested with.
const PACKAGES: [NodePackage; 2] = [
    NodePackage {
        name: "esbuild",
        version: "0.28.2",
    },
    NodePackage {
        name: "componentize-qjs",
        version: "0.4.5",
    },
];
/// The typed actions, each with the function of the SDK that calls what provides it, and the component's export.
const PROVIDERS: [(Action, &str, &str); 4] = [
    (Action::Identify, "provideIdentify", "identify"),
    (Action::BootConfig, "provideBootConfig", "bootConfig"),
    (
        Action::ProxyRedirector,
        "provideProxyRedirector",
        "proxyRedirector",
    ),
    (Action::OsUpdate, "provideOsUpdates", "osUpdate"),
];
/// The scripts that run them.
const BUNDLE: &str = include_str!("javascript/bundle.mjs");
const COMPONENTIZE: &str = include_str!("javascript/componentize.mjs");

static SDK: Dir = include_dir!("$CARGO_MANIFEST_DIR/../javascript");

/// Builds the module in the project's folder; `default` is its path if the project does not name one. Returns `None` if the
/// last build had the same inputs.
///
/// # Errors
/// The sources lack a function or use a capability that the project does not ask for, or the tools cannot be installed or refuse the
/// sources; they have printed the reason.
pub(super) fn build(
    project: &ProjectFolder,
    default: &str,
    last: &mut LastBuild,
    output: &Output,
) -> Result<Option<PathBuf>> {
    let source = project.source(default)?;
    let main = imports::read(&source);
    source_functions::check(project, &source, &exports::functions(&main))?;
    typed_actions::check(project, imports::provider_uses(&main))?;
    let sources = imports::with_imports(main);
    let mut uses = imports::capability_uses(&sources);
    uses.extend(random_uses::of_crypto(&sources));
    capability_use::check(project, uses)?;
    let mut warnings = Vec::new();
    if !has_random(project) {
        warnings.extend(random_uses::warnings(project, &sources));
    }
    if !has_clock(project) {
        warnings.extend(clock_uses::warnings(project, &sources));
    }
    for warning in warnings {
        output.note(&format!("warning: {warning}"));
    }
    let manifest = &project.project.manifest;
    check_imports_and_exports(manifest)?;
    let build = project.path.join("build");
    let world = world::load(&build.join("wit"), manifest)?;
    let wit = build.join("wit-without-async-imports");
    world::write_without_async_imports(&wit, manifest)?;
    for (capability, part) in [
        (Capability::Random, world::RANDOM),
        (Capability::Files, world::FILES),
    ] {
        if manifest.asks_for(capability) {
            world::import_wasi(&wit, &part)?;
        }
    }
    let sdk = build.join("sdk");
    write_folder(&sdk, &SDK)?;
    let routes = build.join("routes.js");
    write_file(&routes, self::routes(project, &source)?.as_bytes())?;

    let packages = toolchain::node_packages(&PACKAGES, output)?;
    let bundle = build.join("bundle.js");
    let task = json!({ "routes": routes, "sdk": sdk, "bundle": bundle });
    run(&packages.join("bundle.mjs"), BUNDLE, &task)?;
    // Bundling is fast, and esbuild knows best which files of which folders the sources import.
    let mut inputs = Inputs::new(project);
    inputs.add_program(toolchain::node()?.get_program());
    inputs.add_file(&bundle);
    for read in [&build.join("wit"), &wit] {
        inputs.add_folder(read);
    }
    if last.has_inputs(inputs, output) {
        return Ok(None);
    }
    let component = build.join("component.wasm");
    let uses_wasi = world::uses_wasi(manifest);
    let task = json!({
        "bundle": bundle,
        "wit": wit,
        "world": world::WORLD,
        "stubWasi": !uses_wasi,
        "component": component,
    });
    run(&packages.join("componentize.mjs"), COMPONENTIZE, &task)?;
    let mut wasm = std::fs::read(&component).context("cannot read what was built")?;
    async_imports::declare(&mut wasm, &async_imports::list(&world.resolve, world.id))
        .context("componentize-qjs has written a component that this tool does not understand")?;
    if uses_wasi {
        wasm = wasi_stubs::replace_missing(&wasm, manifest, OutputStreams::Stub)?;
    }
    write_file(&component, &wasm)?;
    Ok(Some(component))
}

/// Runs a script of this tool, whose packages are in the script's folder, with a task.
fn run(file: &Path, script: &str, task: &Value) -> Result<()> {
    write_file(file, script.as_bytes())?;
    let mut command = toolchain::node()?;
    command.arg(file).arg(task.to_string());
    toolchain::compile(&mut command)
}

/// Checks that no interface is both exported and imported: the build needs it with synchronous functions for the one, and with
/// asynchronous functions for the other.
fn check_imports_and_exports(manifest: &Manifest) -> Result<()> {
    let mut provides = manifest.provides.iter();
    let is_both = |action: &&Action| {
        let capability = action.capability();
        capability.is_some_and(|capability| manifest.asks_for(capability))
    };
    match provides.find(is_both) {
        None => Ok(()),
        Some(action) => bail!(
            "a plugin in JavaScript or TypeScript cannot both provide `{action}` and ask for the capability of that name: leave \
             `{action}` out of [provides] or out of [capabilities] in plugin.toml"
        ),
    }
}

/// Returns whether `plugin.toml` asks for random numbers.
fn has_random(project: &ProjectFolder) -> bool {
    project.project.manifest.asks_for(Capability::Random)
}

/// Returns whether `plugin.toml` asks for a clock.
fn has_clock(project: &ProjectFolder) -> bool {
    project.project.manifest.asks_for(Capability::Clock)
}

/// Returns the component's entry module, which maps routes, events and actions to functions.
fn routes(project: &ProjectFolder, source: &Path) -> Result<String> {
    let source = source
        .to_str()
        .with_context(|| format!("the path `{}` is not UTF-8", source.display()))?;
    let functions = EntryFunctions::read(project, Language::JavaScript, "JavaScript")?;
    // Before the plugin.
    let mut first = String::new();
    if has_random(project) {
        first.push_str("import \"supervisor-sdk/device-random\";\n");
    }
    if !has_clock(project) {
        first.push_str("import \"supervisor-sdk/without-clock\";\n");
    }
    let mut text = format!(
        "// Written by `supervisor-plugin build` from plugin.toml.\n{first}import {{ serve }} from \"supervisor-sdk/serve\";\nimport * as plugin from {};\n\nexport const handler = serve({{\n",
        json!(source)
    );
    for (route, handler) in &functions.routes {
        let _ = writeln!(text, "  {}: plugin.{handler},", json!(route.to_string()));
    }
    text.push_str("});\n");
    if let Some(watcher) = functions.watcher {
        let _ = writeln!(
            text,
            "\nimport {{ watch }} from \"supervisor-sdk/serve\";\nexport const events = watch(plugin.{watcher});"
        );
    }
    let mut actions = String::new();
    for (name, function) in &functions.actions {
        let _ = writeln!(actions, "  {}: plugin.{function},", json!(name));
    }
    if !actions.is_empty() {
        let _ = writeln!(
            text,
            "\nimport {{ provideActions }} from \"supervisor-sdk/serve\";\nexport const actionProvider = provideActions({{\n{actions}}});"
        );
    }
    for (action, function, export) in PROVIDERS {
        let Some(provider) = functions.provider(action) else {
            continue;
        };
        let _ = writeln!(
            text,
            "\nimport {{ {function} }} from \"supervisor-sdk/serve\";\nexport const {export} = {function}(plugin.{provider});"
        );
    }
    Ok(text)
}
