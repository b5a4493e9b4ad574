//! The parts of a declaration, from the macro's input or from `plugin.toml`.

use plugin_manifest::{Action, PluginMetadata};

use crate::problems::{Place, PlacedValue};

/// A part, for example `routes`.
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    /// The place of its name.
    pub(crate) place: Place,
    /// `None` if it could not be read.
    pub(crate) content: Option<Content>,
}

/// The content of a part, not checked yet.
pub(crate) enum Content {
    Text(PlacedValue<String>),
    Capabilities(Vec<CapabilityLine>),
    Routes(Vec<RouteLine>),
    Provider(syn::Path),
    Boards(Vec<PlacedValue<String>>),
    Events(Vec<PlacedValue<String>>),
    Schedules(Vec<ScheduleLine>),
    Actions(Vec<ActionLine>),
    Limits(Vec<LimitLine>),
}

/// `store => "keeps the counters"`
pub(crate) struct CapabilityLine {
    pub(crate) name: PlacedValue<String>,
    pub(crate) reason: PlacedValue<String>,
}

/// `GET "/v3/hello/:name" => hello`
pub(crate) struct RouteLine {
    pub(crate) method: PlacedValue<String>,
    pub(crate) path: PlacedValue<String>,
    pub(crate) handler: syn::Path,
}

/// `set => set_rail`
pub(crate) struct ActionLine {
    pub(crate) name: PlacedValue<String>,
    pub(crate) function: syn::Path,
}

/// `nightly => "daily 03:30"`
pub(crate) struct ScheduleLine {
    pub(crate) name: PlacedValue<String>,
    pub(crate) schedule: PlacedValue<String>,
}

/// `wall_ms: 5000`
pub(crate) struct LimitLine {
    pub(crate) name: PlacedValue<String>,
    pub(crate) value: PlacedValue<u64>,
}

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    Capabilities,
    Routes,
    Openapi,
    Provides(Action),
    Events,
    Schedules,
    Actions,
    Boards,
    Limits,
    About(AboutField),
}

/// A text about the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AboutField {
    Description,
    Vendor,
    Licence,
    Homepage,
}

impl PartKind {
    /// All parts, by their names in the macro.
    const NAMES: &[(&str, PartKind)] = &[
        ("capabilities", PartKind::Capabilities),
        ("routes", PartKind::Routes),
        ("openapi", PartKind::Openapi),
        ("identify", PartKind::Provides(Action::Identify)),
        (
            "proxy_redirector",
            PartKind::Provides(Action::ProxyRedirector),
        ),
        ("boot_config", PartKind::Provides(Action::BootConfig)),
        ("os_update", PartKind::Provides(Action::OsUpdate)),
        ("events", PartKind::Events),
        ("schedules", PartKind::Schedules),
        ("actions", PartKind::Actions),
        ("on_event", PartKind::Provides(Action::Events)),
        ("boards", PartKind::Boards),
        ("limits", PartKind::Limits),
        ("description", PartKind::About(AboutField::Description)),
        ("vendor", PartKind::About(AboutField::Vendor)),
        ("licence", PartKind::About(AboutField::Licence)),
        ("license", PartKind::About(AboutField::Licence)),
        ("homepage", PartKind::About(AboutField::Homepage)),
    ];

    /// Finds a part by its name, which has `_` in place of `-`.
    pub(crate) fn find(name: &str) -> Option<PartKind> {
        let mut names = PartKind::NAMES.iter();
        names
            .find(|(other, _)| *other == name)
            .map(|(_, kind)| *kind)
    }

    pub(crate) fn name(self) -> &'static str {
        let mut names = PartKind::NAMES.iter();
        names
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| *name)
    }

    /// Returns an example of how it is written.
    pub(crate) fn example(self) -> &'static str {
        match self {
            PartKind::Capabilities => "capabilities: { store => \"why it is needed\" }",
            PartKind::Routes => "routes: { GET \"/v3/hello\" => hello }",
            PartKind::Openapi => "openapi: \"openapi.json\"",
            PartKind::Provides(Action::Identify) => "identify => blink",
            PartKind::Provides(Action::ProxyRedirector) => "proxy_redirector => MyRedirector",
            PartKind::Provides(Action::BootConfig) => "boot_config => MyFirmware",
            PartKind::Provides(Action::OsUpdate) => "os_update => MySlots",
            PartKind::Events => "events: [\"services\"]",
            PartKind::Schedules => "schedules: { nightly => \"daily 03:30\" }",
            PartKind::Actions => "actions: { set => set_rail }",
            // It has no part of its own.
            PartKind::Provides(Action::ActionProvider) => PartKind::Actions.example(),
            PartKind::Provides(Action::Events) => "on_event => watch",
            PartKind::Boards => "boards: [\"acme-*\"]",
            PartKind::Limits => "limits: { wall_ms: 5000 }",
            PartKind::About(AboutField::Description) => "description: \"Shows the power rails\"",
            PartKind::About(AboutField::Vendor) => "vendor: \"Acme\"",
            PartKind::About(AboutField::Licence) => "licence: \"Apache-2.0\"",
            PartKind::About(AboutField::Homepage) => "homepage: \"https://example.com\"",
        }
    }

    /// Lists the names of all parts, for messages.
    pub(crate) fn list() -> String {
        let names = PartKind::NAMES.iter().map(|(name, _)| *name);
        let names: Vec<String> = names
            .filter(|name| *name != "license")
            .map(|name| format!("`{name}`"))
            .collect();
        names.join(", ")
    }
}

impl AboutField {
    pub(crate) fn set(self, about: &mut PluginMetadata, text: String) {
        let field = match self {
            AboutField::Description => &mut about.description,
            AboutField::Vendor => &mut about.vendor,
            AboutField::Licence => &mut about.licence,
            AboutField::Homepage => &mut about.homepage,
        };
        *field = Some(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_describes_each_part() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plugins.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (_, table) = page.split_once("| Part | Declares |").unwrap();
        let (table, _) = table.split_once("\n\n").unwrap();
        for (name, kind) in PartKind::NAMES {
            let begins = [format!("`{name}: "), format!("`{name} => ")];
            let is_listed = begins.iter().any(|begin| table.contains(begin));
            // Another spelling of `licence`.
            assert!(is_listed || *name == "license", "{}", kind.example());
        }
    }
}
