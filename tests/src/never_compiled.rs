//! Components that are in no cache of native code, which tests share.

use std::time::SystemTime;

/// Returns the component with a custom section at its beginning that no earlier one had. Sections at the end would not
/// do: they are no part of what is compiled.
#[must_use]
pub fn never_compiled(component: &[u8]) -> Vec<u8> {
    let now = format!("{:?}", SystemTime::now());
    let mut stamp = Vec::new();
    plugin_manifest::append_section(&mut stamp, "stamp", now.as_bytes());
    let mut file = component.to_vec();
    let beginning = plugin_manifest::COMPONENT.len();
    file.splice(beginning..beginning, stamp);
    file
}
