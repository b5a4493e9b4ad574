//! Checks whether a plugin may be linked: its component's imports against what its manifest asks for, and that against
//! what the policy grants.
//!
//! This is checked before linking, for all imports at once: the linker itself would only name the first one, and not
//! say what to do. It is the only place where grants are checked; later on, everything that is linked is granted.

use std::collections::BTreeSet;
use std::path::Path;

use crate::capability::{Import, classify_import};
use crate::policy::Grants;
use plugin_manifest::{Capability, INTERFACE, Manifest, STOCK_ROUTES, is_of_stock_plugins};

/// Checks what the manifest claims to answer and provide. Needs no component, so it runs before anything is compiled.
///
/// # Errors
/// Everything that the policy does not let it answer or provide.
pub(crate) fn check_routes_and_actions(
    manifest: &Manifest,
    granted: &Grants,
    policy: &Path,
) -> Result<(), String> {
    all_of(refused_claims(manifest, granted, policy))
}

/// Returns what the policy does not let the plugin with this manifest answer or provide, a sentence about each kind.
pub(crate) fn refused_claims(manifest: &Manifest, granted: &Grants, policy: &Path) -> Vec<String> {
    let (plugin, policy) = (&manifest.name, policy.display());
    let mut wrong = Vec::new();
    let (mut of_stock, mut missing) = (Vec::new(), false);
    let mut paths: Vec<&str> = Vec::new();
    for route in &manifest.routes {
        let path = route.pattern.as_str();
        let is_granted = granted.routes.cover(&route.pattern);
        if is_of_stock_plugins(&route.pattern) {
            if !is_granted && !of_stock.contains(&path) {
                of_stock.push(path);
            }
            continue;
        }
        missing |= !is_granted;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    if !of_stock.is_empty() {
        wrong.push(format!(
            "plugin `{plugin}` answers {}, and {STOCK_ROUTES}",
            quoted(&of_stock, '`')
        ));
    }
    if missing {
        wrong.push(format!(
            "plugin `{plugin}` answers {}, which the policy `{policy}` does not allow; to allow it, give its section `[plugins.{plugin}]` the line `routes = [{}]`",
            quoted(&paths, '`'),
            quoted(&paths, '"')
        ));
    }
    // Events are granted by kind.
    let actions = manifest.provides.iter();
    let actions = actions.filter(|action| action.has_one_provider());
    if actions
        .clone()
        .any(|action| !granted.provides.contains(action))
    {
        let actions: Vec<_> = actions.map(<&str>::from).collect();
        wrong.push(format!(
            "plugin `{plugin}` provides {}, which the policy `{policy}` does not allow; to allow it, give its section `[plugins.{plugin}]` the line `provides = [{}]`",
            quoted(&actions, '`'),
            quoted(&actions, '"')
        ));
    }
    let events = manifest.event_kinds();
    if !events.is_subset(&granted.events) {
        let events: Vec<_> = events.iter().map(<&str>::from).collect();
        wrong.push(format!(
            "plugin `{plugin}` asks for the events {}, which the policy `{policy}` does not give it; to allow them, give its section `[plugins.{plugin}]` the line `events = [{}]`",
            quoted(&events, '`'),
            quoted(&events, '"')
        ));
    }
    wrong
}

/// Returns everything that is wrong as one error, if anything is.
fn all_of(wrong: Vec<String>) -> Result<(), String> {
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; "))
    }
}

fn quoted(names: &[&str], quote: char) -> String {
    let names: Vec<_> = names
        .iter()
        .map(|name| format!("{quote}{name}{quote}"))
        .collect();
    names.join(", ")
}

/// Checks a component that imports `imports`.
///
/// # Errors
/// Everything that its manifest does not ask for, or that the policy does not grant.
pub(crate) fn check<'a>(
    manifest: &Manifest,
    imports: impl Iterator<Item = &'a str>,
    granted: &BTreeSet<Capability>,
    policy: &Path,
) -> Result<(), String> {
    all_of(refused_imports(manifest, imports))?;
    missing_grants(manifest, granted, policy).map_or(Ok(()), Err)
}

/// Returns an error for each of these imports of a component that its manifest does not ask for, or that no plugin gets.
pub fn refused_imports<'a>(
    manifest: &Manifest,
    imports: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let needs = |capability: &Capability| manifest.asks_for(*capability);
    let mut wrong = Vec::new();
    for import in imports {
        match classify_import(import) {
            Import::Always => {}
            Import::With(first, others) if needs(&first) || others.iter().any(needs) => {}
            Import::With(first, _) => {
                wrong.push(format!(
                    "it imports `{import}`, which takes the capability `{first}`, and its manifest does not ask for that: add `{first} = \"why\"` to [capabilities] in its plugin.toml, or `{first} => \"why\"` to `capabilities` of `plugin!`"
                ));
            }
            Import::Unknown if import.starts_with("platform:supervisor/") => {
                wrong.push(format!(
                    "it imports `{import}`, which this supervisor does not have (it has `platform:supervisor` {INTERFACE})"
                ));
            }
            Import::Unknown => {
                wrong.push(format!("it imports `{import}`, which no plugin gets"));
            }
        }
    }
    wrong
}

/// Returns an error about the capabilities that the manifest asks for and the policy does not grant, if there are any.
pub(crate) fn missing_grants(
    manifest: &Manifest,
    granted: &BTreeSet<Capability>,
    policy: &Path,
) -> Option<String> {
    let needs = manifest.capabilities.iter();
    let missing: Vec<_> = needs.filter(|need| !granted.contains(&need.name)).collect();
    if missing.is_empty() {
        return None;
    }
    let noun = if missing.len() == 1 {
        "capability"
    } else {
        "capabilities"
    };
    let list: Vec<_> = missing
        .iter()
        .map(|need| format!("`{}` ({})", need.name, need.reason))
        .collect();
    // The whole line, including existing grants: it can be pasted over the existing line.
    let mut all = granted.clone();
    all.extend(missing.iter().map(|need| need.name));
    let all: Vec<_> = all.into_iter().map(<&str>::from).collect();
    let plugin = &manifest.name;
    Some(format!(
        "plugin `{plugin}` needs the {noun} {}, which the policy `{}` does not grant; to grant it, give its section `[plugins.{plugin}]` the line `grants = [{}]`",
        list.join(", "),
        policy.display(),
        quoted(&all, '"')
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(needs: &[&str], imports: &[&str], granted: &[Capability]) -> String {
        let needs: Vec<_> = needs
            .iter()
            .map(|name| format!("{{ name = \"{name}\", reason = \"for {name}\" }}"))
            .collect();
        let manifest = Manifest::parse(&format!(
            "name = \"x\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]\ncapabilities = [{}]",
            needs.join(", ")
        ))
        .unwrap();
        let granted = granted.iter().copied().collect();
        check(
            &manifest,
            imports.iter().copied(),
            &granted,
            Path::new("policy.toml"),
        )
        .map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn all_that_is_missing_is_listed_with_the_line_that_grants_it() {
        let led = "platform:supervisor/led@1.0.0";
        assert_eq!(
            refusal(&["led"], &[led, "wasi:io/poll@0.2.6"], &[Capability::Led]),
            ""
        );
        assert_eq!(
            refusal(&["device"], &[], &[]),
            "plugin `x` needs the capability `device` (for device), which the policy `policy.toml` does not grant; \
             to grant it, give its section `[plugins.x]` the line `grants = [\"device\"]`"
        );
        assert_eq!(
            refusal(&["led", "store", "clock"], &[led], &[Capability::Clock]),
            "plugin `x` needs the capabilities `led` (for led), `store` (for store), which the policy `policy.toml` \
             does not grant; to grant it, give its section `[plugins.x]` the line `grants = [\"store\", \"led\", \"clock\"]`"
        );
    }

    #[test]
    fn routes_and_actions_that_are_not_granted_are_listed_with_the_lines_that_grant_them() {
        let manifest = Manifest::parse(
            "name = \"x\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]\n\
             routes = [{ method = \"GET\", path = \"/v3/x\" }, { method = \"PUT\", path = \"/v3/x\" }, \
             { method = \"GET\", path = \"/v2/x\" }, { method = \"GET\", path = \"/v3/y/:a\" }]",
        )
        .unwrap();
        let refusal = |section: &str| {
            let granted: Grants = toml::from_str(section).unwrap();
            check_routes_and_actions(&manifest, &granted, Path::new("policy.toml"))
                .map_or_else(|error| error.to_string(), |()| String::new())
        };
        let of_stock =
            "plugin `x` answers `/v2/x`, and only stock plugins answer below `/v1` and `/v2`";
        let routes = "plugin `x` answers `/v3/x`, `/v3/y/:a`, which the policy `policy.toml` does not allow; \
             to allow it, give its section `[plugins.x]` the line `routes = [\"/v3/x\", \"/v3/y/:a\"]`";
        let actions = "plugin `x` provides `identify`, which the policy `policy.toml` does not allow; \
             to allow it, give its section `[plugins.x]` the line `provides = [\"identify\"]`";
        assert_eq!(refusal(""), format!("{of_stock}; {routes}; {actions}"));
        assert_eq!(
            refusal("routes = [\"/v3/x\"]\nprovides = [\"identify\"]"),
            format!("{of_stock}; {routes}")
        );
        assert_eq!(
            refusal("routes = [\"/v3/*\"]\nprovides = [\"identify\"]"),
            of_stock
        );
        assert_eq!(
            refusal("routes = [\"/v3/*\", \"/v2/x\"]\nprovides = [\"identify\"]"),
            "",
            "as a stock plugin"
        );
    }

    #[test]
    fn an_import_must_be_in_the_manifest() {
        assert_eq!(
            refusal(
                &[],
                &[
                    "platform:supervisor/led@1.0.0",
                    "wasi:clocks/wall-clock@0.2.6"
                ],
                &[Capability::Led]
            ),
            "it imports `platform:supervisor/led@1.0.0`, which takes the capability `led`, and its manifest does not \
             ask for that: add `led = \"why\"` to [capabilities] in its plugin.toml, or `led => \"why\"` to `capabilities` of \
             `plugin!`; it imports \
             `wasi:clocks/wall-clock@0.2.6`, which takes the capability `clock`, and its manifest does not ask for that: \
             add `clock = \"why\"` to [capabilities] in its plugin.toml, or `clock => \"why\"` to `capabilities` of `plugin!`"
        );
        assert_eq!(
            refusal(&["led"], &["wasi:sockets/tcp@0.2.6"], &[Capability::Led]),
            "it imports `wasi:sockets/tcp@0.2.6`, which no plugin gets"
        );
        assert_eq!(
            refusal(
                &["led"],
                &["platform:supervisor/valve@1.4.0"],
                &[Capability::Led]
            ),
            "it imports `platform:supervisor/valve@1.4.0`, which this supervisor does not have (it has \
             `platform:supervisor` 1.4.0)"
        );
        assert_eq!(
            refusal(
                &["files"],
                &["wasi:clocks/wall-clock@0.2.6"],
                &[Capability::Files]
            ),
            "",
            "the type of a file's times"
        );
    }
}
