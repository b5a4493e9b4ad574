//! The code of `plugin-runtime`.

use anyhow::{Context as _, Result};
use wasmtime_wit_parser::{Function, TypeDef, TypeDefKind};

use crate::interface::{Interface, cases, snake_case};

/// The interfaces that refuse arguments which are too long for a message to the host, in their own words
/// (`host/plugin-runtime/src/capabilities/lengths.rs`). A call of another interface that is too long ends the instance.
const WITH_LENGTHS: [&str; 7] = ["actions", "api", "dbus", "gpio", "http", "i2c", "report"];

/// Returns a module for each interface: its functions send their calls to the host, and its types are converted to and
/// from those of the calls.
///
/// # Errors
/// If an interface passes something that cannot be sent.
pub fn runtime(interfaces: &[Interface<'_>]) -> Result<String> {
    interfaces.iter().map(module).collect()
}

fn module(interface: &Interface<'_>) -> Result<String> {
    let name = interface.module();
    // Functions that a guest calls synchronously, and the others.
    let mut functions = [String::new(), String::new()];
    for function in interface.functions() {
        let code = forward(interface, function);
        let (is_async, code) = code.with_context(|| interface.place(&function.name))?;
        functions[usize::from(is_async)] += &code;
    }
    let [functions, async_functions] = functions;
    let mut code = format!(
        "mod {name} {{\n\
         use plugin_protocol::wit::{name} as plain;\n\
         use crate::bindings::platform::supervisor::{name} as wit;\n\
         use crate::capabilities::lengths::Lengths as _;\n\
         use crate::guest::{{Guest, GuestAccess, GuestData, host}};\n\
         use crate::instance_host::Answer;\n\
         impl wit::Host for &mut Guest {{\n{functions}}}\n"
    );
    if !async_functions.is_empty() {
        code += &format!("impl wit::HostWithStore<Guest> for GuestData {{\n{async_functions}}}\n");
    }
    for (name, definition) in interface.types() {
        code += &conversion(interface, "wit", "plain", &name, definition);
        code += &conversion(interface, "plain", "wit", &name, definition);
    }
    Ok(code + "}\n")
}

/// Returns a function that sends its call to the host, and returns its answer; and whether it is asynchronous.
fn forward(interface: &Interface<'_>, function: &Function) -> Result<(bool, String)> {
    let name = snake_case(&function.name);
    let is_async = interface.is_async(function)?;
    let (mut parameters, host) = if is_async {
        ("access: &GuestAccess".to_owned(), "host(access)")
    } else {
        ("&mut self".to_owned(), "self.host")
    };
    let mut fields = String::new();
    for parameter in &function.params {
        let (name, kind) = (snake_case(&parameter.name), Some(parameter.ty));
        parameters += &format!(", {name}: {}", interface.in_rust(kind, "wit::")?);
        fields += &format!("{name}: {},\n", interface.converted(kind, &name));
    }
    let call = interface.call(function);
    let call = format!("let call = plugin_protocol::{call} {{\n{fields}}};\n");
    let (value, error) = interface.result(function);
    let rust = interface.in_rust(value, "wit::")?;
    let code = match error {
        Some(error) => {
            let check = if WITH_LENGTHS.contains(&interface.name) {
                "if let Err(error) = call.check() {\nreturn Ok(Err(error.into()));\n}\n"
            } else {
                ""
            };
            format!(
                "async fn {name}({parameters}) -> Answer<{rust}, {}> {{\n{call}{check}\
                 let answer = {host}.try_ask(call).await?;\n\
                 Ok(answer.map(|value| {}))\n}}\n",
                interface.in_rust(error, "wit::")?,
                interface.converted(value, "value")
            )
        }
        None => format!(
            "async fn {name}({parameters}) -> wasmtime::Result<{rust}> {{\n{call}\
             let value = {host}.ask(call).await?;\nOk({})\n}}\n",
            interface.converted(value, "value")
        ),
    };
    Ok((is_async, code))
}

fn conversion(
    interface: &Interface<'_>,
    from: &str,
    to: &str,
    name: &str,
    definition: &TypeDef,
) -> String {
    let converted = match &definition.kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter().map(|field| {
                let name = snake_case(&field.name);
                let value = interface.converted(Some(field.ty), &format!("value.{name}"));
                format!("{name}: {value},\n")
            });
            format!("Self {{\n{}}}", fields.collect::<String>())
        }
        _ => {
            let arms = cases(definition)
                .into_iter()
                .map(|(case, _, content)| match content {
                    Some(_) => {
                        let content = interface.converted(content, "content");
                        format!("{from}::{name}::{case}(content) => Self::{case}({content}),\n")
                    }
                    None => format!("{from}::{name}::{case} => Self::{case},\n"),
                });
            format!("match value {{\n{}}}", arms.collect::<String>())
        }
    };
    format!(
        "impl From<{from}::{name}> for {to}::{name} {{\n\
         fn from(value: {from}::{name}) -> Self {{\n{converted}\n}}\n}}\n"
    )
}
