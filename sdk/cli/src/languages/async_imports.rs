//! Marks imports of a component as asynchronous functions, which they are on a device.
//!
//! JavaScript's tool runs the new component once during the build, in a runtime that cannot provide asynchronous
//! functions. So the component is built against interfaces without any, and the types of its imports are corrected
//! afterwards: in the binary format, one byte of a function's type says whether the function is asynchronous. The code
//! around it is unchanged, because a component may call an asynchronous function like any other, and then waits for it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeRef, Encoding, FromReader as _, InstanceTypeDeclaration, Parser, Payload,
};
use wit_parser::{Resolve, WorldId, WorldItem};

/// The first byte of a function's type, in the binary format of components.
const FUNCTION: u8 = 0x40;
const ASYNC_FUNCTION: u8 = 0x43;

/// Returns the asynchronous functions that a world imports, each as the interface and the function.
pub(crate) fn list(resolve: &Resolve, world: WorldId) -> BTreeSet<(String, String)> {
    let mut functions = BTreeSet::new();
    for (key, item) in &resolve.worlds[world].imports {
        if let WorldItem::Interface { id, .. } = item {
            let interface = resolve.name_world_key(key);
            let all = resolve.interfaces[*id].functions.values();
            let asynchronous = all.filter(|function| function.kind.is_async());
            functions
                .extend(asynchronous.map(|function| (interface.clone(), function.name.clone())));
        }
    }
    functions
}

/// Marks these functions as asynchronous wherever the component, or one nested in it, imports them.
///
/// # Errors
/// The file does not have the form that tools write; it is left unchanged.
pub(crate) fn declare(wasm: &mut [u8], functions: &BTreeSet<(String, String)>) -> Result<()> {
    let mut bytes = Vec::new();
    for (interface, instance) in imports(wasm)? {
        let names: BTreeSet<&str> = functions
            .iter()
            .filter(|(of, _)| *of == interface)
            .map(|(_, name)| name.as_str())
            .collect();
        bytes.extend(
            function_types(wasm, instance, &names)
                .with_context(|| format!("the import `{interface}`"))?,
        );
    }
    for byte in bytes {
        match wasm.get_mut(byte) {
            Some(kind) if *kind == FUNCTION || *kind == ASYNC_FUNCTION => *kind = ASYNC_FUNCTION,
            _ => bail!("the type of an imported function is not where it was found"),
        }
    }
    Ok(())
}

/// Returns the imports of the component and those nested in it: each interface, with the position of its instance's
/// type in the file.
fn imports(wasm: &[u8]) -> Result<Vec<(String, usize)>> {
    let mut imports = Vec::new();
    // For each component that the parser is currently in, the positions of those of its types that are types of
    // instances.
    let mut components: Vec<Vec<Option<usize>>> = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload?;
        match payload {
            Payload::Version { encoding, .. } => {
                components.push(Vec::new());
                let known = matches!(encoding, Encoding::Module | Encoding::Component);
                ensure!(known, "an unknown encoding");
            }
            Payload::End(_) => {
                components.pop();
            }
            Payload::ComponentTypeSection(section) => {
                for entry in section.into_iter_with_offsets() {
                    let (place, ty) = entry?;
                    let is_instance = matches!(ty, ComponentType::Instance(_));
                    types(&mut components)?.push(is_instance.then_some(place));
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    match alias? {
                        ComponentAlias::InstanceExport {
                            kind: ComponentExternalKind::Type,
                            ..
                        } => types(&mut components)?.push(None),
                        ComponentAlias::Outer {
                            kind: ComponentOuterAliasKind::Type,
                            count,
                            index,
                        } => {
                            let outer = components.iter().rev().nth(count as usize);
                            let place = outer.and_then(|types| types.get(index as usize).copied());
                            types(&mut components)?.push(place.flatten());
                        }
                        _ => {}
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import?;
                    match import.ty {
                        ComponentTypeRef::Type(_) => types(&mut components)?.push(None),
                        ComponentTypeRef::Instance(index) => {
                            let place = types(&mut components)?.get(index as usize);
                            if let Some(Some(place)) = place {
                                imports.push((import.name.name.to_owned(), *place));
                            }
                        }
                        _ => {}
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    if export?.kind == ComponentExternalKind::Type {
                        types(&mut components)?.push(None);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(imports)
}

/// Returns the types of the innermost component.
fn types(components: &mut [Vec<Option<usize>>]) -> Result<&mut Vec<Option<usize>>> {
    components
        .last_mut()
        .context("a section outside of a component")
}

/// Returns the positions of the types of the functions with these names, in the type of an instance that begins at
/// `place`.
fn function_types(wasm: &[u8], place: usize, names: &BTreeSet<&str>) -> Result<Vec<usize>> {
    let bytes = wasm.get(place..).context("the type is not in the file")?;
    let mut reader = BinaryReader::new(bytes, place);
    // The byte that identifies the kind of type.
    reader.read_u8()?;
    let count = reader.read_var_u32()?;
    let mut types: Vec<Option<usize>> = Vec::new();
    let mut found = Vec::new();
    let mut others = BTreeSet::new();
    for _ in 0..count {
        let at = reader.original_position();
        match InstanceTypeDeclaration::from_reader(&mut reader)? {
            // Skips the byte that introduces the declaration of a type.
            InstanceTypeDeclaration::Type(ComponentType::Func(_)) => types.push(Some(at + 1)),
            InstanceTypeDeclaration::Type(_)
            | InstanceTypeDeclaration::Alias(
                ComponentAlias::InstanceExport {
                    kind: ComponentExternalKind::Type,
                    ..
                }
                | ComponentAlias::Outer {
                    kind: ComponentOuterAliasKind::Type,
                    ..
                },
            )
            | InstanceTypeDeclaration::Export {
                ty: ComponentTypeRef::Type(_),
                ..
            } => types.push(None),
            InstanceTypeDeclaration::Export {
                name,
                ty: ComponentTypeRef::Func(index),
            } => {
                let ty = types.get(index as usize).copied().flatten();
                let ty = ty.with_context(|| format!("`{}` has no type", name.name))?;
                if names.contains(name.name) {
                    found.push(ty);
                } else {
                    others.insert(ty);
                }
            }
            _ => {}
        }
    }
    let is_shared = found.iter().any(|ty| others.contains(ty));
    ensure!(
        !is_shared,
        "a function that waits shares its type with one that does not"
    );
    Ok(found)
}
