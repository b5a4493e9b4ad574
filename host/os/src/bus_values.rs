//! Conversion between JSON and values of a D-Bus signature. Plugins pass arguments and receive answers as JSON
//! (`wit/dbus.wit` describes the form).

use serde_json::{Map, Number, Value, json};
use zbus::{Array, Dict, ObjectPath, Signature, Structure, Variant};

/// Reads the arguments of a method: a JSON array with one value for each complete type of the signature; `None` if the
/// method has none.
///
/// # Errors
/// Says what is wrong with the signature, or which value is wrong.
pub(crate) fn arguments(
    signature: &str,
    arguments: &str,
) -> Result<Option<Structure<'static>>, String> {
    let values: Value = serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments are not JSON: {error}"))?;
    let Value::Array(values) = values else {
        return Err("the arguments are not a JSON array".to_owned());
    };
    if signature.is_empty() {
        return match values.len() {
            0 => Ok(None),
            number => Err(format!(
                "there are {number} arguments, and the signature is empty"
            )),
        };
    }
    // Several types in a row parse as those of a structure. The extra parentheses keep a single structure as one
    // argument.
    let types = Signature::try_from(signature)
        .and_then(|_| Signature::try_from(format!("({signature})").as_str()));
    let Ok(Signature::Structure(types)) = types else {
        return Err(format!("`{signature}` is not a signature of D-Bus"));
    };
    let types: Vec<&Signature> = types.iter().collect();
    if types.len() != values.len() {
        return Err(format!(
            "there are {} arguments, and `{signature}` has {}",
            values.len(),
            types.len()
        ));
    }
    let mut structure = Structure::builder();
    for (number, (kind, value)) in types.into_iter().zip(values).enumerate() {
        let value =
            variant(kind, value).map_err(|why| format!("argument {}: {why}", number + 1))?;
        structure = structure.append_field(value);
    }
    structure
        .build()
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Writes the values of an answer as a JSON array. An answer that is one structure is written as its members.
///
/// # Errors
/// If the answer has a value that JSON cannot represent.
pub(crate) fn answer(body: &zbus::message::Body) -> Result<Value, String> {
    if *body.signature() == Signature::Unit {
        return Ok(json!([]));
    }
    let structure: Structure<'_> = body.deserialize().map_err(|error| error.to_string())?;
    let values = structure.fields().iter().map(json_of);
    values.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// Builds one value of this type.
fn variant(kind: &Signature, value: Value) -> Result<Variant<'static>, String> {
    let text = |value: &Value| {
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| format!("{} is not a text", excerpt(value)))
    };
    Ok(match kind {
        Signature::U8 => Variant::U8(whole(&value)?),
        Signature::I16 => Variant::I16(whole(&value)?),
        Signature::U16 => Variant::U16(whole(&value)?),
        Signature::I32 => Variant::I32(whole(&value)?),
        Signature::U32 => Variant::U32(whole(&value)?),
        Signature::I64 => Variant::I64(whole(&value)?),
        Signature::U64 => Variant::U64(whole(&value)?),
        Signature::F64 => Variant::F64(
            value
                .as_f64()
                .ok_or_else(|| format!("{} is not a number", excerpt(&value)))?,
        ),
        Signature::Bool => Variant::Bool(
            value
                .as_bool()
                .ok_or_else(|| format!("{} is neither true nor false", excerpt(&value)))?,
        ),
        Signature::Str => {
            let text = text(&value)?;
            // D-Bus terminates strings with NUL.
            if text.contains('\0') {
                return Err("a text has a zero byte".to_owned());
            }
            Variant::Str(text.into())
        }
        Signature::ObjectPath => {
            let path = ObjectPath::try_from(text(&value)?);
            Variant::ObjectPath(path.map_err(|_| format!("{} is not a path", excerpt(&value)))?)
        }
        Signature::Signature => {
            let signature = Signature::try_from(text(&value)?.as_str());
            Variant::Signature(
                signature.map_err(|_| format!("{} is not a signature", excerpt(&value)))?,
            )
        }
        Signature::Variant => {
            let Value::Object(mut fields) = value else {
                return Err(format!(
                    "{} is not a variant: {{\"type\": SIGNATURE, \"data\": VALUE}}",
                    excerpt(&value)
                ));
            };
            let (Some(Value::String(kind)), Some(data), true) = (
                fields.remove("type"),
                fields.remove("data"),
                fields.is_empty(),
            ) else {
                return Err("a variant has exactly a `type` and a `data`".to_owned());
            };
            let kind = Signature::try_from(kind.as_str())
                .ok()
                .filter(|kind| *kind != Signature::Unit)
                .ok_or_else(|| format!("`{kind}` is not the type of a variant"))?;
            Variant::Variant(Box::new(variant(&kind, data)?))
        }
        Signature::Array(child) => {
            let Value::Array(values) = value else {
                return Err(format!("{} is not an array", excerpt(&value)));
            };
            let mut array = Array::new(child.signature());
            for value in values {
                let element = variant(child.signature(), value)?;
                array.append(element).map_err(|error| error.to_string())?;
            }
            Variant::Array(array)
        }
        Signature::Dict { key, value: child } => {
            let (key, child) = (key.signature(), child.signature());
            let mut dict = Dict::new(key, child);
            for (name, value) in entries(key, value)? {
                dict.append(variant(key, name)?, variant(child, value)?)
                    .map_err(|error| error.to_string())?;
            }
            Variant::Dict(dict)
        }
        Signature::Structure(fields) => {
            let kinds: Vec<&Signature> = fields.iter().collect();
            let values = match value {
                Value::Array(values) if values.len() == kinds.len() => values,
                other => {
                    return Err(format!(
                        "{} is not an array of {} members",
                        excerpt(&other),
                        kinds.len()
                    ));
                }
            };
            let mut structure = Structure::builder();
            for (kind, value) in kinds.into_iter().zip(values) {
                structure = structure.append_field(variant(kind, value)?);
            }
            Variant::Structure(structure.build().map_err(|error| error.to_string())?)
        }
        other => return Err(format!("a value of the type `{other}` cannot be sent")),
    })
}

/// Returns the keys and values of a dictionary.
fn entries(key: &Signature, value: Value) -> Result<Vec<(Value, Value)>, String> {
    match value {
        Value::Object(fields) if *key == Signature::Str => Ok(fields
            .into_iter()
            .map(|(name, value)| (Value::String(name), value))
            .collect()),
        Value::Array(pairs) => pairs
            .into_iter()
            .map(|pair| match pair {
                Value::Array(pair) => <[Value; 2]>::try_from(pair)
                    .map(|[name, value]| (name, value))
                    .map_err(|_| "an entry of a dictionary has a key and a value".to_owned()),
                other => Err(format!("{} is not a pair", excerpt(&other))),
            })
            .collect(),
        other => Err(format!("{} is not a dictionary", excerpt(&other))),
    }
}

fn whole<T: TryFrom<i128>>(value: &Value) -> Result<T, String> {
    let number = value.as_i64().map(i128::from);
    let number = number.or_else(|| value.as_u64().map(i128::from));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("{} is not a whole number of that size", excerpt(value)))
}

fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

fn json_of(value: &Variant<'_>) -> Result<Value, String> {
    Ok(match value {
        Variant::U8(number) => (*number).into(),
        Variant::Bool(flag) => (*flag).into(),
        Variant::I16(number) => (*number).into(),
        Variant::U16(number) => (*number).into(),
        Variant::I32(number) => (*number).into(),
        Variant::U32(number) => (*number).into(),
        Variant::I64(number) => (*number).into(),
        Variant::U64(number) => (*number).into(),
        // JSON has no infinity or NaN.
        Variant::F64(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Variant::Str(text) => text.as_str().into(),
        Variant::Signature(signature) => signature.to_string_no_parens().into(),
        Variant::ObjectPath(path) => path.as_str().into(),
        Variant::Variant(inner) => {
            json!({ "type": inner.value_signature().to_string(), "data": json_of(inner)? })
        }
        Variant::Array(array) => array
            .inner()
            .iter()
            .map(json_of)
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        Variant::Dict(dict) => {
            let mut pairs = Vec::new();
            let mut fields = Map::new();
            for (key, value) in dict.iter() {
                match key {
                    Variant::Str(name) => {
                        fields.insert(name.as_str().to_owned(), json_of(value)?);
                    }
                    key => pairs.push(json!([json_of(key)?, json_of(value)?])),
                }
            }
            if pairs.is_empty() {
                Value::Object(fields)
            } else {
                Value::Array(pairs)
            }
        }
        Variant::Structure(structure) => structure
            .fields()
            .iter()
            .map(json_of)
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        _ => return Err("the answer has a file descriptor".to_owned()),
    })
}

#[cfg(test)]
mod tests;
