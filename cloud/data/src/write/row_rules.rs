//! The rules between rows, as writes call them.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use resources::Resource;
use serde_json::{Map, Value};

use super::{Change, RowsToDelete, WriteResult, Writer};
use crate::record::Record;

/// Rules that a [`Writer`] applies around its statements, in the transaction of the request. Most rules write other rows,
/// by a writer; a writer therefore knows them only by this trait.
///
/// A rule refuses with a text for the client, adds to what is written, or changes other rows.
#[async_trait]
pub(crate) trait RowRules: fmt::Debug + Sync {
    /// Sets links to people in a new row whom the body names by their username or address.
    async fn resolve_people(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        body: &Map<String, Value>,
        values: &mut Record,
    ) -> WriteResult;

    /// Applies the rules before a row is created.
    async fn before_create(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        change: &mut Change,
    ) -> WriteResult;

    /// Applies the rules after a row was created.
    async fn after_create(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        change: &Change,
    ) -> WriteResult;

    /// Applies the rules before rows are changed; each may be changed differently.
    async fn before_change(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        changes: &mut [Change],
    ) -> WriteResult;

    /// Applies the rules after rows were changed.
    async fn after_change(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        changes: &[Change],
    ) -> WriteResult;

    /// Applies the rules before rows are deleted by a request for these rows themselves.
    async fn before_remove(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        ids: &[i64],
    ) -> WriteResult;

    /// Collects the effects before rows and all that depend on them are deleted.
    async fn before_going(
        &self,
        writer: &mut Writer<'_>,
        resource: &'static Resource,
        ids: &[i64],
        going: &RowsToDelete,
    ) -> WriteResult;

    /// Returns the images that are used only by these releases, which are about to be deleted.
    async fn find_unshared_images(
        &self,
        writer: &mut Writer<'_>,
        releases: &BTreeSet<i64>,
    ) -> WriteResult<Vec<i64>>;
}
