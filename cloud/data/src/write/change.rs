//! Changes of existing rows.

use std::collections::BTreeSet;

use resources::{Method, Resource, StoredValue};
use serde_json::{Map, Value};

use super::body::{ParsedBody, WriteKind};
use super::{WriteError, WriteResult, Writer};
use crate::query;
use crate::record::{self, Record};
use crate::sealed::secret_field;

/// One row that is created or changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    /// Its id; 0 before it is created.
    pub(crate) id: i64,
    /// The previous values; empty before it is created.
    pub(crate) old: Record,
    /// The written fields.
    pub(crate) new: Record,
    /// Written inputs from which rules derive other fields.
    pub(crate) inputs: Record,
}

impl Change {
    /// Returns the new value of a field.
    pub(crate) fn will_be(&self, field: &str) -> &StoredValue {
        let value = self.new.get(field).or_else(|| self.old.get(field));
        value.unwrap_or(&StoredValue::Null)
    }

    pub(crate) fn number(&self, field: &str) -> Option<i64> {
        match self.will_be(field) {
            StoredValue::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        match self.will_be(field) {
            StoredValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, field: &str) -> bool {
        matches!(self.will_be(field), StoredValue::Boolean(true))
    }

    /// Returns whether the value of a field changes.
    pub(crate) fn alters(&self, field: &str) -> bool {
        let written = self.new.get(field);
        written.is_some_and(|new| new != self.old.get(field).unwrap_or(&StoredValue::Null))
    }

    pub(crate) fn alters_any(&self, fields: &[&str]) -> bool {
        fields.iter().any(|field| self.alters(field))
    }
}

/// Returns the rows in which any of these fields changes.
pub(crate) fn altering(changes: &[Change], fields: &[&str]) -> Vec<i64> {
    let changes = changes.iter();
    let altering = changes.filter(|change| change.alters_any(fields));
    altering.map(|change| change.id).collect()
}

/// Returns the new targets of a link of these rows, without duplicates.
pub(crate) fn targets<'c>(changes: impl IntoIterator<Item = &'c Change>, link: &str) -> Vec<i64> {
    let targets = changes.into_iter().filter_map(|change| change.number(link));
    BTreeSet::from_iter(targets).into_iter().collect()
}

impl Writer<'_> {
    /// Changes the rows with these ids according to a body, for the caller; returns how many rows were found.
    ///
    /// # Errors
    /// [`WriteError`]; the transaction must then be dropped.
    pub async fn change(
        &mut self,
        resource: &str,
        ids: &[i64],
        body: &Map<String, Value>,
    ) -> WriteResult<u64> {
        let resource = self.table(resource, Method::Update)?;
        let parsed = self.parsed_body(resource, body, WriteKind::Change)?;
        if !parsed.any {
            let name = resource.name;
            return Err(WriteError::refused(if body.is_empty() {
                "the body names no field to be changed".to_owned()
            } else {
                format!("`{name}` has none of the fields that the body names")
            }));
        }
        self.change_to(resource, ids, parsed).await
    }

    pub(super) async fn change_to(
        &mut self,
        resource: &'static Resource,
        ids: &[i64],
        parsed: ParsedBody,
    ) -> WriteResult<u64> {
        let ParsedBody { values, inputs, .. } = parsed;
        let rows = record::load(self.transaction, resource, ids).await?;
        if rows.is_empty() || (values.is_empty() && inputs.is_empty()) {
            return Ok(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        }
        self.check_links(resource, &values, Method::Update).await?;
        let mut changes: Vec<Change> = rows
            .into_iter()
            .map(|(id, mut old)| {
                remove_secret(resource, &mut old);
                Change {
                    id,
                    old,
                    new: values.clone(),
                    inputs: inputs.clone(),
                }
            })
            .collect();
        self.check_both_ends(resource, &changes).await?;
        let rules = self.environment.rules.0;
        rules.before_change(self, resource, &mut changes).await?;
        let now = self.now();
        for change in &mut changes {
            change.new.set_number("modified_at", now);
            never_null(resource, &change.new)?;
        }
        let mut sealed = BTreeSet::new();
        for change in &mut changes {
            if self.seal(resource, change)? {
                sealed.insert(change.id);
            }
        }
        // Most requests set the same values in all rows, except for encrypted ones, which differ in each.
        let mut alike: Vec<(&Record, Vec<i64>)> = Vec::new();
        for change in &changes {
            let mut others = alike.iter_mut();
            match others.find(|(new, _)| !sealed.contains(&change.id) && **new == change.new) {
                Some((_, ids)) => ids.push(change.id),
                None => alike.push((&change.new, vec![change.id])),
            }
        }
        for (new, ids) in alike {
            record::update(self.transaction, resource, &ids, new).await?;
        }
        let ids: Vec<i64> = changes.iter().map(|change| change.id).collect();
        self.check_still_permitted(resource, &ids, Method::Update)
            .await?;
        rules.after_change(self, resource, &changes).await?;
        self.audit("change", resource, &ids, &values).await?;
        Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
    }

    /// Checks that the caller has this right on each of these rows in its new state.
    pub(super) async fn check_still_permitted(
        &mut self,
        resource: &'static Resource,
        ids: &[i64],
        method: Method,
    ) -> WriteResult {
        if self.is_platform() {
            return Ok(());
        }
        for ids in ids.chunks(500) {
            let name = resource.name;
            let select = query::permitted_among(&self.context, name, Some(ids), method.into())?;
            if self.transaction.ids(&select).await?.len() != ids.len() {
                return Err(WriteError::NoRights);
            }
        }
        Ok(())
    }
}

/// Checks that no rule set a non-nullable field to null.
pub(super) fn never_null(resource: &Resource, values: &Record) -> WriteResult {
    for (name, value) in values.iter() {
        let field = resource.find_field(name);
        if *value == StoredValue::Null && field.is_some_and(|field| !field.nullable) {
            return Err(WriteError::Refused(format!("`{name}` cannot be null")));
        }
    }
    Ok(())
}

/// Removes the secret value from the previous state of a row: no rule needs it, and a written value always counts as
/// changed, so that nobody can find out whether it was the same.
fn remove_secret(resource: &Resource, old: &mut Record) {
    if let Some((field, flag)) = secret_field(resource)
        && old.flag(flag) == Some(true)
    {
        old.remove(field.name);
    }
}
