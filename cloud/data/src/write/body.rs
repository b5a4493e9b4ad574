//! The fields in a request's body.

use resources::{Column, Default, Field, Resource, Role, Step, StoredValue, Writer as Word};
use serde_json::{Map, Value};

use super::{WriteError, WriteResult, Writer};
use crate::random;
use crate::record::{Record, stored};

/// The purpose of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteKind {
    Create,
    Change,
}

/// A parsed body.
#[derive(Debug, Clone, Default)]
pub(super) struct ParsedBody {
    /// Values of stored fields.
    pub(super) values: Record,
    /// Inputs from which rules derive other fields.
    pub(super) inputs: Record,
    /// Whether it names any field of the resource.
    pub(super) any: bool,
}

impl Writer<'_> {
    /// Parses a body. Fields that the caller may not write are ignored, as unknown names are.
    pub(super) fn parsed_body(
        &self,
        resource: &'static Resource,
        body: &Map<String, Value>,
        what: WriteKind,
    ) -> WriteResult<ParsedBody> {
        let branding = &self.environment.branding;
        let mut parsed = ParsedBody::default();
        for (name, given) in body {
            let Some(field) = named(resource, name) else {
                continue;
            };
            parsed.any = true;
            let is_input = field.writer == Word::Input;
            if !is_input
                && (!matches!(field.column, Column::Stored(_)) || !self.has_say(field, what))
            {
                continue;
            }
            // Null is ignored for a field that cannot be null and is not required.
            let left_out = what == WriteKind::Create && !field.nullable && !field.required;
            if given.is_null() && (left_out || (is_input && !field.nullable)) {
                continue;
            }
            let value = match (generated_where_empty(resource, field, given), what) {
                (true, WriteKind::Create) => continue,
                (true, WriteKind::Change) => StoredValue::Text(random::device_name()?),
                (false, _) => field.take(given, branding)?,
            };
            if is_input {
                parsed.inputs.set(field.name, value)
            } else {
                parsed.values.set(field.name, value)
            }
        }
        Ok(parsed)
    }

    /// Returns whether the caller may write a field.
    fn has_say(&self, field: &Field, what: WriteKind) -> bool {
        let Some(role) = self.context.caller.role() else {
            return field.name != "id";
        };
        match field.writer {
            Word::Client | Word::Input | Word::Provisioning => true,
            Word::People => role != Role::DeviceKey,
            Word::Creator => what == WriteKind::Create,
            Word::Device => self.reports || role == Role::DeviceKey,
            Word::Platform => false,
        }
    }

    /// Sets the defaults of missing fields, for a new row or one that is replaced.
    pub(super) fn by_default(
        &self,
        resource: &'static Resource,
        values: &mut Record,
    ) -> WriteResult {
        for (_, field) in stored(resource) {
            if values.has(field.name) || field.name == "id" {
                continue;
            }
            let value = match field.default {
                Default::None if field.nullable => StoredValue::Null,
                // The rules supply a value.
                Default::None => continue,
                Default::Text(text) => StoredValue::Text(text.to_owned()),
                Default::Integer(number) => StoredValue::Integer(number),
                Default::Boolean(flag) => StoredValue::Boolean(flag),
                Default::Now => StoredValue::Integer(self.now()),
                Default::Uuid => StoredValue::Text(random::uuid()?),
            };
            values.set(field.name, value);
        }
        Ok(())
    }

    /// Resets the fields that a replacing request does not name to their values in a new row. Fields without a default
    /// stay unchanged, as do those that the caller may not write.
    pub(super) fn reset(&self, resource: &'static Resource, values: &mut Record) -> WriteResult {
        let mut fresh = values.clone();
        self.by_default(resource, &mut fresh)?;
        for (_, field) in stored(resource) {
            let stays = values.has(field.name) || !self.has_say(field, WriteKind::Change);
            let is_theirs = matches!(
                field.writer,
                Word::Client | Word::People | Word::Provisioning
            );
            // A hidden value must not become readable because a request did not know about the flag.
            let mut others = resource.fields.iter();
            let hides = others.any(|other| other.secret_where == Some(field.name));
            if stays || hides || !is_theirs {
                continue;
            }
            match fresh.get(field.name) {
                Some(value) => values.set(field.name, value.clone()),
                None if field.required => return Err(missing(field)),
                None => {}
            }
        }
        Ok(())
    }
}

/// Checks that a new row has all required fields.
pub(super) fn require(resource: &'static Resource, values: &Record) -> WriteResult {
    for (_, field) in stored(resource) {
        if field.required && matches!(values.get(field.name), None | Some(StoredValue::Null)) {
            return Err(missing(field));
        }
    }
    Ok(())
}

fn missing(field: &Field) -> WriteError {
    WriteError::Refused(format!("`{}` is required", field.name))
}

/// Returns the field with a name, or with another name of a link.
fn named(resource: &'static Resource, name: &str) -> Option<&'static Field> {
    resource
        .find_field(name)
        .or_else(|| match super::model().navigation(resource, name)?.step {
            Step::One(field) => resource.find_field(field),
            _ => None,
        })
}

/// Returns whether a value is an empty device name, which stands for a generated one (docs/spec/cloud.md#model-device).
fn generated_where_empty(resource: &Resource, field: &Field, given: &Value) -> bool {
    (resource.name, field.name) == ("device", "device_name") && given.as_str() == Some("")
}
