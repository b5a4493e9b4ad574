//! What a request says of fields.

use resources::{Column, Default, Field, Resource, Role, Step, StoredValue, Writer as Word};
use serde_json::{Map, Value};

use super::{WriteError, WriteResult, Writer};
use crate::record::{Record, stored};

/// What a row is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteKind {
    Create,
    Change,
}

/// What a body says.
#[derive(Debug, Clone, Default)]
pub(super) struct ParsedBody {
    /// Of fields that are stored.
    pub(super) values: Record,
    /// Of fields that rules make others of.
    pub(super) inputs: Record,
    /// It names any field of the resource.
    pub(super) any: bool,
}

impl Writer<'_> {
    /// The values of a body. What the caller has no say in is passed over, as unknown names are.
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
            // Null says nothing of what cannot be null and need not be said.
            let left_out = what == WriteKind::Create && !field.nullable && !field.required;
            if given.is_null() && (left_out || (is_input && !field.nullable)) {
                continue;
            }
            let value = match (generated_where_empty(resource, field, given), what) {
                (true, WriteKind::Create) => continue,
                (true, WriteKind::Change) => {
                    StoredValue::Text(crate::rules::random::device_name()?)
                }
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

    /// Whether a field takes the caller's word.
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

    /// What fields are of which nothing is said: of a new row, or of one that is replaced.
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
                // The rules see to it.
                Default::None => continue,
                Default::Text(text) => StoredValue::Text(text.to_owned()),
                Default::Integer(number) => StoredValue::Integer(number),
                Default::Boolean(flag) => StoredValue::Boolean(flag),
                Default::Now => StoredValue::Integer(self.now()),
                Default::Uuid => StoredValue::Text(crate::rules::random::uuid()?),
            };
            values.set(field.name, value);
        }
        Ok(())
    }

    /// What fields become that a request which replaces a row does not name: what they would be in a new one.
    /// Those that have no default stay, as do those that the caller has no say in.
    pub(super) fn reset(&self, resource: &'static Resource, values: &mut Record) -> WriteResult {
        let mut fresh = values.clone();
        self.by_default(resource, &mut fresh)?;
        for (_, field) in stored(resource) {
            let stays = values.has(field.name) || !self.has_say(field, WriteKind::Change);
            let is_theirs = matches!(
                field.writer,
                Word::Client | Word::People | Word::Provisioning
            );
            // What nobody can read must not become readable because a request did not know that it is secret.
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

/// What a new row must say.
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

/// The field of a name, or of another name of a link.
fn named(resource: &'static Resource, name: &str) -> Option<&'static Field> {
    resource
        .find_field(name)
        .or_else(|| match super::model().navigation(resource, name)?.step {
            Step::One(field) => resource.find_field(field),
            _ => None,
        })
}

/// An empty name of a device means one that is made up (docs/spec/cloud.md#model-device).
fn generated_where_empty(resource: &Resource, field: &Field, given: &Value) -> bool {
    (resource.name, field.name) == ("device", "device_name") && given.as_str() == Some("")
}
