//! `new`: creates a project that builds and answers requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use plugin_manifest::{Capability, Language, Project};
use serde_json::json;

use crate::arguments::NewArguments;
use crate::component_imports::imports;
use crate::output::Output;
use crate::{languages, templates};

pub(crate) fn run(arguments: &NewArguments, output: &Output) -> Result<ExitCode> {
    let name = &arguments.name;
    if let Err(rule) = plugin_manifest::check_name(name) {
        bail!("`{name}` cannot be a plugin's name: {rule}");
    }
    let folder = arguments.folder.clone().unwrap_or_else(|| name.into());
    let shown = folder.display();
    if folder.exists() {
        bail!("`{shown}` exists already: choose another name, or another folder with `--folder`");
    }
    if arguments.lang == Language::Component && arguments.component.is_none() {
        bail!("name the component that another toolchain has built: `--component FILE`");
    }
    if let Some(component) = &arguments.component {
        return from_component(arguments, component, &folder, output);
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create `{shown}`"))?;
    templates::write(&folder, name, arguments.lang)?;
    let lossy = folder.to_string_lossy();
    let word = shell_words::quote(&lossy);
    output.result(
        &format!(
            "created {shown} ({})\n\nNext:\n  cd {word}\n  supervisor-plugin run      # builds it, and serves it on http://127.0.0.1:48484\n  \
             curl http://127.0.0.1:48484/v3/{name}/Ada\n  supervisor-plugin test     # sends the requests in test/ and compares the answers\n\n\
             device.toml describes the device on which both of them try it.",
            arguments.lang
        ),
        &json!({ "name": name, "folder": folder, "language": arguments.lang.to_string() }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Creates a project around a component of another toolchain, which stays in its place.
fn from_component(
    arguments: &NewArguments,
    component: &Path,
    folder: &Path,
    output: &Output,
) -> Result<ExitCode> {
    let (name, shown) = (&arguments.name, folder.display());
    let file = component.display();
    let wasm = std::fs::read(component).with_context(|| format!("cannot read `{file}`"))?;
    languages::component::check(&wasm)
        .with_context(|| format!("`{file}` cannot become a plugin"))?;
    let component = component
        .canonicalize()
        .with_context(|| format!("cannot read `{file}`"))?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create `{shown}`"))?;
    let text = declaration(name, &component.to_string_lossy(), &imports(&wasm));
    let written = std::fs::write(folder.join(Project::FILE), text);
    written.with_context(|| format!("cannot write to `{shown}`"))?;
    templates::write_device(folder, name)?;
    let lossy = folder.to_string_lossy();
    let word = shell_words::quote(&lossy);
    output.result(
        &format!(
            "created {shown}, with the component in `{}`\n\nNext:\n  cd {word}\n  edit plugin.toml          # its routes, and \
             the reasons for what it asks for\n  supervisor-plugin check   # reports everything that a device would refuse\n  \
             supervisor-plugin run     # serves it on http://127.0.0.1:48484",
            component.display()
        ),
        &json!({ "name": name, "folder": folder, "language": Language::Component.to_string() }),
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the text of a `plugin.toml` for a component with these imports.
fn declaration(name: &str, component: &str, imports: &[String]) -> String {
    let mut needs = BTreeMap::new();
    for import in imports {
        let interface = import.split('@').next().unwrap_or(import);
        let mut capabilities = Capability::all().iter();
        if let Some(need) = capabilities.find(|need| need.imports().contains(&interface)) {
            needs.entry(need.to_string()).or_insert(interface);
        }
    }
    let mut text = format!(
        "name = \"{name}\"\nversion = \"0.1.0\"\n\n# The prefix removed before the component sees the path: it gets `/` and `/items`.\n\
         base_path = \"/v3/{name}\"\n\n[build]\nlanguage = \"component\"\nsource = {}\n\
         # command = \"…\"  # builds it\n",
        toml::Value::from(component)
    );
    if !needs.is_empty() {
        text += "\n# Why each is needed, for the person who grants it.\n[capabilities]\n";
    }
    for (need, interface) in needs {
        text += &format!("{need} = \"its component imports {interface}\"\n");
    }
    text += &format!(
        "\n# The component answers each of these.\n[routes]\n\"GET /v3/{name}\" = \"component\"\n\
         \"GET /v3/{name}/items\" = \"component\"\n"
    );
    text
}
