//! What a file asks of its device, for the owner who has to decide: in plain words, and as the policy lines that grant
//! it.
//!
//! The file comes from a stranger. Its texts are only shown in comments, escaped, so that none of them passes for a
//! line of the policy or for something else in a terminal.

mod key_file;

use std::fmt::Write as _;
use std::path::Path;

use crate::boards::BoardPatterns;
use crate::keys::NamedKeys;
use crate::signature::Signatures;
use crate::source_file::{SourceError, SourceFile};
use key_file::{KeyFile, not_signed};
use plugin_manifest::{Action, Capability, EventKind, Manifest, is_of_stock_plugins};

/// Why there are no lines to trust the plugin.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file of the plugin.
    #[error(transparent)]
    Plugin(#[from] SourceError),
    /// The file of its maker's key.
    #[error("`{file}` is not a key that can be trusted: {reason}")]
    Key {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The maker's key did not sign the plugin.
    #[error("`{file}` is not signed with {key}: {reason}")]
    NotSigned {
        /// The file of the plugin.
        file: String,
        /// The key, with its file.
        key: String,
        /// What signed the plugin instead, and what to do.
        reason: String,
    },
}

/// Returns what the plugin in `file` asks for, in comments, and the section of the policy that grants it to this file
/// only, or, if a key of the policy has signed the file, to everything signed with that key: TOML that can be added to
/// `policy`. `stock_plugins` is the layout's list. `maker_key` is a file with the public key of the plugin's maker: the
/// lines are then for everything signed with that key, and add its name if the policy does not have it yet.
///
/// # Errors
/// [`TrustError`]: a file cannot be read, the plugin has no usable manifest, or it is not signed with the key.
pub fn trust_lines(
    file: &Path,
    policy: &Path,
    stock_plugins: &Path,
    maker_key: Option<&Path>,
) -> Result<String, TrustError> {
    let source = SourceFile::read(file)?;
    let trusted = trust(&source, policy, stock_plugins, maker_key)?;
    let mut lines = Lines(trusted.request);
    if has_section(&table(policy), &trusted.name) {
        lines.comment(&format!(
            "The policy has a section [plugins.{}] already: put these lines into it.",
            trusted.name
        ));
    }
    Ok(lines.0 + &trusted.section)
}

/// What a file asks for.
pub(crate) struct TrustedPlugin {
    /// The plugin's name.
    pub(crate) name: String,
    /// How the section pins it: `keys` or `sha256`, and the name or the digest.
    pub(crate) pin: (&'static str, String),
    /// What it asks for, in comments.
    pub(crate) request: String,
    /// The section of the policy that grants it, after that of its maker's key if the policy does not have it yet.
    pub(crate) section: String,
}

/// Like [`trust_lines`], but also returns which plugin the lines are for.
///
/// # Errors
/// [`TrustError`].
pub(crate) fn trust(
    source: &SourceFile,
    policy: &Path,
    stock_plugins: &Path,
    maker_key: Option<&Path>,
) -> Result<TrustedPlugin, TrustError> {
    let manifest = &source.manifest;
    let mut lines = Lines::default();
    lines.describe(manifest);
    let name = &manifest.name;
    if has_section(&table(stock_plugins), name) {
        lines.comment(&format!(
            "`{name}` is the name of a stock plugin: remove that one's file, or neither is loaded."
        ));
    }
    let request = std::mem::take(&mut lines.0);
    let policy = table(policy);
    let named = policy.get("keys").cloned();
    let named: NamedKeys = named
        .and_then(|keys| keys.try_into().ok())
        .unwrap_or_default();
    let mut keys: Vec<_> = named.public_keys().cloned().collect();
    let pin = if let Some(path) = maker_key {
        let failed = |reason| TrustError::Key {
            file: path.display().to_string(),
            reason,
        };
        let maker = KeyFile::read(path).map_err(failed)?;
        keys.push(maker.public.key.clone());
        let signatures = source.signatures(&keys);
        if !signatures.keys.contains(&maker.public.key) {
            return Err(not_signed(source, path, &maker, &named, &signatures));
        }
        lines.pin_by_maker(&named, &maker).map_err(failed)?
    } else {
        lines.pin(&named, &source.signatures(&keys), &source.digest)
    };
    lines.section(manifest, &pin);
    Ok(TrustedPlugin {
        name: manifest.name.clone(),
        pin,
        request,
        section: lines.0,
    })
}

/// Parses a TOML file. One that cannot be read counts as empty, and is refused elsewhere.
pub(crate) fn table(file: &Path) -> toml::Table {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Returns whether there is a table `[plugins.NAME]`.
pub(crate) fn has_section(table: &toml::Table, name: &str) -> bool {
    let plugins = table.get("plugins").and_then(toml::Value::as_table);
    plugins.is_some_and(|plugins| plugins.contains_key(name))
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn comment(&mut self, text: &str) {
        self.line(&format!("# {}", plain(text)));
    }

    fn line(&mut self, text: &str) {
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
    fn describe(&mut self, manifest: &Manifest) {
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
        self.comment(&format!("The plugin `{name}` {version} asks:"));
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
                "- for {} {} in a call, where others have {}",
                limit.value, limit.range.what, limit.range.default
            ));
        }
        if !manifest.boards.is_empty() {
            let boards = manifest.boards.join(", ");
            self.comment(&format!("It is made for boards of these types: {boards}"));
        }
    }

    /// Shows who has signed it. Returns what the policy can pin it by: a key and its values.
    fn pin(
        &mut self,
        named: &NamedKeys,
        signatures: &Signatures,
        digest: &str,
    ) -> (&'static str, String) {
        if let Some(name) = named.signer(signatures) {
            self.comment(&format!(
                "It is signed with `{name}` of the policy: the lines are for all that this key signs under this name."
            ));
            return ("keys", name.to_owned());
        }
        if signatures.are_there() {
            let reason = named.why_not_signed([], signatures);
            self.comment(&format!("No key of the policy pins it: {reason}."));
            self.comment(
                "To trust its maker's key rather than this file: `supervisor plugins grant FILE --key MAKER.pub`.",
            );
        }
        ("sha256", digest.to_owned())
    }

    /// Names the maker's key, which has signed the plugin, if the policy does not yet. Returns what the plugin is pinned
    /// by.
    ///
    /// # Errors
    /// Why the plugin cannot be pinned by that key.
    fn pin_by_maker(
        &mut self,
        named: &NamedKeys,
        maker: &KeyFile,
    ) -> Result<(&'static str, String), String> {
        if named.is_revoked(&maker.public.key) {
            return Err("the policy has revoked it".to_owned());
        }
        let known = named.name_of(&maker.public.key);
        let name = known.unwrap_or(&maker.name).to_owned();
        if known.is_none() && named.names().any(|other| *other == name) {
            return Err(format!(
                "[keys.{name}] of the policy is another key: give the file another name"
            ));
        }
        self.comment(&format!(
            "It is signed with `{name}`: the lines are for all that this key signs under this name."
        ));
        if known.is_none() {
            self.line(&format!("[keys.{name}]"));
            self.line(&format!("public = \"{}\"", maker.public.base64));
            self.line("");
        }
        Ok(("keys", name))
    }

    /// Writes the lines that grant it.
    fn section(&mut self, manifest: &Manifest, (key, value): &(&'static str, String)) {
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
            "read and write the proxy of the device's connections, with its password, for all who ask for that"
        }
        Action::BootConfig => "write the boot configuration of the board",
        Action::OsUpdate => {
            "install, start and take back versions of the operating system, as the device's target says"
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

#[cfg(test)]
mod tests;
