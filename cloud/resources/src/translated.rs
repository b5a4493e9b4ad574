//! The body of a write request of any version, in the names of the current one.
//!
//! Code that writes rows calls [`Version::written`] first, and from then on needs to know only version 7. Values that
//! can be found only in the database are left to be looked up.

use serde_json::{Map, Value};

use crate::access::Method;
use crate::branding::Branding;
use crate::field::{Column, Constant, Field, Input, Type, Writer};
use crate::resource::Resource;
use crate::value::{StoredValue, ValueError};
use crate::version::Version;

/// The fields written, in the names of version 7.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TranslatedWrite {
    /// Fields and their values as the client gave them, each to be passed to [`Field::take`](crate::Field::take). Those
    /// that no version has are still included.
    pub fields: Map<String, Value>,
    /// Further fields, whose values must be looked up.
    pub lookups: Vec<Lookup>,
}

/// A field whose value must be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A link to the device type with this slug or alias.
    DeviceType {
        /// The link.
        field: &'static str,
        /// Slug or alias.
        name: String,
    },
    /// A link to the successful release of the same fleet with this commit, or null.
    Release {
        /// The link.
        field: &'static str,
        /// The commit; `None` for null.
        commit: Option<String>,
    },
    /// `organization` is the first organization of the user.
    OwnOrganization,
}

impl Version {
    /// Translates a body of this version (for a resource of its model) to the names of version 7; `method` is one of
    /// the writing methods.
    ///
    /// # Errors
    /// [`ValueError`] if the value of a field that only this version has is not accepted.
    pub fn written(
        self,
        resource: &Resource,
        method: Method,
        body: Map<String, Value>,
        branding: &Branding,
    ) -> Result<TranslatedWrite, ValueError> {
        let mut written = TranslatedWrite::default();
        if self == Version::V7 {
            written.fields = body;
            return Ok(written);
        }
        let is_written = |field: &Field| body.get(field.name).is_some_and(|it| !it.is_null());
        let of_user = |field: &&Field| field.input == Some(Input::OwnOrganization);
        if method == Method::Create
            && let Some(field) = resource.fields.iter().find(of_user)
            && !is_written(field)
        {
            written.lookups.push(Lookup::OwnOrganization);
        }
        let today = crate::v7().resource(resource.table);
        // A value given in two ways is compared once both have been read.
        let mut release_type = None;
        for (name, given) in body {
            let Some(field) = resource.find_field(&name) else {
                // Unknown names are kept; one that only version 7 has is unknown here, and dropped.
                if today.is_none_or(|it| it.find_field(&name).is_none()) {
                    written.fields.insert(name, given);
                }
                continue;
            };
            match field.input {
                Some(Input::ReleaseType) => release_type = Some((field, given)),
                Some(Input::OwnOrganization) if given.is_null() => {}
                Some(Input::DeviceType(link)) => {
                    if let StoredValue::Text(name) = field.take(&given, branding)? {
                        written
                            .lookups
                            .push(Lookup::DeviceType { field: link, name });
                    }
                }
                Some(Input::Commit(link)) => {
                    let commit = match field.take(&given, branding)? {
                        StoredValue::Text(commit) => Some(commit),
                        _ => None,
                    };
                    let field = link;
                    written.lookups.push(Lookup::Release { field, commit });
                }
                Some(Input::OwnOrganization) | None => {
                    written.add(field, given, today, branding)?
                }
            }
        }
        if let Some((field, given)) = release_type {
            written.decide(field, &given, today, branding)?;
        }
        Ok(written)
    }
}

impl TranslatedWrite {
    fn add(
        &mut self,
        field: &Field,
        given: Value,
        today: Option<&Resource>,
        branding: &Branding,
    ) -> Result<(), ValueError> {
        match field.column {
            Column::Stored(column) => {
                let given = match field.kind {
                    Type::JsonText { .. } => parsed(field, &given, branding)?,
                    _ => given,
                };
                self.fields.insert(column.to_owned(), given);
            }
            // `semver` and its like can still be written; other computed fields are read-only.
            Column::Computed(_) => {
                if today.is_some_and(|it| it.find_field(field.name).is_some()) {
                    self.fields.insert(field.name.to_owned(), given);
                }
            }
            // A field that is always null accepts null; other read-only fields are ignored.
            Column::Constant(Constant::Null)
                if field.writer == Writer::Client && !given.is_null() =>
            {
                return Err(field.refusal(&given, "null".to_owned()));
            }
            Column::Constant(_) => {}
        }
        Ok(())
    }

    /// Sets `is_final` from `release_type`.
    fn decide(
        &mut self,
        field: &Field,
        given: &Value,
        today: Option<&Resource>,
        branding: &Branding,
    ) -> Result<(), ValueError> {
        let is_final = field.take(given, branding)? == StoredValue::Text("final".to_owned());
        let other = self.fields.get("is_final");
        let field_today = today.and_then(|it| it.find_field("is_final"));
        if let (Some(other), Some(field_today)) = (other, field_today)
            && field_today.take(other, branding)? != StoredValue::Boolean(is_final)
        {
            return Err(field.refusal(given, "what `is_final` says".to_owned()));
        }
        self.fields
            .insert("is_final".to_owned(), Value::Bool(is_final));
        Ok(())
    }
}

/// Parses an object that was given as text.
fn parsed(field: &Field, given: &Value, branding: &Branding) -> Result<Value, ValueError> {
    match field.take(given, branding)? {
        StoredValue::Text(text) => serde_json::from_str(&text)
            .map_err(|_| field.refusal(given, field.requirement(branding))),
        _ => Ok(Value::Null),
    }
}
