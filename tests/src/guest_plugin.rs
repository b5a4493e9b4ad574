//! The component that does what its path names, as a plugin.

/// What the component `plugin_guests` imports: the capabilities that its manifest must ask for.
pub const GUEST_CAPABILITIES: [&str; 9] = [
    "device",
    "store",
    "led",
    "clock",
    "files",
    "identify",
    "proxy-redirector",
    "units",
    "journal",
];

/// Returns the component `plugin_guests`, or one made from it, as a plugin: with a manifest that asks for everything
/// that it imports, and that has these keys, such as its name and version, and these tables, such as its routes.
#[must_use]
pub fn guest_plugin(component: &[u8], keys: &str, tables: &str) -> Vec<u8> {
    let needs = GUEST_CAPABILITIES.map(|name| format!("{{ name = \"{name}\", reason = \"r\" }}"));
    let manifest = format!(
        "{keys}interface = \"1.0.0\"\ncapabilities = [{}]\n{tables}",
        needs.join(", ")
    );
    let mut plugin = component.to_vec();
    plugin_manifest::append_section(&mut plugin, plugin_manifest::SECTION, manifest.as_bytes());
    plugin
}
