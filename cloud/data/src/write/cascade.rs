//! Deletion of rows and of those that depend on them (docs/spec/cloud.md#model-deletion).
//!
//! The database deletes dependent rows. Those with effects, or that prevent the deletion, are looked up before, so that
//! both databases name the same resource in an error, and devices and files are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use resources::{Column, Field, Method, OnDelete, Resource, Source, Type};

use super::{WriteResult, Writer, model};
use crate::dialect::Dialect;
use crate::error::DataError;
use crate::record::{self, Record};

/// Rows to delete, by resource.
pub(crate) type RowsToDelete = BTreeMap<&'static str, BTreeSet<i64>>;

impl Writer<'_> {
    /// Deletes the rows with these ids and all that depend on them; returns how many of these rows themselves.
    ///
    /// # Errors
    /// [`WriteError::Conflict`] if another row prevents it; otherwise as any write. The transaction must then be
    /// dropped.
    pub async fn remove(&mut self, resource: &str, ids: &[i64]) -> WriteResult<u64> {
        let resource = self.table(resource, Method::Delete)?;
        if ids.is_empty() {
            return Ok(0);
        }
        let rules = self.environment.rules.0;
        rules.before_remove(self, resource, ids).await?;
        let going = self.going(resource, ids).await?;
        self.check_holders(&going).await?;
        rules.before_going(self, resource, ids, &going).await?;
        // A row deleted by one cascade may be held by a row deleted by another, deeper one; PostgreSQL would check in
        // between.
        let postgres = self.transaction.dialect() == Dialect::Postgres;
        if postgres {
            self.transaction
                .script("SET CONSTRAINTS ALL DEFERRED")
                .await?;
        }
        self.audit("delete", resource, ids, &Record::default())
            .await?;
        record::delete(self.transaction, resource.name, ids).await?;
        for (owned, ids) in owned_of(&going) {
            if owned != resource.name {
                let ids: Vec<i64> = ids.iter().copied().collect();
                record::delete(self.transaction, owned, &ids).await?;
            }
        }
        if resource.name != "image"
            && let (Some(images), true) = (going.get("image"), going.contains_key("release"))
        {
            let images: Vec<i64> = images.iter().copied().collect();
            record::delete(self.transaction, "image", &images).await?;
        }
        if postgres {
            self.transaction
                .script("SET CONSTRAINTS ALL IMMEDIATE")
                .await?;
        }
        Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
    }

    /// Returns all rows deleted together with these that hold others, are held, or have to be reported.
    async fn going(
        &mut self,
        resource: &'static Resource,
        ids: &[i64],
    ) -> WriteResult<RowsToDelete> {
        let mut going = RowsToDelete::new();
        let mut next: Vec<(&'static Resource, Vec<i64>)> = vec![(resource, ids.to_vec())];
        while let Some((resource, mut ids)) = next.pop() {
            let visited = going.entry(resource.name).or_default();
            ids.retain(|id| visited.insert(*id));
            if ids.is_empty() {
                continue;
            }
            for (other, column, on_delete) in links_to(resource.name) {
                if on_delete == OnDelete::Cascade && MATTERS.contains(other.name) {
                    let rows =
                        record::leading_to(self.transaction, other.name, column, &ids).await?;
                    next.push((other, rows));
                }
            }
            for (column, to) in owned(resource) {
                let rows = record::behind(self.transaction, resource.name, column, &ids).await?;
                next.push((super::known(to)?, rows));
            }
        }
        // An image without any release can no longer run.
        if let Some(releases) = going.get("release").filter(|releases| !releases.is_empty()) {
            let rules = self.environment.rules.0;
            let images = rules.find_unshared_images(self, &releases.clone()).await?;
            going.entry("image").or_default().extend(images);
        }
        Ok(going)
    }

    /// Checks that no remaining row holds a row to delete.
    async fn check_holders(&mut self, going: &RowsToDelete) -> WriteResult {
        let none = BTreeSet::new();
        for (name, ids) in going {
            let ids: Vec<i64> = ids.iter().copied().collect();
            for (other, column, on_delete) in links_to(name) {
                if on_delete != OnDelete::Refuse {
                    continue;
                }
                let holders =
                    record::leading_to(self.transaction, other.name, column, &ids).await?;
                let gone = going.get(other.name).unwrap_or(&none);
                if holders.iter().any(|holder| !gone.contains(holder)) {
                    let by = other.name.to_owned();
                    return Err(DataError::Referenced { by }.into());
                }
            }
        }
        Ok(())
    }
}

/// Returns the links of all tables to a resource: the linking resource, its column, and the action on deletion.
fn links_to(name: &str) -> impl Iterator<Item = (&'static Resource, &'static str, OnDelete)> {
    let tables = model().resources().iter();
    let tables = tables.filter(|resource| resource.source == Source::Table);
    tables.flat_map(move |resource| {
        let fields = resource.fields.iter();
        fields.filter_map(move |field| match (field.kind, field.column) {
            (Type::Link { to, on_delete }, Column::Stored(column)) if to == name => {
                Some((resource, column, on_delete))
            }
            _ => None,
        })
    })
}

/// The resources whose rows must be known before deletion: they own other rows, hold rows or are held, have to be
/// reported, or such rows depend on them. All others, by far the most, are deleted by the database without being looked
/// up.
static MATTERS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let by_itself = |resource: &&Resource| {
        let refuses = |field: &Field| {
            let stored = matches!(field.column, Column::Stored(_));
            let on_delete = match field.kind {
                Type::Link { on_delete, .. } => Some(on_delete),
                _ => None,
            };
            stored && on_delete == Some(OnDelete::Refuse)
        };
        let is_announced = ["device", "image", "actor"].contains(&resource.name);
        let holds = resource
            .fields
            .iter()
            .any(|field| field.owns || refuses(field));
        let mut others = links_to(resource.name);
        is_announced || holds || others.any(|(_, _, on_delete)| on_delete == OnDelete::Refuse)
    };
    let all = model().resources().iter();
    let mut matter: BTreeSet<&str> = all.filter(by_itself).map(|one| one.name).collect();
    loop {
        let above = model().resources().iter().filter(|resource| {
            let mut others = links_to(resource.name);
            others.any(|(other, _, on_delete)| {
                on_delete == OnDelete::Cascade && matter.contains(other.name)
            })
        });
        let above: Vec<&str> = above.map(|one| one.name).collect();
        let before = matter.len();
        matter.extend(above);
        if matter.len() == before {
            return matter;
        }
    }
});

/// Returns the columns that link to owned rows, and the resource of those rows.
fn owned(resource: &Resource) -> impl Iterator<Item = (&'static str, &'static str)> {
    let fields = resource.fields.iter().filter(|field| field.owns);
    fields.filter_map(|field| match (field.kind, field.column) {
        (Type::Link { to, .. }, Column::Stored(column)) => Some((column, to)),
        _ => None,
    })
}

/// Returns the rows to delete that are owned by others.
fn owned_of(going: &RowsToDelete) -> impl Iterator<Item = (&'static str, &BTreeSet<i64>)> {
    let is_owned = |name: &str| {
        let mut all = model().resources().iter();
        all.any(|resource| owned(resource).any(|(_, to)| to == name))
    };
    going
        .iter()
        .filter(move |(name, _)| is_owned(name))
        .map(|(name, ids)| (*name, ids))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_numerous_rows_are_deleted_without_reading_them() {
        for unseen in [
            "device_tag",
            "image_install",
            "service_install",
            "device_service_environment_variable",
            "image_label",
        ] {
            assert!(!MATTERS.contains(unseen), "{unseen}");
        }
        for seen in [
            "device",
            "release",
            "service",
            "image",
            "application",
            "organization",
            "user",
        ] {
            assert!(MATTERS.contains(seen), "{seen}");
        }
    }
}
