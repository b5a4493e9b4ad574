//! The interfaces that a component imports.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeRef, InstanceTypeDeclaration, Parser, Payload,
};

/// Returns the interfaces that a component imports, sorted.
pub(crate) fn imports(wasm: &[u8]) -> Vec<String> {
    let mut imports = Vec::new();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(wasm).flatten() {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                let names = section.into_iter().flatten();
                imports.extend(names.map(|import| import.name.name.to_owned()));
            }
            _ => {}
        }
    }
    imports.sort();
    imports
}

/// Returns the interfaces that a component imports, without those that contain only types: nothing can be reached through
/// them, so a device lets every plugin import them. The component need not be valid.
pub(crate) fn imports_with_functions(wasm: &[u8]) -> Vec<String> {
    let mut imports = Vec::new();
    // Whether each type of the outermost component is an instance that contains only types.
    let mut types = Vec::new();
    let mut depth = 0_u32;
    for payload in Parser::new(0).parse_all(wasm).flatten() {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            Payload::ComponentTypeSection(section) => {
                types.extend(section.into_iter().flatten().map(|ty| has_only_types(&ty)));
            }
            Payload::ComponentAliasSection(section) => {
                let aliases = section.into_iter().flatten();
                types.extend(aliases.filter(is_of_type).map(|_| false));
            }
            Payload::ComponentExportSection(section) => {
                let exports = section.into_iter().flatten();
                let exports = exports.filter(|export| export.kind == ComponentExternalKind::Type);
                types.extend(exports.map(|_| false));
            }
            Payload::ComponentImportSection(section) => {
                for import in section.into_iter().flatten() {
                    let is_reached = match import.ty {
                        ComponentTypeRef::Type(_) => {
                            types.push(false);
                            false
                        }
                        ComponentTypeRef::Instance(ty) => types.get(ty as usize) != Some(&true),
                        _ => true,
                    };
                    if is_reached {
                        imports.push(import.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    imports.sort();
    imports
}

fn has_only_types(ty: &ComponentType<'_>) -> bool {
    let ComponentType::Instance(declarations) = ty else {
        return false;
    };
    declarations.iter().all(|declaration| match declaration {
        InstanceTypeDeclaration::Export { ty, .. } => matches!(ty, ComponentTypeRef::Type(_)),
        _ => true,
    })
}

/// Returns whether an alias adds a type to those of its component.
fn is_of_type(alias: &ComponentAlias<'_>) -> bool {
    matches!(
        alias,
        ComponentAlias::InstanceExport {
            kind: ComponentExternalKind::Type,
            ..
        } | ComponentAlias::Outer {
            kind: ComponentOuterAliasKind::Type,
            ..
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_that_contain_only_types_are_left_out() {
        let text = r#"(component
            (import "a:b/types" (instance $types (export "t" (type (sub resource)))))
            (alias export $types "t" (type $t))
            (import "a:b/more-types" (instance (alias outer 1 $t (type $u)) (export "t" (type (eq $u)))))
            (import "a:b/calls" (instance (export "f" (func))))
            (component (import "a:b/nested" (func)))
        )"#;
        let wasm = wat::parse_str(text).unwrap();
        assert_eq!(imports_with_functions(&wasm), ["a:b/calls"]);
        assert_eq!(imports(&wasm), ["a:b/calls", "a:b/more-types", "a:b/types"]);
    }
}
