//! Puts a component and the component of its stubs into one, which imports what the stubs do not provide.
//!
//! A component of the tools begins with its imports and the types that these need. The composition begins with the same
//! types under the same numbers, so they can be copied as they are; what only belongs to a missing import becomes an empty
//! type. Only instances have other numbers, since there are fewer.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use wasm_encoder::{
    Alias, ComponentAliasSection, ComponentExportKind, ComponentExportSection,
    ComponentInstanceSection, ComponentSectionId, RawSection,
};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentTypeRef, FromReader, Parser, Payload,
    SectionLimited,
};

/// The type of an instance without exports, and the type `bool`, in the binary format.
const EMPTY_INSTANCE: [u8; 2] = [0x42, 0x00];
const BOOL: [u8; 1] = [0x7f];
/// The numbers of the two components in the composition.
const STUB: u32 = 0;
const ORIGINAL: u32 = 1;

/// A part of the beginning of a component, in the binary format.
enum Item<'a> {
    Type(&'a [u8]),
    Import(Import<'a>),
    /// The name of an imported instance's type.
    Alias {
        instance: u32,
        name: &'a str,
    },
}

/// An imported instance.
struct Import<'a> {
    name: &'a str,
    bytes: &'a [u8],
    /// The number of its type.
    ty: u32,
}

/// What a composition needs to know about a component.
#[derive(Default)]
struct Outline<'a> {
    beginning: Vec<Item<'a>>,
    exports: Vec<(&'a str, ComponentExportKind)>,
}

/// Returns a component that consists of `component` and of `stub`, which provides those imports for which `is_missing`
/// returns true.
///
/// # Errors
/// A component does not have the form that the tools write.
pub(super) fn compose(
    component: &[u8],
    stub: &[u8],
    is_missing: impl Fn(&str) -> bool,
) -> Result<Vec<u8>> {
    let outline = Outline::new(component)?;
    let mut composition = wasm_encoder::Component::new();
    let imports = copy_beginning(&mut composition, &outline, &is_missing)?;
    for content in [stub, component] {
        composition.section(&RawSection {
            id: ComponentSectionId::Component.into(),
            data: content,
        });
    }

    let mut count = u32::try_from(imports.len())?;
    let mut number = || {
        count += 1;
        count - 1
    };
    let from_device = |name: &str| {
        let index = imports.get(name).copied();
        index.with_context(|| format!("nothing provides `{name}`"))
    };
    let arguments = Outline::new(stub)?
        .imports()
        .map(|import| Ok((import.name, from_device(import.name)?)))
        .collect::<Result<Vec<_>>>()?;
    instantiate(&mut composition, STUB, arguments);
    let stubs = number();

    let mut aliases = ComponentAliasSection::new();
    let mut alias = |instance: u32, name: &str| {
        aliases.alias(Alias::InstanceExport {
            instance,
            kind: ComponentExportKind::Instance,
            name,
        });
        number()
    };
    let mut arguments = Vec::new();
    for import in outline.imports() {
        let index = if is_missing(import.name) {
            alias(stubs, import.name)
        } else {
            from_device(import.name)?
        };
        arguments.push((import.name, index));
    }
    composition.section(&aliases);
    instantiate(&mut composition, ORIGINAL, arguments);
    let original = number();

    let mut aliases = ComponentAliasSection::new();
    let mut exports = ComponentExportSection::new();
    let mut functions = 0;
    for (name, kind) in &outline.exports {
        aliases.alias(Alias::InstanceExport {
            instance: original,
            kind: *kind,
            name,
        });
        let index = if *kind == ComponentExportKind::Instance {
            number()
        } else {
            functions += 1;
            functions - 1
        };
        exports.export(*name, *kind, index, None);
    }
    composition.section(&aliases).section(&exports);
    Ok(composition.finish())
}

/// Copies the beginning of a component without the missing imports. Returns the numbers of the others.
fn copy_beginning<'a>(
    composition: &mut wasm_encoder::Component,
    outline: &Outline<'a>,
    is_missing: impl Fn(&str) -> bool,
) -> Result<BTreeMap<&'a str, u32>> {
    let types_of = |missing: bool| -> BTreeSet<u32> {
        let imports = outline.imports();
        let imports = imports.filter(|import| is_missing(import.name) == missing);
        imports.map(|import| import.ty).collect()
    };
    let missing_types = types_of(true);
    ensure!(
        missing_types.is_disjoint(&types_of(false)),
        "two imports have the same type"
    );
    let mut imports = BTreeMap::new();
    // The new number of each imported instance; `None` for a missing one.
    let mut instances = Vec::new();
    let mut types = 0;
    for item in &outline.beginning {
        match item {
            Item::Type(bytes) => {
                let is_empty = missing_types.contains(&types);
                let bytes = if is_empty { &EMPTY_INSTANCE[..] } else { bytes };
                add_item(composition, ComponentSectionId::Type, bytes);
                types += 1;
            }
            Item::Import(import) if is_missing(import.name) => instances.push(None),
            Item::Import(import) => {
                let index = u32::try_from(imports.len())?;
                add_item(composition, ComponentSectionId::Import, import.bytes);
                imports.insert(import.name, index);
                instances.push(Some(index));
            }
            Item::Alias { instance, name } => {
                let instance = instances.get(*instance as usize);
                match instance.context("an alias of an instance that is not imported")? {
                    // Only types of missing instances refer to it.
                    None => add_item(composition, ComponentSectionId::Type, &BOOL),
                    Some(instance) => {
                        let mut aliases = ComponentAliasSection::new();
                        aliases.alias(Alias::InstanceExport {
                            instance: *instance,
                            kind: ComponentExportKind::Type,
                            name,
                        });
                        composition.section(&aliases);
                    }
                }
                types += 1;
            }
        }
    }
    Ok(imports)
}

/// Adds a section with one item.
fn add_item(composition: &mut wasm_encoder::Component, id: ComponentSectionId, item: &[u8]) {
    let data = [&[1_u8][..], item].concat();
    composition.section(&RawSection {
        id: id.into(),
        data: &data,
    });
}

fn instantiate(
    composition: &mut wasm_encoder::Component,
    component: u32,
    arguments: Vec<(&str, u32)>,
) {
    let arguments = arguments
        .into_iter()
        .map(|(name, index)| (name, ComponentExportKind::Instance, index));
    let mut instances = ComponentInstanceSection::new();
    instances.instantiate(component, arguments);
    composition.section(&instances);
}

impl<'a> Outline<'a> {
    fn new(wasm: &'a [u8]) -> Result<Outline<'a>> {
        let mut outline = Outline::default();
        let mut depth = 0_u32;
        let mut is_beginning = true;
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                _ if depth > 1 => {}
                Payload::ComponentImportSection(section) => {
                    ensure!(
                        is_beginning,
                        "an import after the first part of the component"
                    );
                    for (import, bytes) in items(wasm, section)? {
                        let ComponentTypeRef::Instance(ty) = import.ty else {
                            bail!("the import `{}` is not an instance", import.name.name);
                        };
                        let name = import.name.name;
                        let import = Import { name, bytes, ty };
                        outline.beginning.push(Item::Import(import));
                    }
                }
                Payload::ComponentTypeSection(section) if is_beginning => {
                    let types = items(wasm, section)?.into_iter();
                    outline
                        .beginning
                        .extend(types.map(|(_, bytes)| Item::Type(bytes)));
                }
                Payload::ComponentAliasSection(section) if is_beginning => {
                    for alias in section {
                        let ComponentAlias::InstanceExport {
                            kind: ComponentExternalKind::Type,
                            instance_index: instance,
                            name,
                        } = alias?
                        else {
                            // Aliases of functions come after the imports.
                            is_beginning = false;
                            break;
                        };
                        outline.beginning.push(Item::Alias { instance, name });
                    }
                }
                Payload::ComponentExportSection(section) => {
                    is_beginning = false;
                    for export in section {
                        let export = export?;
                        let name = export.name.name;
                        let kind = match export.kind {
                            ComponentExternalKind::Instance => ComponentExportKind::Instance,
                            ComponentExternalKind::Func => ComponentExportKind::Func,
                            _ => bail!("the export `{name}` is neither an instance nor a function"),
                        };
                        outline.exports.push((name, kind));
                    }
                }
                Payload::CustomSection(_) => {}
                _ => is_beginning = false,
            }
        }
        Ok(outline)
    }

    fn imports(&self) -> impl Iterator<Item = &Import<'a>> {
        self.beginning.iter().filter_map(|item| match item {
            Item::Import(import) => Some(import),
            Item::Type(_) | Item::Alias { .. } => None,
        })
    }
}

/// Returns the items of a section, each with its bytes.
fn items<'a, T: FromReader<'a>>(
    wasm: &'a [u8],
    section: SectionLimited<'a, T>,
) -> Result<Vec<(T, &'a [u8])>> {
    let end = section.range().end;
    let mut items = Vec::new();
    for item in section.into_iter_with_offsets() {
        items.push(item?);
    }
    let ends = items.iter().skip(1).map(|(start, _)| *start);
    let ends: Vec<usize> = ends.chain([end]).collect();
    let items = items.into_iter().zip(ends).map(|((start, item), end)| {
        let bytes = wasm.get(start..end);
        Ok((item, bytes.context("a section ends after the file")?))
    });
    items.collect()
}
