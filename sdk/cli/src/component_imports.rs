//! The interfaces that a component imports.

/// Returns the interfaces that a component imports, sorted.
pub(crate) fn imports(wasm: &[u8]) -> Vec<String> {
    let mut imports = Vec::new();
    let mut depth = 0_u32;
    for payload in wasmparser::Parser::new(0).parse_all(wasm).flatten() {
        match payload {
            wasmparser::Payload::ModuleSection { .. }
            | wasmparser::Payload::ComponentSection { .. } => depth += 1,
            wasmparser::Payload::End(_) => depth = depth.saturating_sub(1),
            wasmparser::Payload::ComponentImportSection(section) if depth == 0 => {
                let names = section.into_iter().flatten();
                imports.extend(names.map(|import| import.name.name.to_owned()));
            }
            _ => {}
        }
    }
    imports.sort();
    imports
}
