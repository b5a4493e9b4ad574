//! Reads names with text values (path parameters, query strings, forms) into serde types.
//!
//! All values are text, so each is parsed as its field's type requires, and errors name the parameter that does not
//! fit.

use std::collections::{BTreeMap, btree_map};
use std::fmt::{self, Display};

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::Error;

mod values;

use values::Values;

/// The length to which errors shorten a refused value, in characters.
const SHOWN: usize = 64;

/// Reads `pairs` into `T`: a struct or map by name (a repeated name fills a sequence), a tuple in order, or a plain
/// value if there is one pair. `kind` is the word for a pair in errors.
pub(crate) fn read<T: DeserializeOwned>(
    kind: &'static str,
    pairs: Vec<(String, String)>,
) -> Result<T, Error> {
    T::deserialize(Pairs(pairs)).map_err(|problem| Error::bad_request(problem.describe(kind)))
}

/// Reads the `:names` of `route` into `T`, as [`read`] does. If the names and not the values do not fit, this is a
/// mistake of the plugin's author, about which no caller can do anything.
pub(crate) fn read_names<T: DeserializeOwned>(
    route: &str,
    names: Vec<(String, String)>,
) -> Result<T, Error> {
    const KIND: &str = "path parameter";
    T::deserialize(Pairs(names)).map_err(|problem| {
        if problem.is_about_names {
            Error::internal(format_args!(
                "the plugin's author has to correct this: the `Path` of the handler does not fit the route `{route}`: {}",
                problem.describe(KIND)
            ))
        } else {
            Error::bad_request(problem.describe(KIND))
        }
    })
}

/// What does not fit, and in which field.
#[derive(Debug)]
struct FieldProblem {
    field: Option<String>,
    text: String,
    /// Whether the names, or their number, differ from those that the type expects. Otherwise a value does not fit.
    is_about_names: bool,
}

impl FieldProblem {
    /// Creates the problem of a value that does not fit.
    fn for_value(text: String) -> Self {
        Self {
            field: None,
            text,
            is_about_names: false,
        }
    }

    /// Creates the problem of names, or a number of names, that the type does not expect.
    fn for_names(field: Option<&str>, text: impl Display) -> Self {
        Self {
            field: field.map(str::to_owned),
            text: text.to_string(),
            is_about_names: true,
        }
    }

    /// Describes the problem in words; `kind` is the word for a pair.
    fn describe(&self, kind: &str) -> String {
        match &self.field {
            Some(field) => format!("{kind} `{field}` {}", self.text),
            None => format!("{kind}s: {}", self.text),
        }
    }

    fn within(mut self, field: &str) -> Self {
        self.field.get_or_insert_with(|| field.to_owned());
        self
    }
}

impl Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for FieldProblem {}

impl de::Error for FieldProblem {
    fn custom<T: Display>(text: T) -> Self {
        Self::for_value(format!("is not valid: {text}"))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::for_names(Some(field), "is missing")
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::for_names(Some(field), "is not a known field")
    }

    fn unknown_variant(value: &str, expected: &'static [&'static str]) -> Self {
        let mut text = String::from("must be one of");
        for (at, name) in expected.iter().enumerate() {
            text.push_str(if at == 0 { " `" } else { ", `" });
            text.push_str(name);
            text.push('`');
        }
        Self::for_value(format!("{text}, not `{}`", shortened(value)))
    }
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Returns the only pair, for a type that is a plain value.
    fn only(self) -> Result<(String, Values), FieldProblem> {
        let count = self.0.len();
        match self.0.into_iter().next() {
            Some((name, value)) if count == 1 => Ok((name, Values::one(value))),
            _ => Err(FieldProblem::for_names(
                None,
                format_args!("there are {count} values, but exactly one is expected"),
            )),
        }
    }

    /// Groups the values by name, in a map: a form with a million names must not take quadratic time.
    fn grouped(self) -> BTreeMap<String, Values> {
        let mut groups: BTreeMap<String, Values> = BTreeMap::new();
        for (name, value) in self.0 {
            groups.entry(name).or_default().0.push(value);
        }
        groups
    }
}

macro_rules! the_only_value {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
            let (name, value) = self.only()?;
            value.$method(visitor).map_err(|problem| problem.within(&name))
        })*
    };
}

impl<'de> de::Deserializer<'de> for Pairs {
    type Error = FieldProblem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        visitor.visit_map(Fields {
            groups: self.grouped().into_iter(),
            value: None,
        })
    }

    the_only_value! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_option deserialize_identifier
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        let (parameter, value) = self.only()?;
        value
            .deserialize_enum(name, variants, visitor)
            .map_err(|problem| problem.within(&parameter))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        visitor.visit_seq(SeqDeserializer::new(
            self.0.into_iter().map(|(_, value)| Values::one(value)),
        ))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        // Checked here, so that the plugin's author reads about the counts and not about a "trailing" value.
        let count = self.0.len();
        if count != length {
            return Err(FieldProblem::for_names(
                None,
                format_args!("there are {count} values, but {length} are expected"),
            ));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit_struct map struct ignored_any }
}

/// The fields of a struct, each error marked with the field's name.
struct Fields {
    groups: btree_map::IntoIter<String, Values>,
    value: Option<(String, Values)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = FieldProblem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, FieldProblem> {
        let Some((name, values)) = self.groups.next() else {
            return Ok(None);
        };
        let key: StringDeserializer<FieldProblem> = name.clone().into_deserializer();
        self.value = Some((name, values));
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, FieldProblem> {
        match self.value.take() {
            Some((name, values)) => seed
                .deserialize(values)
                .map_err(|problem| problem.within(&name)),
            None => Err(de::Error::custom("a value was requested before its name")),
        }
    }
}

#[cfg(test)]
mod tests;
