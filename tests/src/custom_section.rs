//! Custom sections of components, such as the manifest of a plugin.

/// Returns `component` with a custom section at its end.
#[must_use]
pub fn with_section(component: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    leb128(&mut section, name.len());
    section.extend(name.as_bytes());
    section.extend(content);
    let mut file = component.to_vec();
    file.push(0);
    leb128(&mut file, section.len());
    file.extend(section);
    file
}

fn leb128(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}
