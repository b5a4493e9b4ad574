//! Images on devices: what a report says of them, held against what is known of them.

use std::collections::HashMap;

use data::{DataError, Row, Statement, SystemPurpose, SystemStatement, Transaction};
use sea_query::{Alias, Expr, ExprTrait, JoinType, OnConflict, Query, SelectStatement};

use crate::answer::Refusal;
use crate::cloud::{Cloud, now};
use crate::device::report::apps::{Apps, Image, ImageName, Name, Release, Which};

/// How often the progress of a download is written, in milliseconds.
const PROGRESS: i64 = 30_000;

/// An image of a device as it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Install {
    image: i64,
    release: i64,
    status: String,
    progress: Option<i64>,
}

/// An image of a device as it is known.
#[derive(Debug)]
struct Known {
    release: i64,
    status: String,
    progress: Option<i64>,
    modified_at: i64,
}

/// Rows that a report names.
pub(super) struct Looked {
    /// The uuid of the device's fleet.
    fleet: Option<String>,
    /// By their app and their commit.
    releases: Vec<(i64, String, String)>,
    /// With their app and their place.
    images: Vec<(i64, String, String)>,
    present: HashMap<i64, Known>,
}

/// The successful release of a fleet with this commit.
pub(super) async fn release_of(
    cloud: &Cloud,
    fleet: &str,
    commit: &str,
) -> Result<Option<i64>, DataError> {
    let select = SystemPurpose::Report.sql(
        "SELECT r.id FROM release AS r JOIN application AS a ON a.id = r.belongs_to__application \
         WHERE a.uuid = ? AND r.\"commit\" = ? AND r.status = 'success' ORDER BY r.id",
    )
    .with(fleet)
    .with(commit);
    let row = cloud.database.row(&select).await?;
    row.map(|row| row.id(0)).transpose()
}

impl Looked {
    /// Looks up what a report names, and the images that the device has.
    pub(super) async fn up(
        cloud: &Cloud,
        device: i64,
        fleet: Option<&str>,
        apps: &Apps,
    ) -> Result<Self, DataError> {
        let named = releases_named(device, apps);
        let pictured = images_named(device, apps);
        let present = SystemPurpose::Report.sql(
            "SELECT installs__image, is_provided_by__release, status, download_progress, modified_at \
             FROM image_install WHERE device = ?",
        )
        .with(device);
        let (releases, images, present) = futures::try_join!(
            rows(cloud, named.as_ref()),
            rows(cloud, pictured.as_ref()),
            cloud.database.rows(&present),
        )?;
        let three = |row: &Row| Ok((row.id(0)?, row.some_text(1)?, row.some_text(2)?));
        let releases: Result<_, DataError> = releases.iter().map(three).collect();
        let images: Result<_, DataError> = images.iter().map(three).collect();
        let mut known = HashMap::new();
        for row in &present {
            let install = Known {
                release: row.id(1)?,
                status: row.some_text(2)?,
                progress: row.number(3)?,
                modified_at: row.id(4)?,
            };
            known.insert(row.id(0)?, install);
        }
        Ok(Looked {
            fleet: fleet.map(str::to_owned),
            releases: releases?,
            images: images?,
            present: known,
        })
    }

    /// What becomes of the images of the device.
    ///
    /// # Errors
    /// 401, where a release or an image is none of its app.
    pub(super) fn changes(&self, apps: &Apps) -> Result<Vec<Install>, Refusal> {
        let mut said: HashMap<i64, Install> = HashMap::new();
        let mut order = Vec::new();
        for release in &apps.releases {
            let (id, app) = self.release(release)?;
            for image in &release.images {
                let of = self.image(image, app)?;
                let install = self.becomes(of, id, image);
                if said.insert(of, install).is_none() {
                    order.push(of);
                }
            }
        }
        let mut changes: Vec<Install> = Vec::new();
        for image in order {
            if let Some(install) = said.get(&image)
                && self.is_worth_it(install)
            {
                changes.push(install.clone());
            }
        }
        // What it has no more it does not name.
        for (image, known) in &self.present {
            if !said.contains_key(image) && (known.status != "deleted" || known.progress.is_some())
            {
                changes.push(Install {
                    image: *image,
                    release: known.release,
                    status: "deleted".to_owned(),
                    progress: None,
                });
            }
        }
        // In one order, whoever writes them.
        changes.sort_unstable_by_key(|install| install.image);
        Ok(changes)
    }

    fn release(&self, release: &Release) -> Result<(i64, &str), Refusal> {
        let app = match &release.app {
            Which::Uuid(uuid) => Some(uuid),
            Which::Own => self.fleet.as_ref(),
        };
        let mut releases = self.releases.iter();
        let found = releases.find(|(id, of, commit)| {
            let is_named = match &release.name {
                Name::Commit(wanted) => wanted == commit,
                Name::Id(wanted) => wanted == id,
            };
            is_named && Some(of) == app
        });
        found
            .map(|(id, of, _)| (*id, of.as_str()))
            .ok_or(Refusal::Unauthorized)
    }

    fn image(&self, image: &Image, app: &str) -> Result<i64, Refusal> {
        let mut images = self.images.iter();
        let found = images.find(|(id, of, location)| {
            let is_named = match &image.name {
                // References of images are in lower case.
                ImageName::Location(wanted) => wanted.eq_ignore_ascii_case(location),
                ImageName::Id(wanted) => wanted == id,
            };
            is_named && of == app
        });
        found.map(|(id, _, _)| *id).ok_or(Refusal::Unauthorized)
    }

    fn becomes(&self, image: i64, release: i64, said: &Image) -> Install {
        let known = self.present.get(&image);
        let status = said.status.map(str::to_owned);
        let status = status.or_else(|| known.map(|known| known.status.clone()));
        Install {
            image,
            release,
            status: status.unwrap_or_else(|| "Unknown".to_owned()),
            progress: said.progress,
        }
    }

    /// Whether it differs from what is known by more than a step of a download that was just written.
    fn is_worth_it(&self, install: &Install) -> bool {
        let Some(known) = self.present.get(&install.image) else {
            return true;
        };
        if known.status != install.status || known.release != install.release {
            return true;
        }
        match (known.progress, install.progress) {
            (before, after) if before == after => false,
            (None, _) | (_, None | Some(100)) => true,
            _ => now().saturating_sub(known.modified_at) >= PROGRESS,
        }
    }
}

async fn rows(cloud: &Cloud, statement: Option<&impl Statement>) -> Result<Vec<Row>, DataError> {
    match statement {
        Some(statement) => cloud.database.rows(statement).await,
        None => Ok(Vec::new()),
    }
}

/// That an app is one whose releases a device may have: its fleet, or what a release that manages or operates it is of.
/// All others are not there for it.
fn may_have(device: i64, app: (Alias, Alias)) -> Expr {
    let fleet = Alias::new("belongs_to__application");
    let id = Alias::new("id");
    let own = Query::select()
        .column(fleet.clone())
        .from(Alias::new("device"))
        .and_where(Expr::col(id.clone()).eq(device))
        .take();
    let [it, with] = ["it", "with_it"].map(Alias::new);
    let leads =
        |by: &str| Expr::col((with.clone(), id.clone())).equals((it.clone(), Alias::new(by)));
    let beside = Query::select()
        .column((with.clone(), fleet))
        .from_as(Alias::new("device"), it.clone())
        .join_as(
            JoinType::InnerJoin,
            Alias::new("release"),
            with.clone(),
            leads("should_be_managed_by__release").or(leads("should_be_operated_by__release")),
        )
        .and_where(Expr::col((it, id)).eq(device))
        .take();
    Expr::col(app.clone())
        .in_subquery(own)
        .or(Expr::col(app).in_subquery(beside))
}

/// That this is what the device has installed already: after a move it has the old until the new is there.
fn has_installed(device: i64, what: (Alias, Alias), by: &'static str) -> Expr {
    let installed = Query::select()
        .column(Alias::new(by))
        .from(Alias::new("image_install"))
        .and_where(Expr::col(Alias::new("device")).eq(device))
        .take();
    Expr::col(what).in_subquery(installed)
}

/// Id, app and commit of the successful releases that a report names and the device may have; more than those, where
/// one commit is of several apps.
fn releases_named(device: i64, apps: &Apps) -> Option<SystemStatement<SelectStatement>> {
    let mut commits = Vec::new();
    let mut ids = Vec::new();
    for release in &apps.releases {
        match &release.name {
            Name::Commit(commit) => commits.push(commit.as_str()),
            Name::Id(id) => ids.push(*id),
        }
    }
    if commits.is_empty() && ids.is_empty() {
        return None;
    }
    let [release, app] = ["release", "application"].map(Alias::new);
    let of = |table: &Alias, column: &str| (table.clone(), Alias::new(column));
    let select = Query::select()
        .column(of(&release, "id"))
        .column(of(&app, "uuid"))
        .column(of(&release, "commit"))
        .from(release.clone())
        .inner_join(
            app.clone(),
            Expr::col(of(&app, "id")).equals(of(&release, "belongs_to__application")),
        )
        .and_where(Expr::col(of(&release, "status")).eq("success"))
        .and_where(match commits.is_empty() {
            true => Expr::col(of(&release, "id")).is_in(ids),
            false => Expr::col(of(&release, "commit")).is_in(commits),
        })
        .and_where(may_have(device, of(&app, "id")).or(has_installed(
            device,
            of(&release, "id"),
            "is_provided_by__release",
        )))
        .take();
    Some(SystemPurpose::Report.statement(select))
}

/// Id, app and place of the successful images that a report names and the device may have.
fn images_named(device: i64, apps: &Apps) -> Option<SystemStatement<SelectStatement>> {
    let mut locations: Vec<String> = Vec::new();
    let mut ids = Vec::new();
    for image in apps.releases.iter().flat_map(|release| &release.images) {
        match &image.name {
            ImageName::Location(location) => {
                locations.push(location.to_lowercase());
                locations.push(location.clone());
            }
            ImageName::Id(id) => ids.push(*id),
        }
    }
    if locations.is_empty() && ids.is_empty() {
        return None;
    }
    locations.sort_unstable();
    locations.dedup();
    let [image, service, app] = ["image", "service", "application"].map(Alias::new);
    let of = |table: &Alias, column: &str| (table.clone(), Alias::new(column));
    let select = Query::select()
        .column(of(&image, "id"))
        .column(of(&app, "uuid"))
        .column(of(&image, "is_stored_at__image_location"))
        .from(image.clone())
        .inner_join(
            service.clone(),
            Expr::col(of(&service, "id")).equals(of(&image, "is_a_build_of__service")),
        )
        .inner_join(
            app.clone(),
            Expr::col(of(&app, "id")).equals(of(&service, "application")),
        )
        .and_where(Expr::col(of(&image, "status")).eq("success"))
        .and_where(match locations.is_empty() {
            true => Expr::col(of(&image, "id")).is_in(ids),
            false => Expr::col(of(&image, "is_stored_at__image_location")).is_in(locations),
        })
        .and_where(may_have(device, of(&app, "id")).or(has_installed(
            device,
            of(&image, "id"),
            "installs__image",
        )))
        .take();
    Some(SystemPurpose::Report.statement(select))
}

/// Writes images of a device: those that are new, and those that are known.
pub(super) async fn write(
    transaction: &mut Transaction,
    device: i64,
    installs: &[Install],
    now: i64,
) -> Result<(), DataError> {
    for installs in installs.chunks(500) {
        let mut insert = Query::insert()
            .into_table(Alias::new("image_install"))
            .columns(
                [
                    "created_at",
                    "modified_at",
                    "device",
                    "installs__image",
                    "install_date",
                    "status",
                    "download_progress",
                    "is_provided_by__release",
                ]
                .map(Alias::new),
            )
            .on_conflict(
                OnConflict::columns(["device", "installs__image"].map(Alias::new))
                    .update_columns(
                        [
                            "modified_at",
                            "status",
                            "download_progress",
                            "is_provided_by__release",
                        ]
                        .map(Alias::new),
                    )
                    .to_owned(),
            )
            .take();
        for install in installs {
            insert.values_panic([
                now.into(),
                now.into(),
                device.into(),
                install.image.into(),
                now.into(),
                install.status.as_str().into(),
                Expr::val(sea_query::Value::BigInt(install.progress)),
                install.release.into(),
            ]);
        }
        let insert = SystemPurpose::Report.statement(insert);
        transaction.execute(&insert).await?;
    }
    Ok(())
}
