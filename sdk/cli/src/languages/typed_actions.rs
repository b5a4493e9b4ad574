//! The typed actions that plugins in other languages than Rust provide: what provides each in a language, and what the
//! sources use of the SDK for it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use plugin_manifest::{Action, Capability, Language};

use crate::project::ProjectFolder;

/// The actions that `[provides]` of `plugin.toml` names, apart from `events`.
pub(super) const TYPED_ACTIONS: [Action; 4] = [
    Action::Identify,
    Action::BootConfig,
    Action::ProxyRedirector,
    Action::OsUpdate,
];

/// The modules of the SDKs that are for providers, without their extension, and the action.
const MODULES: [(&str, Action); 7] = [
    ("identify_window", Action::Identify),
    ("boot_config", Action::BootConfig),
    ("proxy_redirector", Action::ProxyRedirector),
    ("os_update", Action::OsUpdate),
    // The packages of Go.
    ("bootconfig", Action::BootConfig),
    ("proxyredirector", Action::ProxyRedirector),
    ("osupdate", Action::OsUpdate),
];

/// A place in the sources that uses a module for providers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProviderUse {
    pub(super) action: Action,
    pub(super) file: PathBuf,
    /// Counted from 1.
    pub(super) line: usize,
}

/// Returns what provides an action in a language, such as `class`.
pub(super) fn provider_kind(language: Language, action: Action) -> &'static str {
    if action == Action::Identify {
        return "function";
    }
    match language {
        Language::C | Language::JavaScript | Language::TypeScript => "constant",
        Language::Python => "class",
        Language::Rust | Language::Go | Language::Component => "type",
    }
}

/// Returns the use of a module, if it is for providers.
pub(super) fn find_provider_use(module: &str, file: &Path, line: usize) -> Option<ProviderUse> {
    let (_, action) = MODULES.into_iter().find(|(name, _)| *name == module)?;
    Some(ProviderUse {
        action,
        file: file.to_owned(),
        line,
    })
}

/// Checks that `plugin.toml` names what provides the actions for which the sources use a module. Otherwise a provider
/// would never be called, or the tools of the language would report that a package or a type is missing.
///
/// # Errors
/// It does not; the error names the first place and the line to add.
pub(super) fn check(project: &ProjectFolder, uses: Vec<ProviderUse>) -> Result<()> {
    let language = project.language();
    let calls = |action| match callable(language, action) {
        Some(capability) => project.project.manifest.asks_for(capability),
        None => false,
    };
    let is_missing =
        |used: &ProviderUse| project.provider(used.action).is_none() && !calls(used.action);
    let Some(ProviderUse { action, file, line }) = uses.into_iter().find(is_missing) else {
        return Ok(());
    };
    let file = file.strip_prefix(&project.path).unwrap_or(&file);
    let or_call = callable(language, action).map_or(String::new(), |capability| {
        format!("; to call the action instead, add `{capability} = \"why\"` to [capabilities]")
    });
    bail!(
        "{}:{line} uses the SDK's part for providers of `{action}`, but [provides] in plugin.toml does not name one: add \
         `{action} = \"{}\"`{or_call}",
        file.display(),
        provider_kind(language, action).to_uppercase()
    );
}

/// Returns the capability with which the module for providers of an action is also the module that calls the action.
fn callable(language: Language, action: Action) -> Option<Capability> {
    let has_calls = language == Language::Python && action == Action::ProxyRedirector;
    action.capability().filter(|_| has_calls)
}
