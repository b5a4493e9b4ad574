//! `new`: a project that builds and answers.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::arguments::New;
use crate::output::Output;
use crate::templates;

pub(crate) fn run(arguments: &New, output: &Output) -> Result<ExitCode> {
    let name = &arguments.name;
    if let Err(rule) = plugin_manifest::check_name(name) {
        bail!("`{name}` cannot be a plugin's name: {rule}");
    }
    let folder = arguments.folder.clone().unwrap_or_else(|| name.into());
    let shown = folder.display();
    if folder.exists() {
        bail!("`{shown}` exists already: choose another name, or another folder with `--folder`");
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create `{shown}`"))?;
    templates::write(&folder, name, arguments.lang)?;
    output.result(
        &format!(
            "created {shown} ({})\n\nNext:\n  cd {shown}\n  supervisor-plugin run      # builds it, and serves it on http://127.0.0.1:48484\n  \
             curl http://127.0.0.1:48484/v3/{name}/Ada\n  supervisor-plugin test     # sends the requests in test/ and compares the answers",
            arguments.lang
        ),
        &json!({ "name": name, "folder": folder, "language": arguments.lang.to_string() }),
    );
    Ok(ExitCode::SUCCESS)
}
