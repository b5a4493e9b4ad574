//! Statements that find the rows named in a report.

use std::collections::BTreeSet;

use cloud_core::cloud::Cloud;
use data::{DataError, SystemPurpose};
use sea_query::{Alias, Expr, ExprTrait, Query, SelectStatement, SimpleExpr};

use crate::device::report::apps::{Apps, ReportedApp, RowName};

/// A row named in a report, with the uuid of its app.
pub(super) struct NamedRow {
    pub(super) id: i64,
    pub(super) app: String,
    pub(super) name: String,
}

/// Returns the rows that a statement finds, in the order of the ids; none without a statement.
pub(super) async fn named_rows(
    cloud: &Cloud,
    select: Option<SelectStatement>,
) -> Result<Vec<NamedRow>, DataError> {
    let Some(select) = select else {
        return Ok(Vec::new());
    };
    let mut named = Vec::new();
    for row in cloud
        .database
        .rows(&SystemPurpose::Report.statement(select))
        .await?
    {
        named.push(NamedRow {
            id: row.id(0)?,
            app: row.some_text(1)?,
            name: row.some_text(2)?,
        });
    }
    named.sort_unstable_by_key(|row| row.id);
    Ok(named)
}

/// Returns the uuids of the apps that a report names, each once.
pub(super) fn apps_named<'a>(fleet: Option<&'a str>, apps: &'a Apps) -> Vec<&'a str> {
    let named = apps
        .releases
        .iter()
        .filter_map(|release| match &release.app {
            ReportedApp::Uuid(uuid) => Some(uuid.as_str()),
            ReportedApp::Own => fleet,
        });
    let mut named: Vec<&str> = named.collect();
    named.sort_unstable();
    named.dedup();
    named
}

/// Selects id, app and commit of the successful releases that a report names; further releases are included if several
/// of its apps have the same commit.
pub(super) fn releases_named(app_uuids: &[&str], apps: &Apps) -> Option<SelectStatement> {
    let names = apps.releases.iter().map(|release| &release.name);
    let (commits, ids) = split(names);
    let is_named = if commits.is_empty() {
        Expr::col(column("release", "id")).is_in(ids)
    } else {
        Expr::col(column("release", "commit")).is_in(commits)
    };
    let mut select = successful("release", "commit", app_uuids, is_named)?;
    let app = Expr::col(column("application", "id"));
    select.inner_join(
        Alias::new("application"),
        app.equals(column("release", "belongs_to__application")),
    );
    Some(select)
}

/// Selects id, app and location of the successful images that a report names.
pub(super) fn images_named(app_uuids: &[&str], apps: &Apps) -> Option<SelectStatement> {
    let images = apps.releases.iter().flat_map(|release| &release.images);
    let (locations, ids) = split(images.map(|image| &image.name));
    if locations.is_empty() && ids.is_empty() {
        return None;
    }
    let is_named = if locations.is_empty() {
        Expr::col(column("image", "id")).is_in(ids)
    } else {
        let lower = locations.iter().map(|location| location.to_lowercase());
        let as_reported = locations.iter().map(|location| (*location).to_owned());
        let either: BTreeSet<String> = lower.chain(as_reported).collect();
        Expr::col(column("image", "is_stored_at__image_location")).is_in(either)
    };
    let name = "is_stored_at__image_location";
    let mut select = successful("image", name, app_uuids, is_named)?;
    let (service, app) = (column("service", "id"), column("application", "id"));
    select
        .inner_join(
            Alias::new("service"),
            Expr::col(service).equals(column("image", "is_a_build_of__service")),
        )
        .inner_join(
            Alias::new("application"),
            Expr::col(app).equals(column("service", "application")),
        );
    Some(select)
}

/// Selects id, app and name of the successful rows of these apps; the caller must still join the table to that of the
/// apps. None if there are no apps.
fn successful(
    table: &str,
    name: &str,
    app_uuids: &[&str],
    is_named: SimpleExpr,
) -> Option<SelectStatement> {
    let app = column("application", "uuid");
    let select = Query::select()
        .column(column(table, "id"))
        .column(app.clone())
        .column(column(table, name))
        .from(Alias::new(table))
        .and_where(Expr::col(app).is_in(app_uuids.iter().copied()))
        .and_where(Expr::col(column(table, "status")).eq("success"))
        .and_where(is_named)
        .take();
    (!app_uuids.is_empty()).then_some(select)
}

fn column(table: &str, column: &str) -> (Alias, Alias) {
    (Alias::new(table), Alias::new(column))
}

/// Splits names into texts and numbers.
fn split<'a>(names: impl Iterator<Item = &'a RowName>) -> (Vec<&'a str>, Vec<i64>) {
    let (mut texts, mut ids) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            RowName::Text(text) => texts.push(text.as_str()),
            RowName::Id(id) => ids.push(*id),
        }
    }
    (texts, ids)
}
