//! The interfaces of `wit/` from which code is generated, and their types in Rust.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use wasmtime_wit_parser::{
    Docs, Function, FunctionKind, InterfaceId, Resolve, Type, TypeDef, TypeDefKind, TypeOwner,
};

/// The interfaces whose code is written by hand, because they pass more than values: resources, streams, or types that
/// they share with the provider of an action.
const BY_HAND: [&str; 5] = [
    "journal",
    "led",
    "proxy-redirector",
    "serial",
    "update-lock",
];

/// A row of `wit/capabilities.rs`: where the capability is from, and its names in Rust and elsewhere.
type Row = (&'static str, &'static str, &'static str);

macro_rules! rows {
    ($(
        $(#[$doc:meta])*
        $origin:ident $capability:ident $module:ident $name:literal $([$($import:literal),*])? may $may:literal;
    )*) => {
        const ROWS: &[Row] = &[$((stringify!($origin), stringify!($capability), $name),)*];
    };
}

include!("../../../wit/capabilities.rs");
capabilities!(rows);

/// An interface of `wit/` that belongs to a capability.
pub struct Interface<'a> {
    pub(crate) resolve: &'a Resolve,
    pub(crate) id: InterfaceId,
    /// As in `wit/`.
    pub(crate) name: &'static str,
    /// The variant of `Capability`.
    pub(crate) capability: &'static str,
}

/// A case of a variant or an enum: its name in Rust, and its content.
pub(crate) type Case<'a> = (String, &'a Docs, Option<Type>);

/// Returns the code that `generate` generates from all interfaces in a folder that are not written by hand.
pub(crate) fn generate(
    folder: &Path,
    generate: fn(&[Interface<'_>]) -> Result<String>,
) -> Result<String> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder)?;
    let interfaces = &resolve.packages[package].interfaces;
    let ours = ROWS.iter().filter(|(origin, ..)| *origin == "ours");
    let generated = ours.filter(|(_, _, name)| !BY_HAND.contains(name));
    let generated = generated.map(|&(_, capability, name)| {
        let id = interfaces.get(name).with_context(|| {
            format!("`wit/capabilities.rs` has a row for `{name}`, but `wit/{name}.wit` has no interface of this name")
        })?;
        Ok(Interface {
            resolve: &resolve,
            id: *id,
            name,
            capability,
        })
    });
    generate(&generated.collect::<Result<Vec<_>>>()?)
}

impl Interface<'_> {
    /// Returns the name of its modules.
    pub(crate) fn module(&self) -> String {
        snake_case(self.name)
    }

    /// Returns the text to put in front of an error about something in the interface.
    pub(crate) fn place(&self, of_interface: &str) -> String {
        format!(
            "`{of_interface}` in `wit/{}.wit` has no generated code (if the interface passes more than values, add it to \
             `BY_HAND` in host/capability-codegen/src/interface.rs, and write its code as for `led`)",
            self.name
        )
    }

    pub(crate) fn docs(&self) -> &Docs {
        &self.resolve.interfaces[self.id].docs
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.resolve.interfaces[self.id].functions.values()
    }

    /// Returns the types of its own, with their names in Rust.
    pub(crate) fn types(&self) -> impl Iterator<Item = (String, &TypeDef)> {
        let types = self.resolve.interfaces[self.id].types.iter();
        let types = types.map(|(name, id)| (pascal_case(name), &self.resolve.types[*id]));
        types.filter(|(_, definition)| self.is_own(definition))
    }

    /// Returns the type of the calls of a function, such as `MetricsSetGauge`.
    pub(crate) fn call(&self, function: &Function) -> String {
        let name = pascal_case(&function.name);
        // The only function of `identify` is `identify`.
        if name == self.capability {
            return name;
        }
        format!("{}{name}", self.capability)
    }

    /// Returns whether a function is asynchronous for the guest.
    pub(crate) fn is_async(&self, function: &Function) -> Result<bool> {
        match function.kind {
            FunctionKind::Freestanding => Ok(false),
            FunctionKind::AsyncFreestanding => Ok(true),
            _ => bail!("it belongs to a resource"),
        }
    }

    /// Returns what a function returns if it does not fail, and its error if it can fail.
    pub(crate) fn result(&self, function: &Function) -> (Option<Type>, Option<Option<Type>>) {
        match function
            .result
            .map(|result| (result, self.definition(result)))
        {
            Some((
                _,
                Some(TypeDef {
                    kind: TypeDefKind::Result(result),
                    ..
                }),
            )) => (result.ok, Some(result.err)),
            result => (result.map(|(result, _)| result), None),
        }
    }

    /// Returns a type in Rust, if those of the interface are in the module `path`. No type is that of no value.
    pub(crate) fn in_rust(&self, kind: Option<Type>, path: &str) -> Result<String> {
        let Some(kind) = kind else {
            return Ok("()".to_owned());
        };
        let Some(definition) = self.definition(kind) else {
            return scalar(self.resolved(kind)).map(str::to_owned);
        };
        let parts = self.parts(kind).map(|part| self.in_rust(part, path));
        let parts = parts.collect::<Result<Vec<_>>>()?.join(", ");
        Ok(match (&definition.kind, &definition.name) {
            (_, Some(name)) if self.is_own(definition) => format!("{path}{}", pascal_case(name)),
            (TypeDefKind::Option(_), _) => format!("Option<{parts}>"),
            (TypeDefKind::List(_), _) => format!("Vec<{parts}>"),
            (TypeDefKind::Result(_), _) => format!("Result<{parts}>"),
            (TypeDefKind::Tuple(_), _) => {
                ensure!(
                    !self.contains_own(kind),
                    "a tuple cannot contain a type of the interface: declare a record in its place"
                );
                format!("({parts},)")
            }
            (other, _) => bail!("a {} that is not its own cannot be sent", other.as_str()),
        })
    }

    /// Returns the expression that converts the value of `expression` into the type of the other end.
    pub(crate) fn converted(&self, kind: Option<Type>, expression: &str) -> String {
        let Some(kind) = kind.filter(|kind| self.contains_own(*kind)) else {
            return expression.to_owned();
        };
        let part = |name: &str| {
            let part = self.parts(kind).next().flatten();
            self.converted(part, name)
        };
        match self.definition(kind).map(|definition| &definition.kind) {
            Some(TypeDefKind::List(_)) => format!(
                "{expression}.into_iter().map(|entry| {}).collect()",
                part("entry")
            ),
            Some(TypeDefKind::Option(_)) => {
                format!("{expression}.map(|value| {})", part("value"))
            }
            _ => format!("{expression}.into()"),
        }
    }

    /// Returns whether it is a list whose number of entries must be limited in a message: any but bytes.
    ///
    /// # Errors
    /// If there is such a list inside it, where the number is not limited.
    pub(crate) fn is_list(&self, kind: Type) -> Result<bool> {
        for part in self.parts(kind).flatten() {
            ensure!(
                !self.is_list(part)?,
                "a list inside another value has no limit in messages: declare a record with the list as a field"
            );
        }
        Ok(self.entry(kind).is_some_and(|entry| entry != Type::U8))
    }

    /// Returns whether a value is `list<u8>` or `option<list<u8>>`.
    pub(crate) fn is_bytes(&self, kind: Type) -> bool {
        let list = match self.definition(kind).map(|definition| &definition.kind) {
            Some(TypeDefKind::Option(inner)) => *inner,
            _ => kind,
        };
        self.entry(list) == Some(Type::U8)
    }

    /// Returns the type of a list's entries; `None` for anything else.
    fn entry(&self, kind: Type) -> Option<Type> {
        match self.definition(kind)?.kind {
            TypeDefKind::List(entry) => Some(self.resolved(entry)),
            _ => None,
        }
    }

    fn resolved(&self, mut kind: Type) -> Type {
        while let Type::Id(id) = kind
            && let TypeDefKind::Type(named) = self.resolve.types[id].kind
        {
            kind = named;
        }
        kind
    }

    fn definition(&self, kind: Type) -> Option<&TypeDef> {
        match self.resolved(kind) {
            Type::Id(id) => Some(&self.resolve.types[id]),
            _ => None,
        }
    }

    /// Returns whether a type is declared in the interface: each end has its own.
    fn is_own(&self, definition: &TypeDef) -> bool {
        let is_declared = matches!(
            definition.kind,
            TypeDefKind::Record(_) | TypeDefKind::Variant(_) | TypeDefKind::Enum(_)
        );
        is_declared && definition.owner == TypeOwner::Interface(self.id)
    }

    fn contains_own(&self, kind: Type) -> bool {
        let definition = self.definition(kind);
        definition.is_some_and(|definition| self.is_own(definition))
            || self
                .parts(kind)
                .flatten()
                .any(|part| self.contains_own(part))
    }

    /// Returns the types of which an anonymous one consists.
    fn parts(&self, kind: Type) -> impl Iterator<Item = Option<Type>> {
        let parts = match self.definition(kind).map(|definition| &definition.kind) {
            Some(TypeDefKind::Option(part) | TypeDefKind::List(part)) => vec![Some(*part)],
            Some(TypeDefKind::Result(result)) => vec![result.ok, result.err],
            Some(TypeDefKind::Tuple(tuple)) => tuple.types.iter().copied().map(Some).collect(),
            _ => Vec::new(),
        };
        parts.into_iter()
    }
}

/// Returns the cases of a variant or an enum.
pub(crate) fn cases(definition: &TypeDef) -> Vec<Case<'_>> {
    match &definition.kind {
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter();
            let cases = cases.map(|case| (pascal_case(&case.name), &case.docs, case.ty));
            cases.collect()
        }
        TypeDefKind::Enum(cases) => {
            let cases = cases.cases.iter();
            cases
                .map(|case| (pascal_case(&case.name), &case.docs, None))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn scalar(kind: Type) -> Result<&'static str> {
    Ok(match kind {
        Type::Bool => "bool",
        Type::U8 => "u8",
        Type::U16 => "u16",
        Type::U32 => "u32",
        Type::U64 => "u64",
        Type::S8 => "i8",
        Type::S16 => "i16",
        Type::S32 => "i32",
        Type::S64 => "i64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Char => "char",
        Type::String => "String",
        Type::ErrorContext | Type::Id(_) => bail!("an error-context cannot be sent"),
    })
}

/// Turns a name of `wit/`, such as `set-gauge`, into `SetGauge`.
fn pascal_case(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

/// Turns a name of `wit/`, such as `set-gauge`, into `set_gauge`.
pub(crate) fn snake_case(name: &str) -> String {
    name.replace('-', "_")
}
