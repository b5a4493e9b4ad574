//! The values of one name: each is text, and is parsed as its field's type requires.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::value::{SeqDeserializer, StringDeserializer};
use serde::de::{self, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{FieldProblem, shortened};

/// All values of one name.
#[derive(Default)]
pub(super) struct Values(pub(super) Vec<String>);

impl Values {
    pub(super) fn one(value: String) -> Self {
        Self(vec![value])
    }

    fn only(mut self) -> Result<String, FieldProblem> {
        match (self.0.pop(), self.0.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err(FieldProblem::for_value(
                "is given more than once".to_owned(),
            )),
        }
    }
}

fn refused(value: &str, expected: impl Display) -> FieldProblem {
    FieldProblem::for_value(format!("must be {expected}, not `{}`", shortened(value)))
}

impl IntoDeserializer<'_, FieldProblem> for Values {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Parses a number, in the form that docs/plugins.md describes for all languages. Rust's own parsers also accept a
/// leading `+`.
fn parse_number<T: FromStr>(value: &str) -> Option<T> {
    if value.starts_with('+') {
        return None;
    }
    value.parse().ok()
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
            let value = self.only()?;
            match parse_number::<$type>(&value) {
                Some(number) => visitor.$visit(number),
                None => Err(refused(&value, format_args!(
                    "a whole number from {} to {}",
                    <$type>::MIN,
                    <$type>::MAX,
                ))),
            }
        })*
    };
}

impl<'de> de::Deserializer<'de> for Values {
    type Error = FieldProblem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        visitor.visit_string(self.only()?)
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

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        let value = self.only()?;
        match parse_number::<f64>(&value) {
            Some(number) if number.is_finite() => visitor.visit_f64(number),
            _ => Err(refused(&value, "a number")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        let value = self.only()?;
        // A larger number would become infinite.
        match parse_number::<f32>(&value) {
            Some(number) if number.is_finite() => visitor.visit_f32(number),
            _ => Err(refused(&value, "a number from -3.4e38 to 3.4e38")),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        let value = self.only()?;
        match value.parse() {
            Ok(switch) => visitor.visit_bool(switch),
            Err(_) => Err(refused(&value, "`true` or `false`")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        let value = self.only()?;
        match value.parse() {
            Ok(character) => visitor.visit_char(character),
            Err(_) => Err(refused(&value, "one character")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        let value: StringDeserializer<FieldProblem> = self.only()?.into_deserializer();
        value.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldProblem> {
        visitor.visit_seq(SeqDeserializer::new(self.0.into_iter().map(Values::one)))
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        visitor.visit_unit()
    }

    fn deserialize_map<V: Visitor<'de>>(self, _: V) -> Result<V::Value, FieldProblem> {
        self.only()?;
        let text = "is one value, but several are expected";
        Err(FieldProblem::for_names(None, text))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldProblem> {
        self.deserialize_map(visitor)
    }

    forward_to_deserialize_any! { str string bytes byte_buf identifier unit }
}
