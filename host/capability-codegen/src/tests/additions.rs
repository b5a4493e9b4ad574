//! What was added to the interface after its first version (docs/compatibility.md).

use wasmtime_wit_parser::Stability;

use super::*;

/// The interfaces of version 1.0, with their functions.
const INTERFACES: [(&str, &[&str]); 18] = [
    ("boot-config", &["get", "compare", "set"]),
    ("cloud", &["records", "queue"]),
    ("config", &["json"]),
    ("device", &["identity", "state"]),
    ("handler", &["handle"]),
    ("host-name", &["get", "set"]),
    ("identify", &["identify"]),
    ("identify-window", &["remaining-ms"]),
    ("journal", &["read"]),
    (
        "led",
        &[
            "names",
            "[static]light.open",
            "[method]light.max",
            "[method]light.set",
        ],
    ),
    ("log", &["write"]),
    (
        "proxy-redirector",
        &["get", "set", "no-proxy", "set-no-proxy", "apply"],
    ),
    ("proxy-types", &[]),
    ("store", &["get", "set", "delete", "keys"]),
    ("timer", &["sleep"]),
    ("types", &[]),
    ("units", &["state", "restart"]),
    ("update-lock", &["[static]lock.acquire-all"]),
];
/// The worlds of version 1.0.
const WORLDS: [&str; 5] = ["boot", "capabilities", "endpoint", "identifier", "proxy"];

/// Returns whether something states a version after 1.0, and not after that of the package.
fn states_its_version(stability: &Stability, newest: u64) -> bool {
    match stability {
        Stability::Stable { since, .. } => {
            since.major == 1 && since.patch == 0 && (1..=newest).contains(&since.minor)
        }
        _ => false,
    }
}

#[test]
fn what_is_newer_than_1_0_states_its_version_and_nothing_else_does() {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(Path::new(WIT)).unwrap();
    let package = &resolve.packages[package];
    let newest = package.name.version.as_ref().unwrap().minor;
    let mut first = Vec::new();
    let mut later = Vec::new();
    for (name, id) in &package.interfaces {
        let interface = &resolve.interfaces[*id];
        let item = (name.clone(), &interface.stability);
        let Some((_, functions)) = INTERFACES.iter().find(|(first, _)| first == name) else {
            // It states the version of all of its functions.
            later.push(item);
            continue;
        };
        first.push(item);
        for (function, declaration) in &interface.functions {
            let item = (format!("{name}.{function}"), &declaration.stability);
            if functions.contains(&function.as_str()) {
                first.push(item);
            } else {
                later.push(item);
            }
        }
    }
    for (name, id) in &package.worlds {
        let item = (format!("world {name}"), &resolve.worlds[*id].stability);
        if WORLDS.contains(&name.as_str()) {
            first.push(item);
        } else {
            later.push(item);
        }
    }
    let functions = INTERFACES.iter().map(|(_, functions)| functions.len());
    let count = INTERFACES.len() + functions.sum::<usize>() + WORLDS.len();
    assert_eq!(first.len(), count, "{first:?}");
    assert!(!later.is_empty());
    first.retain(|(_, stability)| !stability.is_unknown());
    assert_eq!(first, [], "these are of 1.0");
    later.retain(|(_, stability)| !states_its_version(stability, newest));
    assert_eq!(later, [], "these lack `@since(version = 1.X.0)`");
}
