//! The code of `plugin-protocol`.

use anyhow::{Context as _, Result};
use wasmtime_wit_parser::{Docs, Function, Type, TypeDef, TypeDefKind};

use crate::interface::{Interface, cases, snake_case};

/// The attribute of lists, whose number of entries has a limit.
const BOUNDED: &str = "#[serde(with = \"crate::bounded_list\")]\n";
/// The attribute of bytes, which serde would otherwise write and read one after the other.
const BYTES: &str = "#[serde(with = \"serde_bytes\")]\n";
const DERIVED: &str = "#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]";

/// Returns a module with the types and the trait `Host` of each interface, and the macro `with_wit_calls!`, which adds a
/// row for each function to a table.
///
/// # Errors
/// If an interface passes something that cannot be sent.
pub fn protocol(interfaces: &[Interface<'_>]) -> Result<String> {
    let (mut modules, mut rows) = (String::new(), String::new());
    for interface in interfaces {
        let mut types = String::new();
        for (name, definition) in interface.types() {
            let code = type_definition(interface, &name, definition);
            types += &code.with_context(|| interface.place(&name))?;
        }
        let mut functions = String::new();
        for function in interface.functions() {
            let code = signature_and_row(interface, function);
            let (signature, row) = code.with_context(|| interface.place(&function.name))?;
            functions += &signature;
            rows += &row;
        }
        modules += &format!(
            "{}pub mod {} {{\n{types}\
             /// What the host does for plugins: the functions of `wit/{}.wit`.\n\
             pub trait Host {{\n{functions}}}\n}}\n",
            docs(interface.docs()),
            interface.module(),
            interface.name
        );
    }
    Ok(format!(
        "{modules}macro_rules! with_wit_calls {{\n($table:ident {{ $($rows:tt)* }}) => {{\n$table! {{\n$($rows)*\n\
         {rows}}}\n}};\n}}\n"
    ))
}

fn type_definition(interface: &Interface<'_>, name: &str, definition: &TypeDef) -> Result<String> {
    let mut code = docs(&definition.docs);
    if let TypeDefKind::Record(record) = &definition.kind {
        let fields = record.fields.iter();
        let fields = fields.map(|field| {
            let (attribute, declared) = declaration(interface, &field.name, field.ty, "")?;
            Ok(format!("{}{attribute}pub {declared},\n", docs(&field.docs)))
        });
        let fields = fields.collect::<Result<String>>()?;
        return Ok(code + &format!("{DERIVED}\npub struct {name} {{\n{fields}}}\n"));
    }
    let cases = cases(definition);
    let is_text = |content: &Option<Type>| *content == Some(Type::String);
    let is_error = |function: &Function| match interface.result(function).1 {
        Some(error) => interface
            .in_rust(error, "")
            .is_ok_and(|error| error == name),
        None => false,
    };
    if cases.iter().all(|(_, _, content)| content.is_none()) {
        code += "#[derive(Copy, Eq)]\n";
    } else if cases.iter().all(|(_, _, content)| is_text(content))
        && interface.functions().any(is_error)
    {
        code += "#[derive(Eq, thiserror::Error)]\n#[error(\"{0}\")]\n";
    }
    let cases = cases.into_iter().map(|(case, text, content)| {
        let content = match content {
            Some(kind) => format!(
                "({}{})",
                attribute(interface, kind)?,
                interface.in_rust(content, "")?
            ),
            None => String::new(),
        };
        Ok(format!("{}{case}{content},\n", docs(text)))
    });
    let cases = cases.collect::<Result<String>>()?;
    Ok(code + &format!("{DERIVED}\npub enum {name} {{\n{cases}}}\n"))
}

/// Returns a function of the trait `Host`, and its row in the table of calls
/// (`host/plugin-protocol/src/capability_call.rs`).
fn signature_and_row(interface: &Interface<'_>, function: &Function) -> Result<(String, String)> {
    let (text, name) = (docs(&function.docs), snake_case(&function.name));
    let path = format!("crate::wit::{}::", interface.module());
    let (mut parameters, mut fields) = (String::new(), Vec::new());
    for parameter in &function.params {
        let declared = |path| {
            let declared = declaration(interface, &parameter.name, parameter.ty, path);
            declared.with_context(|| format!("the parameter `{}`", parameter.name))
        };
        parameters += &format!(", {}", declared("")?.1);
        let (attribute, field) = declared(&path)?;
        fields.push(attribute.to_owned() + &field);
    }
    let signature = format!(
        "{text}fn {name}(&self{parameters}) -> impl Future<Output = {}> + Send;\n",
        interface.in_rust(function.result, "")?
    );
    let row = format!(
        "{text}#[allow(missing_docs, reason = \"described in `wit/`\")]\n\
         {} needs [{}] by [{path}Host: {name}] {{\n{}\n}} -> {};\n",
        interface.call(function),
        interface.capability,
        fields.join(",\n"),
        interface.in_rust(function.result, &path)?
    );
    Ok((signature, row))
}

/// Returns the attribute of a field or parameter, and its declaration.
fn declaration(
    interface: &Interface<'_>,
    name: &str,
    kind: Type,
    path: &str,
) -> Result<(&'static str, String)> {
    let (name, rust) = (snake_case(name), interface.in_rust(Some(kind), path)?);
    Ok((attribute(interface, kind)?, format!("{name}: {rust}")))
}

/// Returns the attribute of a value for messages.
fn attribute(interface: &Interface<'_>, kind: Type) -> Result<&'static str> {
    Ok(if interface.is_list(kind)? {
        BOUNDED
    } else if interface.is_bytes(kind) {
        BYTES
    } else {
        ""
    })
}

fn docs(docs: &Docs) -> String {
    let lines = docs.contents.iter().flat_map(|text| text.lines());
    let lines = lines.map(|line| format!("/// {line}").trim_end().to_owned() + "\n");
    lines.collect()
}
