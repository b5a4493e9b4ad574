//! What a manifest declares and its component does not export, in words for the plugin's author.

use plugin_manifest::{Action, Manifest};
use plugin_protocol::ComponentFacts;

/// Checks that the component exports what its manifest declares.
///
/// # Errors
/// It does not; the error names the first missing export, and what the author must write.
pub(crate) fn check(manifest: &Manifest, facts: &ComponentFacts) -> Result<(), String> {
    if !manifest.routes.is_empty() && !facts.has_handler {
        return Err(format!(
            "its manifest has routes, and its component exports neither `platform:supervisor/handler` nor \
             `wasi:http/incoming-handler`: {}, or export one of the two",
            in_plugin_toml("the function that answers each route", "`[routes]`")
        ));
    }
    let mut provides = manifest.provides.iter();
    let Some(action) = provides.find(|action| !facts.actions.contains(action)) else {
        return Ok(());
    };
    Err(format!(
        "its manifest provides `{action}`, and its component does not export `platform:supervisor/{action}`: {}, or export \
         the interface",
        provider(*action)
    ))
}

/// Returns what an author must write so that the build exports the interface of an action.
fn provider(action: Action) -> String {
    match action {
        Action::ActionProvider => {
            in_plugin_toml("the function of each of its own actions", "`[actions]`")
        }
        Action::Identify | Action::Events => {
            let table = format!("`[provides]` (`{action} = \"FUNCTION\"`)");
            in_plugin_toml("a function", &table)
        }
        Action::BootConfig | Action::ProxyRedirector | Action::OsUpdate => {
            let table = format!("`[provides]` (`{action} = \"NAME\"`)");
            in_plugin_toml(
                "a type (Rust, Go), a class (Python), an exported object (JavaScript, TypeScript) or a constant (C)",
                &table,
            )
        }
    }
}

fn in_plugin_toml(what: &str, table: &str) -> String {
    format!(
        "write {what}, name it in {table} of plugin.toml, and build with `supervisor-plugin build`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_export_comes_with_what_to_write() {
        for (action, expected) in [
            (
                Action::Identify,
                "write a function, name it in `[provides]` (`identify = \"FUNCTION\"`)",
            ),
            (
                Action::Events,
                "write a function, name it in `[provides]` (`events = \"FUNCTION\"`)",
            ),
            (Action::BootConfig, "a class (Python), "),
            (
                Action::ProxyRedirector,
                "name it in `[provides]` (`proxy-redirector = \"NAME\"`)",
            ),
            (
                Action::OsUpdate,
                "name it in `[provides]` (`os-update = \"NAME\"`)",
            ),
            (
                Action::ActionProvider,
                "name it in `[actions]` of plugin.toml",
            ),
        ] {
            let remedy = provider(action);
            assert!(remedy.contains(expected), "{remedy}");
        }
    }
}
