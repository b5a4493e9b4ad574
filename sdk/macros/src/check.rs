//! Checks the parts by the rules of the device, and creates a manifest from them.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use plugin_manifest::{
    Action, COUNT, Capability, EventKind, INTERFACE, LimitError, Manifest, Need, Pattern,
    PluginMetadata, Route, SCHEDULES, SIZE, STOCK_ROUTES, Schedule, WrittenLimits,
    check_action_name, check_name, check_schedule_name, check_text, core_route,
    is_of_stock_plugins, is_stock_plugin, limit_names, parse_method,
};
use semver::Version;

use crate::package::Package;
use crate::part::{
    ActionLine, CapabilityLine, Content, LimitLine, Part, PartKind, RouteLine, ScheduleLine,
};
use crate::problems::{Place, PlacedValue, Problems};
use crate::project::ProjectParts;

/// A plugin that every device would accept.
pub(crate) struct CheckedPlugin {
    pub(crate) manifest: Manifest,
    /// The functions that answer the manifest's routes, in that order.
    pub(crate) handlers: Vec<syn::Path>,
    /// The providers of the manifest's actions, in that order.
    pub(crate) providers: Vec<syn::Path>,
    /// The functions that perform the plugin's own actions, by name.
    pub(crate) actions: Vec<(String, syn::Path)>,
    /// The file that describes the routes.
    pub(crate) openapi: Option<String>,
}

/// Name and version, from `plugin.toml` or else from the crate.
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) version: Version,
}

impl Identity {
    pub(crate) fn new(
        project: Option<&ProjectParts>,
        package: &Package,
        problems: &mut Problems,
    ) -> Identity {
        let (name, version) = match project {
            Some(project) => (project.name.clone(), project.version.clone()),
            None => {
                let place = Place::Macro(proc_macro2::Span::call_site());
                let placed = |value: &String| PlacedValue {
                    value: value.clone(),
                    place,
                };
                (placed(&package.name), placed(&package.version))
            }
        };
        if let Err(rule) = check_name(&name.value) {
            let message = match name.place {
                Place::File(_) => rule.to_owned(),
                Place::Macro(_) => {
                    let fitting = fitting_name(&name.value);
                    format!(
                        "`{}` cannot be the name of a plugin: rename the package in Cargo.toml, for example to \
                         `{fitting}`, or put `name = \"{fitting}\"` into plugin.toml",
                        name.value
                    )
                }
            };
            problems.add(name.place, message);
        }
        let parsed = Version::parse(&version.value);
        if let Err(error) = &parsed {
            problems.add(version.place, format!("the version is not valid: {error}"));
        }
        Identity {
            name: name.value,
            version: parsed.unwrap_or(Version::new(0, 0, 0)),
        }
    }
}

/// Returns a name similar to `name` that a plugin can have.
fn fitting_name(name: &str) -> String {
    let fitting = name.chars().map(|character| match character {
        'A'..='Z' => character.to_ascii_lowercase(),
        'a'..='z' | '0'..='9' => character,
        _ => '-',
    });
    let fitting: String = fitting.collect();
    fitting.trim_matches('-').chars().take(63).collect()
}

/// Checks `parts`, each on its own and in combination with the others.
pub(crate) fn check(
    identity: Identity,
    parts: Vec<Part>,
    package: &Package,
    problems: &mut Problems,
) -> CheckedPlugin {
    let mut plugin = CheckedPlugin {
        manifest: Manifest {
            name: identity.name,
            version: identity.version,
            interface: INTERFACE,
            about: PluginMetadata::default(),
            routes: Vec::new(),
            base_path: None,
            provides: Vec::new(),
            events: BTreeSet::new(),
            schedules: BTreeMap::new(),
            actions: BTreeSet::new(),
            capabilities: Vec::new(),
            boards: Vec::new(),
            limits: WrittenLimits::default(),
            openapi: None,
        },
        handlers: Vec::new(),
        providers: Vec::new(),
        actions: Vec::new(),
        openapi: None,
    };
    for Part { kind, content, .. } in parts {
        match (kind, content) {
            (PartKind::About(field), Some(Content::Text(text))) => {
                let mut about = PluginMetadata::default();
                field.set(&mut about, text.value.clone());
                match about.check() {
                    Ok(()) => field.set(&mut plugin.manifest.about, text.value),
                    Err(message) => problems.add(text.place, message),
                }
            }
            (PartKind::Openapi, Some(Content::Text(path))) => {
                if let Err(message) = check_description(&path.value, package) {
                    problems.add(path.place, message);
                }
                plugin.openapi = Some(path.value);
            }
            (PartKind::Provides(action), Some(Content::Provider(path))) => {
                plugin.manifest.provides.push(action);
                plugin.providers.push(path);
            }
            (_, Some(Content::Capabilities(lines))) => {
                plugin.manifest.capabilities = needs(lines, problems);
            }
            (_, Some(Content::Routes(lines))) => routes(lines, &mut plugin, problems),
            (_, Some(Content::Events(kinds))) => {
                plugin.manifest.events = events(&kinds, problems);
            }
            (_, Some(Content::Schedules(lines))) => {
                plugin.manifest.schedules = schedules(lines, problems);
            }
            (_, Some(Content::Actions(lines))) => actions(lines, &mut plugin, problems),
            (_, Some(Content::Boards(boards))) => {
                plugin.manifest.boards = self::boards(boards, problems);
            }
            (_, Some(Content::Limits(lines))) => {
                plugin.manifest.limits = limits(lines, problems);
            }
            _ => {}
        }
    }
    // Comes after the other actions, each of which has a provider.
    if !plugin.actions.is_empty() {
        plugin.manifest.provides.push(Action::ActionProvider);
    }
    plugin
}

fn actions(lines: Vec<ActionLine>, plugin: &mut CheckedPlugin, problems: &mut Problems) {
    for (index, ActionLine { name, function }) in lines.into_iter().enumerate() {
        if index == COUNT {
            let message = format!("a plugin has at most {COUNT} actions: leave out the others");
            problems.add(name.place, message);
        }
        if let Err(message) = check_action_name(&name.value) {
            problems.add(name.place, message);
        }
        if plugin.manifest.actions.insert(name.value.clone()) {
            plugin.actions.push((name.value, function));
        } else {
            let message = format!("`{}` is here a second time: leave one out", name.value);
            problems.add(name.place, message);
        }
    }
}

fn needs(lines: Vec<CapabilityLine>, problems: &mut Problems) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for CapabilityLine { name, reason } in lines {
        // In the macro, `_` stands for `-`.
        let hyphenated = name.value.replace('_', "-");
        let capability = match Capability::from_str(&hyphenated) {
            Ok(capability) if capability.is_for_manifests() => capability,
            Ok(capability) => {
                problems.add(name.place, capability.only_from_policy());
                continue;
            }
            Err(_) => {
                problems.add(name.place, unknown_capability(&name.value));
                continue;
            }
        };
        if needs.iter().any(|need| need.name == capability) {
            let message = format!("`{capability}` is here a second time: leave one out");
            problems.add(name.place, message);
            continue;
        }
        let what = format_args!("the reason for the capability `{capability}`");
        if let Err(message) = check_text(what, &reason.value) {
            problems.add(reason.place, message);
        }
        needs.push(Need {
            name: capability,
            reason: reason.value,
        });
    }
    needs
}

fn unknown_capability(name: &str) -> String {
    match name {
        "log" | "config" | "timer" | "caller" => {
            format!("every plugin may use `{name}`: leave it out here")
        }
        _ => format!(
            "there is no capability `{name}`: use {}; `log`, `config`, `timer` and `caller` need none",
            capability_list()
        ),
    }
}

fn capability_list() -> String {
    let names = Capability::all()
        .iter()
        .filter(|capability| capability.is_for_manifests());
    let names: Vec<String> = names.map(|capability| format!("`{capability}`")).collect();
    names.join(", ")
}

/// Adds the routes to `plugin`.
fn routes(lines: Vec<RouteLine>, plugin: &mut CheckedPlugin, problems: &mut Problems) {
    for (index, line) in lines.into_iter().enumerate() {
        let place = line.path.place;
        if index == COUNT {
            problems.add(
                place,
                format!("a plugin has at most {COUNT} routes: leave out the others"),
            );
        }
        let method = parse_method(&line.method.value).map_err(|_| {
            let message = format!(
                "`{}` is not the method of a route: use GET, POST, PUT, PATCH or DELETE",
                line.method.value
            );
            problems.add(line.method.place, message);
        });
        let pattern = Pattern::parse(&line.path.value).map_err(|error| problems.add(place, error));
        let (Ok(method), Ok(pattern)) = (method, pattern) else {
            continue;
        };
        if let Some((core_method, core_path)) = core_route(&method, &pattern) {
            let message = format!(
                "`{core_method} {core_path}` is a route of the supervisor's own: choose another path"
            );
            problems.add(place, message);
        } else if is_of_stock_plugins(&pattern) && !is_stock_plugin(&plugin.manifest.name) {
            problems.add(place, format!("{STOCK_ROUTES}: choose another path"));
        }
        let route = Route { method, pattern };
        let mut others = plugin.manifest.routes.iter();
        if let Some(other) = others.find(|other| other.is_the_same_as(&route)) {
            let message = format!("`{other}` matches the same paths: leave one of them out");
            problems.add(place, message);
        }
        plugin.manifest.routes.push(route);
        plugin.handlers.push(line.handler);
    }
}

fn events(kinds: &[PlacedValue<String>], problems: &mut Problems) -> BTreeSet<EventKind> {
    let mut events = BTreeSet::new();
    for PlacedValue { value, place } in kinds {
        match EventKind::from_str(value) {
            Ok(EventKind::Schedule) => {
                let example = PartKind::Schedules.example();
                problems.add(*place, format!("name the times: `{example}`"));
            }
            Ok(kind) if events.insert(kind) => {}
            Ok(kind) => {
                problems.add(
                    *place,
                    format!("`{kind}` is here a second time: leave one out"),
                );
            }
            Err(_) => {
                let kinds = EventKind::all().iter();
                let kinds = kinds.filter(|kind| **kind != EventKind::Schedule);
                let kinds: Vec<String> = kinds.map(|kind| format!("`{kind}`")).collect();
                let kinds = kinds.join(", ");
                problems.add(*place, format!("there is no event `{value}`: use {kinds}"));
            }
        }
    }
    events
}

fn schedules(lines: Vec<ScheduleLine>, problems: &mut Problems) -> BTreeMap<String, Schedule> {
    let mut schedules = BTreeMap::new();
    for (index, ScheduleLine { name, schedule }) in lines.into_iter().enumerate() {
        if index == SCHEDULES {
            let message =
                format!("a plugin has at most {SCHEDULES} schedules: leave out the others");
            problems.add(name.place, message);
        }
        if let Err(message) = check_schedule_name(&name.value) {
            problems.add(name.place, message);
        }
        match schedule.value.parse() {
            Ok(times) => {
                if schedules.insert(name.value.clone(), times).is_some() {
                    let message = format!("`{}` is here a second time: leave one out", name.value);
                    problems.add(name.place, message);
                }
            }
            Err(error) => problems.add(schedule.place, error),
        }
    }
    schedules
}

fn boards(boards: Vec<PlacedValue<String>>, problems: &mut Problems) -> Vec<String> {
    for (index, board) in boards.iter().enumerate() {
        if index == COUNT {
            let message = format!("a plugin names at most {COUNT} boards: leave out the others");
            problems.add(board.place, message);
        }
        if let Err(message) = check_text("the name of a board", &board.value) {
            problems.add(board.place, message);
        }
    }
    boards.into_iter().map(|board| board.value).collect()
}

fn limits(lines: Vec<LimitLine>, problems: &mut Problems) -> WrittenLimits {
    let mut limits = WrittenLimits::default();
    for (index, LimitLine { name, value }) in lines.iter().enumerate() {
        let mut others = lines.iter().take(index);
        if others.any(|other| other.name.value == name.value) {
            let message = format!("`{}` is here a second time: leave one out", name.value);
            problems.add(name.place, message);
        }
        // A number that does not fit into 32 bits is also above every limit.
        let number = u32::try_from(value.value).unwrap_or(u32::MAX);
        match limits.set(&name.value, number) {
            Ok(()) => {}
            Err(error @ LimitError::Range { .. }) => problems.add(value.place, error),
            Err(LimitError::Unknown { key }) => {
                let message = format!("there is no limit `{key}`: use {}", limit_names());
                problems.add(name.place, message);
            }
        }
    }
    limits
}

/// Checks the file that describes the routes.
fn check_description(path: &str, package: &Package) -> Result<(), String> {
    let file = package.folder.join(path);
    let text = std::fs::read(&file)
        .map_err(|error| format!("failed to read `{path}` beside Cargo.toml: {error}"))?;
    if text.len() > SIZE {
        return Err(format!(
            "`{path}` has {} bytes: shorten it to {SIZE}",
            text.len()
        ));
    }
    match serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&text) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("`{path}` must be a JSON object: {error}")),
    }
}
