//! Checks answers against the API's own description (`GET /v3/openapi.json`): every answer that a test reads has a
//! status that its operation lists, and a body with the type and the schema for that status.

use std::collections::HashMap;

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::answer::Answer;

/// The description of a running supervisor.
pub struct Description {
    document: Value,
    /// Its schemas, in which objects have only the named fields: fields that clients have to tolerate are a mistake in
    /// a test.
    closed: Value,
    validators: Mutex<HashMap<String, Validator>>,
}

impl Description {
    /// Creates it from the document.
    #[must_use]
    pub fn new(document: Value) -> Self {
        let mut closed = json!({ "schemas": document["components"]["schemas"] });
        close(&mut closed);
        Description {
            document,
            closed,
            validators: Mutex::default(),
        }
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// Returns each operation: its method in upper case, the template of its path, and the object itself.
    pub fn operations(&self) -> impl Iterator<Item = (String, &str, &Value)> {
        let paths = self.document["paths"].as_object();
        paths.into_iter().flatten().flat_map(|(path, operations)| {
            let operations = operations.as_object().into_iter().flatten();
            operations
                .map(move |(method, operation)| (method.to_uppercase(), path.as_str(), operation))
        })
    }

    /// Checks the answer to a request; accepts it if the description does not contain the operation.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, method: &str, path: &str, answer: &Answer) -> Result<(), String> {
        let described = if method == "HEAD" { "GET" } else { method };
        let Some((template, operation)) = self.operation(described, path) else {
            return Ok(());
        };
        let named = format!("{method} {path}: {}", answer.status);
        let responses = &operation["responses"];
        let response = match responses.get(answer.status.to_string()) {
            Some(response) => response,
            None if responses.get("default").is_some() => return Ok(()),
            None => return Err(format!("{named} is no status that its description lists")),
        };
        if method == "HEAD" {
            return Ok(());
        }
        let content = response["content"].as_object();
        let Some(content_type) = &answer.content_type else {
            return match (content, answer.text.is_empty()) {
                (None, true) => Ok(()),
                (Some(_), true) if answer.status == 200 && template.ends_with("journal-logs") => {
                    Ok(())
                }
                _ => Err(format!("{named} has no content type: {:?}", answer.text)),
            };
        };
        let Some(media) = content.and_then(|content| content.get(content_type)) else {
            return Err(format!(
                "{named} is `{content_type}`, which its description does not list"
            ));
        };
        let body: Value = match content_type.as_str() {
            "application/json; charset=utf-8" => serde_json::from_str(&answer.text)
                .map_err(|error| format!("{named} is not JSON ({error}): {:?}", answer.text))?,
            _ => return Ok(()),
        };
        let key = format!("{described} {template} {}", answer.status);
        let mut validators = self.validators.lock();
        let validator = validators.entry(key).or_insert_with(|| {
            let mut schema = media["schema"].clone();
            close(&mut schema);
            let schema = json!({ "allOf": [schema], "components": self.closed });
            jsonschema::validator_for(&schema)
                .unwrap_or_else(|error| panic!("{template}: not a schema: {error}"))
        });
        let wrong: Vec<String> = validator
            .iter_errors(&body)
            .map(|error| format!("{error} at `{}`", error.instance_path()))
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{named} is not as its description says ({}): {body}",
                wrong.join("; ")
            ))
        }
    }

    /// Returns the operation of a path; templates without parameters take precedence.
    fn operation(&self, method: &str, path: &str) -> Option<(&str, &Value)> {
        let path = path.split('?').next()?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let paths: &Map<String, Value> = self.document["paths"].as_object()?;
        let (template, operations) = paths
            .iter()
            .filter(|(template, _)| matches(template, path))
            .min_by_key(|(template, _)| template.matches('{').count())?;
        let operation = operations.get(method.to_ascii_lowercase())?;
        Some((template, operation))
    }
}

fn matches(template: &str, path: &str) -> bool {
    let segments = template.split('/').count();
    segments == path.split('/').count()
        && template
            .split('/')
            .zip(path.split('/'))
            .all(|(expected, given)| {
                expected.starts_with('{') && !given.is_empty()
                    || expected.eq_ignore_ascii_case(given)
            })
}

/// Keywords whose schemas describe the same object.
const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// As [`close`], except for the object itself, whose other fields are named by another schema.
fn close_below(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.values_mut().for_each(close);
    }
}

/// Forbids unnamed fields in all objects with named ones, unless they set this themselves.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("properties").is_some_and(Value::is_object)
                && !fields.contains_key("additionalProperties")
            {
                // Fields that the alternatives name in addition are allowed too.
                let has_alternatives = ALTERNATIVES.iter().any(|of| fields.contains_key(*of));
                let closes = if has_alternatives {
                    "unevaluatedProperties"
                } else {
                    "additionalProperties"
                };
                fields.insert(closes.into(), false.into());
                if has_alternatives {
                    for (name, value) in fields.iter_mut() {
                        match value {
                            Value::Array(branches) if ALTERNATIVES.contains(&name.as_str()) => {
                                branches.iter_mut().for_each(close_below);
                            }
                            value => close(value),
                        }
                    }
                    return;
                }
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, content_type: Option<&str>, text: &str) -> Answer {
        Answer {
            status,
            content_type: content_type.map(str::to_owned),
            allow: None,
            text: text.to_owned(),
        }
    }

    #[test]
    fn answers_are_held_against_status_type_and_shape() {
        const JSON: Option<&str> = Some("application/json; charset=utf-8");
        let description = Description::new(json!({
            "paths": { "/v1/apps/{appId}": { "get": { "responses": {
                "200": { "content": { "application/json; charset=utf-8": {
                    "schema": { "$ref": "#/components/schemas/App" }
                } } },
                "204": {}
            } } } },
            "components": { "schemas": { "App": {
                "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"]
            } } }
        }));
        for (path, answer, fits) in [
            ("/v1/apps/1", answer(200, JSON, r#"{"id":1}"#), true),
            ("/V1/Apps/1/?x=1", answer(200, JSON, r#"{"id":1}"#), true),
            ("/v1/apps/1", answer(200, JSON, r#"{"id":"1"}"#), false),
            (
                "/v1/apps/1",
                answer(200, JSON, r#"{"id":1,"more":2}"#),
                false,
            ),
            ("/v1/apps/1", answer(200, JSON, "{}"), false),
            ("/v1/apps/1", answer(200, JSON, "OK"), false),
            ("/v1/apps/1", answer(200, Some("text/plain"), "OK"), false),
            ("/v1/apps/1", answer(200, None, "OK"), false),
            ("/v1/apps/1", answer(204, None, ""), true),
            ("/v1/apps/1", answer(204, None, "OK"), false),
            ("/v1/apps/1", answer(404, JSON, "{}"), false),
            ("/v1/apps/1/stop", answer(404, JSON, "{}"), true),
        ] {
            let checked = description.check("GET", path, &answer);
            assert_eq!(checked.is_ok(), fits, "{path} {answer:?} {checked:?}");
        }
    }
}
