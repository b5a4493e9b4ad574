//! Creation of rows.

use resources::{Method, Resource};
use serde_json::{Map, Value};

use super::body::{self, ParsedBody, WriteKind};
use super::change::{Change, never_null};
use super::{WriteError, WriteResult, Writer, known};
use crate::record::{self, Record, stored};

impl Writer<'_> {
    /// Creates a row according to a body, for the caller; returns its id.
    ///
    /// # Errors
    /// [`WriteError`]; the transaction must then be dropped.
    pub async fn create(&mut self, resource: &str, body: &Map<String, Value>) -> WriteResult<i64> {
        let resource = self.table(resource, Method::Create)?;
        let mut parsed = self.parsed_body(resource, body, WriteKind::Create)?;
        let rules = self.environment.rules.0;
        rules
            .resolve_people(self, resource, body, &mut parsed.values)
            .await?;
        self.create_from(resource, parsed).await
    }

    pub(super) async fn create_from(
        &mut self,
        resource: &'static Resource,
        parsed: ParsedBody,
    ) -> WriteResult<i64> {
        let ParsedBody { values, inputs, .. } = parsed;
        let inserted = values.clone();
        body::require(resource, &values)?;
        self.check_links(resource, &values, Method::Create).await?;
        let mut change = Change {
            new: values,
            inputs,
            ..Change::default()
        };
        self.by_default(resource, &mut change.new)?;
        let rules = self.environment.rules.0;
        rules.before_create(self, resource, &mut change).await?;
        never_null(resource, &change.new)?;
        for (_, field) in stored(resource) {
            if field.owns {
                let owned = self.create_owned(field.kind).await?;
                change.new.set_number(field.name, owned);
            }
        }
        change.id = self.insert(resource, &mut change).await?;
        self.check_still_permitted(resource, &[change.id], Method::Create)
            .await?;
        rules.after_create(self, resource, &change).await?;
        self.check_quotas(resource.name, change.id).await?;
        self.audit("create", resource, &[change.id], &inserted)
            .await?;
        Ok(change.id)
    }

    /// Creates the row owned by a new row: its actor.
    async fn create_owned(&mut self, kind: resources::Type) -> WriteResult<i64> {
        let resources::Type::Link { to, .. } = kind else {
            return Err(WriteError::Broken(
                "a field owns what it does not link to".to_owned(),
            ));
        };
        let values = Record::made_at(self.now());
        Ok(record::insert(self.transaction, known(to)?, &values).await?)
    }
}
