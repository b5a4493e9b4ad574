//! The text for the owner: comments about what a file asks for, and the section of the policy that grants it.

use std::fmt::Write as _;

use plugin_manifest::{Action, Capability, EventKind, Manifest, is_of_stock_plugins};

use crate::boards::BoardPatterns;

/// Lines of TOML. Texts of the file are only in comments, escaped.
#[derive(Default)]
pub(super) struct Lines(pub(super) String);

impl Lines {
    pub(super) fn comment(&mut self, text: &str) {
        self.line(&format!("# {}", plain(text)));
    }

    pub(super) fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn list(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            let values: Vec<_> = values.iter().map(|value| format!("\"{value}\"")).collect();
            self.line(&format!("{key} = [{}]", values.join(", ")));
        }
    }

    /// Describes what it asks for.
    pub(super) fn describe(&mut self, manifest: &Manifest) {
        let Manifest { name, version, .. } = manifest;
        let about = &manifest.about;
        for (what, text) in [
            ("Its own description", &about.description),
            ("Claimed maker", &about.vendor),
            ("Claimed licence", &about.licence),
            ("Claimed homepage", &about.homepage),
        ] {
            if let Some(text) = text {
                self.comment(&format!("{what}: {text}"));
            }
        }
        self.comment(&format!(
            "The plugin `{name}` {version} asks for permission:"
        ));
        for route in &manifest.routes {
            let mut text = format!("- to answer {route}");
            if is_of_stock_plugins(&route.pattern) {
                text.push_str(", where only stock plugins answer: it will not be loaded");
            }
            self.comment(&text);
        }
        let actions = manifest.provides.iter();
        for action in actions.filter(|action| action.has_one_provider()) {
            self.comment(&format!("- to {} (`{}`)", describe_action(*action), action));
        }
        for kind in manifest.event_kinds() {
            self.comment(&format!("- to {} (event `{kind}`)", kind.may()));
            let schedules = manifest.schedules.iter();
            for (name, schedule) in schedules.filter(|_| kind == EventKind::Schedule) {
                self.comment(&format!("  `{name}`: {schedule}"));
            }
        }
        for need in &manifest.capabilities {
            let text = format!("- to {} (`{}`)", need.name.may(), need.name);
            self.comment(&text);
            self.comment(&format!("  because, in its maker's words: {}", need.reason));
        }
        for limit in manifest.limits.beyond_defaults() {
            self.comment(&format!(
                "- for {} {} (the default is {})",
                limit.value, limit.range.what, limit.range.default
            ));
        }
        if !manifest.boards.is_empty() {
            let boards = manifest.boards.join(", ");
            self.comment(&format!("It is made for boards of these types: {boards}"));
        }
    }

    /// Writes the lines that grant it.
    pub(super) fn section(&mut self, manifest: &Manifest, (key, value): &(&'static str, String)) {
        self.line(&format!("[plugins.{}]", manifest.name));
        self.list(key, std::slice::from_ref(value));
        let mut paths: Vec<String> = Vec::new();
        for route in &manifest.routes {
            let path = route.pattern.to_string();
            if !is_of_stock_plugins(&route.pattern) && !paths.contains(&path) {
                paths.push(path);
            }
        }
        self.list("routes", &paths);
        let actions = manifest.provides.iter();
        let actions = actions.filter(|action| action.has_one_provider());
        let actions: Vec<_> = actions.map(|action| action.to_string()).collect();
        self.list("provides", &actions);
        if !actions.is_empty() {
            let boards = manifest
                .boards
                .iter()
                .filter(|board| is_board(board))
                .cloned();
            let boards: Vec<_> = boards.collect();
            self.list("boards", &boards);
        }
        let events = manifest.event_kinds();
        let events: Vec<_> = events.iter().map(|kind| kind.to_string()).collect();
        self.list("events", &events);
        let needs = manifest.capabilities.iter().map(|need| need.name);
        let grants: Vec<_> = needs.clone().map(|name| name.to_string()).collect();
        self.list("grants", &grants);
        for line in needs.filter_map(to_be_filled_in) {
            self.line(line);
        }
        let limits = manifest.limits.beyond_defaults();
        let limits: Vec<_> = limits
            .map(|limit| format!("{} = {}", limit.range.key, limit.value))
            .collect();
        if !limits.is_empty() {
            self.line(&format!("limits = {{ {} }}", limits.join(", ")));
        }
    }
}

/// Returns whether it can be used in the policy unchanged: a type of board, and not all of them.
fn is_board(pattern: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    pattern.bytes().all(fits) && !BoardPatterns::is_every_board(pattern)
}

/// Returns the settings of a capability that only the owner knows.
fn to_be_filled_in(capability: Capability) -> Option<&'static str> {
    match capability {
        Capability::Files => Some(
            "files = []  # the folders, for example { host = \"mnt/data/x\", guest = \"/x\", write = true }",
        ),
        Capability::Units => Some("units = []  # the units, for example \"openvpn.service\""),
        Capability::Actions => Some("actions = []  # the actions, for example \"acme-rails/set\""),
        Capability::Http => Some("http = []  # the hosts, for example \"api.acme.example\""),
        Capability::Api => Some("api = []  # the routes, for example \"GET /v2/state/status\""),
        Capability::Serial => Some("serial = []  # the ports, for example \"/dev/ttyUSB0\""),
        Capability::Dbus => Some(
            "dbus = []  # the methods, for example { service = \"org.acme.Meter\", paths = [\"/org/acme/Meter\"], members = [\"org.acme.Meter.Read\"] }",
        ),
        Capability::Gpio => Some(
            "gpio = []  # the lines, for example { name = \"relay\", chip = \"gpiochip0\", line = 17, direction = \"out\" }",
        ),
        Capability::I2c => Some(
            "i2c = []  # the chips, for example { name = \"sensor\", bus = 1, address = 0x48 }",
        ),
        Capability::Cloud => {
            Some("records = []  # the kinds of records, for example \"device_tag\"")
        }
        Capability::Led => Some("# leds = [\"ACT\"]  to give it these LEDs rather than all"),
        _ => None,
    }
}

fn describe_action(action: Action) -> &'static str {
    match action {
        Action::Identify => "show people which device this is",
        Action::ProxyRedirector => {
            "read and write the proxy of the device's connections, with its password, for every caller"
        }
        Action::BootConfig => "write the boot configuration of the board",
        Action::OsUpdate => {
            "install, start and roll back versions of the operating system, as the device's target says"
        }
        Action::ActionProvider => "do actions of its own for plugins that you let call them",
        Action::Events => "be notified of what happens on the device",
    }
}

/// Returns a text of the file without characters that end a line or reverse a terminal's text.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for char in text.chars() {
        let misleads = matches!(char,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if char.is_control() || misleads {
            let _ = write!(plain, "{}", char.escape_default());
        } else {
            plain.push(char);
        }
    }
    plain
}
