//! Images on devices: what a report says of them, held against what is known of them.

use std::collections::{HashMap, HashSet};

use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use data::{DataError, Row, Statement, SystemPurpose, SystemStatement, Transaction};
use sea_query::{Alias, Expr, ExprTrait, OnConflict, Query, SelectStatement};

use crate::device::report::apps::{
    Apps, ImageName, Name, ReportedApp, ReportedImage, ReportedRelease,
};

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
struct StoredInstall {
    release: i64,
    status: String,
    progress: Option<i64>,
    modified_at: i64,
}

/// Rows that a report names.
pub(super) struct ReportRows {
    /// The uuid of the device's fleet.
    fleet: Option<String>,
    /// By their app and their commit.
    releases: Vec<(i64, String, String)>,
    /// With their app and their place.
    images: Vec<(i64, String, String)>,
    present: HashMap<i64, StoredInstall>,
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

impl ReportRows {
    /// Looks up what a report names, and the images that the device has.
    pub(super) async fn up(
        cloud: &Cloud,
        device: i64,
        fleet: Option<&str>,
        apps: &Apps,
    ) -> Result<Self, DataError> {
        let of_apps = apps_named(fleet, apps);
        let named = releases_named(&of_apps, apps);
        let pictured = images_named(&of_apps, apps);
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
        let mut stored = HashMap::new();
        for row in &present {
            let install = StoredInstall {
                release: row.id(1)?,
                status: row.some_text(2)?,
                progress: row.number(3)?,
                modified_at: row.id(4)?,
            };
            stored.insert(row.id(0)?, install);
        }
        // After a move a device has what it had until the new is there.
        let installed: HashSet<i64> = stored.values().map(|stored| stored.release).collect();
        let mut releases = rows_by_id(&releases)?;
        let mut images = rows_by_id(&images)?;
        let is_own = |app: &str| Some(app) == fleet;
        let has_release = |id: &i64| installed.contains(id);
        let has_image = |id: &i64| stored.contains_key(id);
        if !releases
            .iter()
            .all(|(id, app, _)| is_own(app) || has_release(id))
            || !images
                .iter()
                .all(|(id, app, _)| is_own(app) || has_image(id))
        {
            let beside = apps_beside(cloud, device).await?;
            let may_have = |app: &String| is_own(app) || beside.contains(app);
            releases.retain(|(id, app, _)| may_have(app) || has_release(id));
            images.retain(|(id, app, _)| may_have(app) || has_image(id));
        }
        Ok(ReportRows {
            fleet: fleet.map(str::to_owned),
            releases,
            images,
            present: stored,
        })
    }

    /// The release of the device's fleet with this commit, where the report names it among its releases.
    pub(super) fn release_of_fleet(&self, commit: &str) -> Option<i64> {
        let fleet = self.fleet.as_ref()?;
        let mut releases = self.releases.iter();
        let found = releases.find(|(_, app, of)| app == fleet && of == commit);
        found.map(|(id, ..)| *id)
    }

    /// What becomes of the images of the device.
    ///
    /// # Errors
    /// 401, where a release or an image is none of its app.
    pub(super) fn changes(&self, apps: &Apps) -> Result<Vec<Install>, Refusal> {
        let mut installs: HashMap<i64, Install> = HashMap::new();
        let mut order = Vec::new();
        for release in &apps.releases {
            let (id, app) = self.release(release)?;
            for image in &release.images {
                let of = self.image(image, app)?;
                let install = self.becomes(of, id, image);
                if installs.insert(of, install).is_none() {
                    order.push(of);
                }
            }
        }
        let mut changes: Vec<Install> = Vec::new();
        for image in order {
            if let Some(install) = installs.get(&image)
                && self.is_worth_it(install)
            {
                changes.push(install.clone());
            }
        }
        // What it has no more it does not name.
        for (image, stored) in &self.present {
            if !installs.contains_key(image)
                && (stored.status != "deleted" || stored.progress.is_some())
            {
                changes.push(Install {
                    image: *image,
                    release: stored.release,
                    status: "deleted".to_owned(),
                    progress: None,
                });
            }
        }
        // In one order, whoever writes them.
        changes.sort_unstable_by_key(|install| install.image);
        Ok(changes)
    }

    fn release(&self, release: &ReportedRelease) -> Result<(i64, &str), Refusal> {
        let app = match &release.app {
            ReportedApp::Uuid(uuid) => Some(uuid),
            ReportedApp::Own => self.fleet.as_ref(),
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

    fn image(&self, image: &ReportedImage, app: &str) -> Result<i64, Refusal> {
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

    fn becomes(&self, image: i64, release: i64, reported: &ReportedImage) -> Install {
        let stored = self.present.get(&image);
        let status = reported.status.map(str::to_owned);
        let status = status.or_else(|| stored.map(|stored| stored.status.clone()));
        Install {
            image,
            release,
            status: status.unwrap_or_else(|| "Unknown".to_owned()),
            progress: reported.progress,
        }
    }

    /// Whether it differs from what is known by more than a step of a download that was just written.
    fn is_worth_it(&self, install: &Install) -> bool {
        let Some(stored) = self.present.get(&install.image) else {
            return true;
        };
        if stored.status != install.status || stored.release != install.release {
            return true;
        }
        match (stored.progress, install.progress) {
            (before, after) if before == after => false,
            (None, _) | (_, None | Some(100)) => true,
            _ => now().saturating_sub(stored.modified_at) >= PROGRESS,
        }
    }
}

async fn rows(cloud: &Cloud, statement: Option<&impl Statement>) -> Result<Vec<Row>, DataError> {
    match statement {
        Some(statement) => cloud.database.rows(statement).await,
        None => Ok(Vec::new()),
    }
}

/// Rows of an id, an app and a name, in the order of their ids.
fn rows_by_id(rows: &[Row]) -> Result<Vec<(i64, String, String)>, DataError> {
    let three = |row: &Row| Ok((row.id(0)?, row.some_text(1)?, row.some_text(2)?));
    let mut rows: Vec<_> = rows.iter().map(three).collect::<Result<_, DataError>>()?;
    rows.sort_unstable_by_key(|(id, ..)| *id);
    Ok(rows)
}

/// The apps beside its fleet whose releases a device may have: those that manage or operate it. All others are not there
/// for it.
async fn apps_beside(cloud: &Cloud, device: i64) -> Result<Vec<String>, DataError> {
    let select = SystemPurpose::Report.sql(
        "SELECT a.uuid FROM device AS d \
         JOIN release AS r ON r.id IN (d.should_be_managed_by__release, d.should_be_operated_by__release) \
         JOIN application AS a ON a.id = r.belongs_to__application WHERE d.id = ?",
    )
    .with(device);
    let rows = cloud.database.rows(&select).await?;
    rows.iter().map(|row| row.some_text(0)).collect()
}

/// The uuids of the apps that a report names, each once.
fn apps_named<'a>(fleet: Option<&'a str>, apps: &'a Apps) -> Vec<&'a str> {
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

/// Id, app and commit of the successful releases that a report names; more than those, where one commit is of several
/// of its apps.
fn releases_named(of_apps: &[&str], apps: &Apps) -> Option<SystemStatement<SelectStatement>> {
    let mut commits = Vec::new();
    let mut ids = Vec::new();
    for release in &apps.releases {
        match &release.name {
            Name::Commit(commit) => commits.push(commit.as_str()),
            Name::Id(id) => ids.push(*id),
        }
    }
    if of_apps.is_empty() {
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
        .and_where(Expr::col(of(&app, "uuid")).is_in(of_apps.iter().copied()))
        .and_where(Expr::col(of(&release, "status")).eq("success"))
        .and_where(if commits.is_empty() {
            Expr::col(of(&release, "id")).is_in(ids)
        } else {
            Expr::col(of(&release, "commit")).is_in(commits)
        })
        .take();
    Some(SystemPurpose::Report.statement(select))
}

/// Id, app and place of the successful images that a report names.
fn images_named(of_apps: &[&str], apps: &Apps) -> Option<SystemStatement<SelectStatement>> {
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
    if of_apps.is_empty() || (locations.is_empty() && ids.is_empty()) {
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
        .and_where(Expr::col(of(&app, "uuid")).is_in(of_apps.iter().copied()))
        .and_where(Expr::col(of(&image, "status")).eq("success"))
        .and_where(if locations.is_empty() {
            Expr::col(of(&image, "id")).is_in(ids)
        } else {
            Expr::col(of(&image, "is_stored_at__image_location")).is_in(locations)
        })
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
