//! Write requests of older versions, translated to current names (docs/spec/cloud.md#older-versions).
//!
//! The versions define the meaning of a body ([`resources::Version::written`]); values that depend on rows are looked
//! up here, in the transaction of the change.

use std::borrow::Cow;

use odata::Address;
use resources::{Lookup, Method, Resource};
use serde_json::{Map, Value};

use super::body::WriteKind;
use super::{Write, WriteError, WriteOutcome, WriteResult, Writer};
use crate::query::{self, QueryContext};
use crate::statement::sql;

/// A body in the names of the current version.
pub(super) struct CurrentBody<'a> {
    pub(super) fields: Cow<'a, Map<String, Value>>,
    /// A link to the changed row's successful release with this commit.
    commit: Option<(&'static str, String)>,
    /// Whether it names fields of its version, none of which are written.
    pub(super) is_void: bool,
}

impl<'a> Write<'a> {
    /// Returns the resource to write, as in the request's version.
    pub(super) fn resource(&self, name: &str) -> WriteResult<&'static Resource> {
        let resource = self.version.model().resource(name);
        resource.ok_or(WriteError::NoRights)
    }

    /// Translates field names in an error to those of the request's version.
    pub(super) fn in_its_names(&self, error: WriteError) -> WriteError {
        let named = match &self.request.address {
            Address::Resource(path) => self.version.model().resource(&path.resource.text),
            Address::Metadata => None,
        };
        let today = named.and_then(|then| super::model().resource(then.table));
        let (Some(then), Some(today)) = (named, today) else {
            return error;
        };
        let translated = |mut text: String| {
            for now in &today.fields {
                let renamed = then
                    .find_field(now.name)
                    .is_none_or(|it| it.column != now.column);
                let then = then.fields.iter().find(|it| it.column == now.column);
                if let (true, Some(then)) = (renamed, then) {
                    text = text.replace(&format!("`{}`", now.name), &format!("`{}`", then.name));
                }
            }
            text
        };
        match error {
            WriteError::Refused(text) => WriteError::Refused(translated(text)),
            WriteError::Forbidden(text) => WriteError::Forbidden(translated(text)),
            WriteError::NotFound(text) => WriteError::NotFound(translated(text)),
            WriteError::Conflict(text) => WriteError::Conflict(translated(text)),
            other => other,
        }
    }

    /// Returns the context for selecting rows, with the names of the request's version.
    pub(super) fn context<'b>(&self, current: QueryContext<'b>) -> QueryContext<'b> {
        QueryContext {
            model: self.version.model(),
            ..current
        }
    }
}

impl Writer<'_> {
    /// Translates a body for a resource of its version.
    pub(super) async fn in_current_names<'a>(
        &mut self,
        write: Write<'_>,
        resource: &Resource,
        method: Method,
        body: Cow<'a, Map<String, Value>>,
    ) -> WriteResult<CurrentBody<'a>> {
        if write.version == resources::Version::V7 {
            return Ok(CurrentBody {
                fields: body,
                commit: None,
                is_void: false,
            });
        }
        let is_known = body
            .keys()
            .any(|name| resource.find_field(name).is_some_and(|it| it.name != "id"));
        let branding = &self.environment.branding;
        let written = write
            .version
            .written(resource, method, body.into_owned(), branding)?;
        let mut fields = written.fields;
        let mut commit = None;
        for lookup in written.lookups {
            match lookup {
                // If the link itself is given as well, it takes precedence.
                Lookup::DeviceType { field, .. } | Lookup::Release { field, .. }
                    if fields.get(field).is_some_and(|it| !it.is_null()) => {}
                Lookup::DeviceType { field, name } => {
                    let id = self.device_type(&name).await?;
                    fields.insert(field.to_owned(), id.into());
                }
                Lookup::OwnOrganization => {
                    let id = self.own_organization().await?;
                    fields.insert("organization".to_owned(), id.into());
                }
                Lookup::Release {
                    field,
                    commit: None,
                } => {
                    fields.insert(field.to_owned(), Value::Null);
                }
                Lookup::Release {
                    field,
                    commit: Some(name),
                } => commit = Some((field, name)),
            }
        }
        let is_void = is_known && fields.is_empty() && commit.is_none();
        Ok(CurrentBody {
            fields: Cow::Owned(fields),
            commit,
            is_void,
        })
    }

    async fn device_type(&mut self, name: &str) -> WriteResult<i64> {
        let named = sql(
            "SELECT id FROM device_type WHERE slug = ? OR EXISTS (SELECT 1 FROM device_type_alias AS a \
             WHERE a.device_type = device_type.id AND a.is_referenced_by__alias = ?) ORDER BY slug <> ?, id",
        )
        .with(name)
        .with(name)
        .with(name);
        let id = self.transaction.id(&named).await?;
        id.ok_or_else(|| {
            WriteError::Refused(format!("`device_type`: there is no device type `{name}`"))
        })
    }

    async fn own_organization(&mut self) -> WriteResult<i64> {
        let first = sql(
            "SELECT is_member_of__organization FROM organization_membership WHERE \"user\" = ? \
             ORDER BY id LIMIT 1",
        )
        .with(self.user().unwrap_or(-1));
        let id = self.transaction.id(&first).await?;
        id.ok_or_else(|| {
            WriteError::refused("`organization` is required: you do not belong to an organization")
        })
    }

    /// Creates a row according to a body of its version.
    pub(super) async fn create_from_body(
        &mut self,
        write: Write<'_>,
        resource: &'static Resource,
        parsed: &CurrentBody<'_>,
    ) -> WriteResult<i64> {
        if parsed.commit.is_some() {
            return Err(WriteError::refused(
                "`commit`: a new fleet has no releases yet, so none with this commit",
            ));
        }
        let id = self.create(resource.table, &parsed.fields).await?;
        // If the resource is a selection of another's rows, the new row must be one of them.
        if resource.only.is_some() {
            let context = write.context(self.context);
            let one = query::permitted(&context, resource.name, id, Method::Create)?;
            if self.transaction.id(&one).await?.is_none() {
                return Err(WriteError::Refused(format!(
                    "the body does not contain a valid `{}`",
                    resource.name
                )));
            }
        }
        Ok(id)
    }

    /// Changes rows according to a body of their version; returns how many were found.
    pub(super) async fn change_from_body(
        &mut self,
        resource: &'static str,
        ids: &[i64],
        parsed: &CurrentBody<'_>,
    ) -> WriteResult<u64> {
        if parsed.is_void {
            return Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        }
        if parsed.commit.is_none() {
            return self.change(resource, ids, &parsed.fields).await;
        }
        let mut changed = 0;
        for id in ids {
            let fields = self.with_release(*id, parsed).await?;
            changed += self.change(resource, &[*id], &fields).await?;
        }
        Ok(changed)
    }

    /// Replaces a row according to a body of its version: fields not named become as in a new row.
    pub(super) async fn replace_from_body(
        &mut self,
        table: &'static Resource,
        ids: &[i64],
        parsed: &CurrentBody<'_>,
    ) -> WriteResult<WriteOutcome> {
        let fields = match ids {
            [id] => self.with_release(*id, parsed).await?,
            _ => parsed.fields.clone().into_owned(),
        };
        let mut parsed = self.parsed_body(table, &fields, WriteKind::Change)?;
        self.reset(table, &mut parsed.values)?;
        Ok(WriteOutcome::Changed(
            self.change_to(table, ids, parsed).await?,
        ))
    }

    /// Returns the fields of a body for this fleet, with its successful release that has the given commit.
    async fn with_release(
        &mut self,
        fleet: i64,
        parsed: &CurrentBody<'_>,
    ) -> WriteResult<Map<String, Value>> {
        let mut fields = parsed.fields.clone().into_owned();
        if let Some((link, commit)) = &parsed.commit {
            let release = sql(
                "SELECT id FROM release WHERE belongs_to__application = ? AND \"commit\" = ? \
                 AND status = 'success' ORDER BY id DESC LIMIT 1",
            );
            let release = release.with(fleet).with(commit.as_str());
            let release = self.transaction.id(&release).await?.ok_or_else(|| {
                WriteError::Refused(format!(
                    "`commit`: the fleet {fleet} has no successful release with the commit `{commit}`"
                ))
            })?;
            fields.insert((*link).to_owned(), release.into());
        }
        Ok(fields)
    }
}
