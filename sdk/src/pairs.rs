//! Reads names with text values (path parameters, query strings, forms) into serde types.
//!
//! All values come as text, so each is parsed as what its field's type asks for, and what does not fit
//! is told with the name of the parameter.

use std::fmt::{self, Display};

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::Error;

/// How much of a refused value an error shows, in characters.
const SHOWN: usize = 64;

/// Reads `pairs` into `T`: a struct or map by name (a name that stands repeatedly fills a sequence), a
/// tuple in order, or a plain value where there is one pair. `kind` says what a pair is, for errors.
pub(crate) fn read<T: DeserializeOwned>(
    kind: &'static str,
    pairs: Vec<(String, String)>,
) -> Result<T, Error> {
    T::deserialize(Pairs(pairs)).map_err(|problem| match problem.field {
        Some(field) => Error::bad_request(format_args!("{kind} `{field}` {}", problem.text)),
        None => Error::bad_request(format_args!("{kind}s: {}", problem.text)),
    })
}

/// What does not fit, and in which field.
#[derive(Debug)]
struct Problem {
    field: Option<String>,
    text: String,
}

impl Problem {
    fn of(field: &str, text: impl Display) -> Self {
        Self {
            field: Some(field.to_owned()),
            text: text.to_string(),
        }
    }

    fn within(mut self, field: &str) -> Self {
        self.field.get_or_insert_with(|| field.to_owned());
        self
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: Display>(text: T) -> Self {
        Self {
            field: None,
            text: format!("is not acceptable: {text}"),
        }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::of(field, "is missing")
    }

    fn unknown_field(field: &str, _: &'static [&'static str]) -> Self {
        Self::of(field, "is not known here")
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        let mut text = String::from("must be one of");
        for (at, name) in expected.iter().enumerate() {
            text.push_str(if at == 0 { " `" } else { ", `" });
            text.push_str(name);
            text.push('`');
        }
        Self {
            field: None,
            text: format!("{text}, not `{}`", shortened(found)),
        }
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
    /// The only pair, for a type that is a plain value.
    fn only(self) -> Result<(String, Value), Problem> {
        let count = self.0.len();
        match self.0.into_iter().next() {
            Some((name, value)) if count == 1 => Ok((name, Value(value))),
            _ => Err(de::Error::custom(format_args!(
                "there are {count}, where exactly one is taken"
            ))),
        }
    }

    /// Values by name, in the order in which the names first came.
    fn grouped(self) -> Vec<(String, Values)> {
        let mut groups: Vec<(String, Values)> = Vec::new();
        for (name, value) in self.0 {
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, Values(values))) => values.push(Value(value)),
                None => groups.push((name, Values(vec![Value(value)]))),
            }
        }
        groups
    }
}

macro_rules! the_only_value {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            let (name, value) = self.only()?;
            value.$method(visitor).map_err(|problem| problem.within(&name))
        })*
    };
}

impl<'de> de::Deserializer<'de> for Pairs {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
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
    ) -> Result<V::Value, Problem> {
        let (parameter, value) = self.only()?;
        value
            .deserialize_enum(name, variants, visitor)
            .map_err(|problem| problem.within(&parameter))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_seq(SeqDeserializer::new(
            self.0.into_iter().map(|(_, value)| Value(value)),
        ))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        // Checked here, so that the plugin's author reads of the counts and not of a "trailing" value.
        let count = self.0.len();
        if count != length {
            return Err(de::Error::custom(format_args!(
                "there are {count}, where {length} are taken"
            )));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { unit_struct map struct ignored_any }
}

/// The fields of a struct, each error marked with the field's name.
struct Fields {
    groups: std::vec::IntoIter<(String, Values)>,
    value: Option<(String, Values)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        let Some((name, values)) = self.groups.next() else {
            return Ok(None);
        };
        let key: StringDeserializer<Problem> = name.clone().into_deserializer();
        self.value = Some((name, values));
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        match self.value.take() {
            Some((name, values)) => seed
                .deserialize(values)
                .map_err(|problem| problem.within(&name)),
            None => Err(de::Error::custom("a value was asked for before its name")),
        }
    }
}

/// All values of one name.
struct Values(Vec<Value>);

impl Values {
    fn only(mut self) -> Result<Value, Problem> {
        match (self.0.pop(), self.0.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(Problem {
                field: None,
                text: "is given more than once".to_owned(),
            }),
        }
    }
}

impl IntoDeserializer<'_, Problem> for Values {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! one_of_them {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            self.only()?.$method(visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for Values {
    type Error = Problem;

    one_of_them! {
        deserialize_any deserialize_bool
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_identifier deserialize_unit
        deserialize_map
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.only()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_seq(SeqDeserializer::new(self.0.into_iter()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_map(visitor)
    }
}

/// One value, parsed as what is asked for.
struct Value(String);

impl Value {
    fn refused(&self, expected: impl Display) -> Problem {
        Problem {
            field: None,
            text: format!("must be {expected}, not `{}`", shortened(&self.0)),
        }
    }
}

impl IntoDeserializer<'_, Problem> for Value {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            match self.0.parse::<$type>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => Err(self.refused(format_args!(
                    "a whole number from {} to {}",
                    <$type>::MIN,
                    <$type>::MAX,
                ))),
            }
        })*
    };
}

impl<'de> de::Deserializer<'de> for Value {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_string(self.0)
    }

    whole_numbers! {
        deserialize_i8 visit_i8 i8;
        deserialize_i16 visit_i16 i16;
        deserialize_i32 visit_i32 i32;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u8 u8;
        deserialize_u16 visit_u16 u16;
        deserialize_u32 visit_u32 u32;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0.parse::<f64>() {
            Ok(number) if number.is_finite() => visitor.visit_f64(number),
            _ => Err(self.refused("a number")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0.as_str() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.refused("`true` or `false`")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let mut characters = self.0.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) => visitor.visit_char(character),
            _ => Err(self.refused("one character")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let deserializer: StringDeserializer<Problem> = self.0.into_deserializer();
        deserializer.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Problem> {
        Err(de::Error::custom("a plain value cannot hold fields"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        str string bytes byte_buf identifier unit unit_struct seq tuple tuple_struct
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Level {
        Low,
        High,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Id(u32);

    #[derive(Debug, PartialEq, Deserialize)]
    struct Everything {
        name: String,
        count: u8,
        #[serde(default)]
        loud: bool,
        level: Option<Level>,
        #[serde(default)]
        tag: Vec<String>,
        ratio: Option<f64>,
        id: Option<Id>,
    }

    fn pairs(text: &str) -> Vec<(String, String)> {
        form_urlencoded::parse(text.as_bytes())
            .into_owned()
            .collect()
    }

    fn everything(text: &str) -> Result<Everything, String> {
        read("query parameter", pairs(text)).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn each_value_is_read_as_its_fields_type() {
        let found = everything(
            "name=Ada+L%C3%A9&count=3&loud=true&level=high&tag=a&tag=b&ratio=.5&id=7&x=y",
        );
        let expected = Everything {
            name: "Ada L\u{e9}".to_owned(),
            count: 3,
            loud: true,
            level: Some(Level::High),
            tag: vec!["a".to_owned(), "b".to_owned()],
            ratio: Some(0.5),
            id: Some(Id(7)),
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn what_does_not_fit_is_told_with_the_parameters_name() {
        let table = [
            ("count=3", "query parameter `name` is missing"),
            ("name=a", "query parameter `count` is missing"),
            (
                "name=a&count=300",
                "query parameter `count` must be a whole number from 0 to 255, not `300`",
            ),
            (
                "name=a&count=",
                "query parameter `count` must be a whole number from 0 to 255, not ``",
            ),
            (
                "name=a&count=3&loud=yes",
                "query parameter `loud` must be `true` or `false`, not `yes`",
            ),
            (
                "name=a&count=3&level=mid",
                "query parameter `level` must be one of `low`, `high`, not `mid`",
            ),
            (
                "name=a&name=b&count=3",
                "query parameter `name` is given more than once",
            ),
            (
                "name=a&count=3&ratio=NaN",
                "query parameter `ratio` must be a number, not `NaN`",
            ),
            (
                "name=a&count=3&id=-1",
                "query parameter `id` must be a whole number from 0 to 4294967295, not `-1`",
            ),
        ];
        for (query, message) in table {
            assert_eq!(everything(query), Err(message.to_owned()), "{query}");
        }
    }

    #[test]
    fn a_refused_value_is_shown_shortened() {
        let long = "9".repeat(10_000);
        let message = everything(&format!("name=a&count={long}")).unwrap_err();
        assert!(message.len() < 200, "{message}");
    }

    #[test]
    fn one_parameter_reads_as_a_plain_value_and_several_as_a_tuple() {
        let one = || pairs("id=7");
        let two = || pairs("id=7&name=web");
        assert_eq!(read::<u64>("path parameter", one()), Ok(7));
        assert_eq!(read::<Id>("path parameter", one()), Ok(Id(7)));
        assert_eq!(read::<String>("path parameter", one()), Ok("7".to_owned()));
        assert_eq!(
            read::<(Id, String)>("path parameter", two()),
            Ok((Id(7), "web".to_owned()))
        );
        assert_eq!(
            read::<Vec<String>>("path parameter", two()),
            Ok(vec!["7".to_owned(), "web".to_owned()])
        );
        assert_eq!(
            read::<BTreeMap<String, String>>("path parameter", one()),
            Ok(BTreeMap::from([("id".to_owned(), "7".to_owned())]))
        );
        let error = read::<u64>("path parameter", pairs("id=x")).unwrap_err();
        assert!(error.message().starts_with("path parameter `id` must be"));
        assert!(read::<u64>("path parameter", two()).is_err());
        assert!(read::<(u64,)>("path parameter", two()).is_err());
    }

    proptest! {
        #[test]
        fn no_query_makes_the_reader_panic(text in ".{0,200}") {
            let _ = everything(&text);
            let _ = read::<(Id, String)>("path parameter", pairs(&text));
            let _ = read::<Level>("path parameter", pairs(&text));
        }

        #[test]
        fn every_text_comes_back_as_it_was(text in ".*") {
            let found = read::<String>("path parameter", vec![("name".to_owned(), text.clone())]);
            prop_assert_eq!(found, Ok(text));
        }
    }
}
