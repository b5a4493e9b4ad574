//! Checks that a plugin's description of its routes (`openapi` of the SDK's `plugin!`) matches its
//! answers.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Collects the schemas of answers: call `subschema_for::<Answer>()` on it for each type that a handler
/// returns, and pass it to [`assert_described`].
#[must_use]
pub fn schemas() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    settings.into_generator()
}

/// Checks that `description`, the text of the plugin's file, contains these schemas; it may contain
/// others, too.
///
/// # Panics
/// If it is not JSON, or a schema in it differs; the message has the expected schemas.
pub fn assert_described(description: &str, mut answered: SchemaGenerator) {
    let description: Value = match serde_json::from_str(description) {
        Ok(description) => description,
        Err(error) => panic!("the description is not JSON: {error}"),
    };
    let described = &description["components"]["schemas"];
    let answered: Map<String, Value> = answered.take_definitions(true);
    let other: Vec<&str> = answered
        .iter()
        .filter(|(name, schema)| described[name.as_str()] != **schema)
        .map(|(name, _)| name.as_str())
        .collect();
    assert!(
        other.is_empty(),
        "the schemas of {} in the description are not those of what is answered; they are:\n{:#}",
        other.join(", "),
        Value::Object(answered)
    );
}
