//! Images on devices: what a report says of them, held against what is known of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use data::{DataError, SystemPurpose, Transaction};
use sea_query::{Alias, Expr, ExprTrait, OnConflict, Query, SelectStatement, SimpleExpr};

use crate::device::report::apps::{Apps, ReportedApp, ReportedImage, ReportedRelease, RowName};

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
    /// By their commits.
    releases: Vec<NamedRow>,
    /// By their locations.
    images: Vec<NamedRow>,
    present: HashMap<i64, StoredInstall>,
}

/// A row that a report names, with the uuid of its app.
struct NamedRow {
    id: i64,
    app: String,
    name: String,
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
    cloud.database.id(&select).await
}

impl ReportRows {
    /// Looks up what a report names, and the images that the device has.
    pub(super) async fn up(
        cloud: &Cloud,
        device: i64,
        fleet: Option<&str>,
        apps: &Apps,
    ) -> Result<Self, DataError> {
        let app_uuids = apps_named(fleet, apps);
        let named_releases = releases_named(&app_uuids, apps);
        let named_images = images_named(&app_uuids, apps);
        let present = SystemPurpose::Report.sql(
            "SELECT installs__image, is_provided_by__release, status, download_progress, modified_at \
             FROM image_install WHERE device = ?",
        )
        .with(device);
        let (mut releases, mut images, present) = futures::try_join!(
            named_rows(cloud, named_releases),
            named_rows(cloud, named_images),
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
        let is_own = |row: &NamedRow| Some(row.app.as_str()) == fleet;
        let has_release = |row: &NamedRow| is_own(row) || installed.contains(&row.id);
        let has_image = |row: &NamedRow| is_own(row) || stored.contains_key(&row.id);
        if !releases.iter().all(has_release) || !images.iter().all(has_image) {
            let beside = apps_beside(cloud, device).await?;
            releases.retain(|row| has_release(row) || beside.contains(&row.app));
            images.retain(|row| has_image(row) || beside.contains(&row.app));
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
        let release = releases.find(|row| row.app == *fleet && row.name == commit);
        release.map(|row| row.id)
    }

    /// What becomes of the images of the device.
    ///
    /// # Errors
    /// 401, where a release or an image is none of its app.
    pub(super) fn changes(&self, apps: &Apps) -> Result<Vec<Install>, Refusal> {
        // By the image, so that whoever writes them does so in one order.
        let mut installs: BTreeMap<i64, Install> = BTreeMap::new();
        for release in &apps.releases {
            let (id, app) = self.release(release)?;
            for image in &release.images {
                let of = self.image(image, app)?;
                installs.insert(of, self.becomes(of, id, image));
            }
        }
        // What it has no more it does not name.
        for (image, stored) in &self.present {
            installs.entry(*image).or_insert_with(|| Install {
                image: *image,
                release: stored.release,
                status: "deleted".to_owned(),
                progress: None,
            });
        }
        installs.retain(|_, install| self.is_worth_it(install));
        Ok(installs.into_values().collect())
    }

    fn release(&self, release: &ReportedRelease) -> Result<(i64, &str), Refusal> {
        let app = match &release.app {
            ReportedApp::Uuid(uuid) => Some(uuid),
            ReportedApp::Own => self.fleet.as_ref(),
        };
        let mut releases = self.releases.iter();
        let row = releases.find(|row| {
            let is_named = match &release.name {
                RowName::Text(commit) => *commit == row.name,
                RowName::Id(id) => *id == row.id,
            };
            is_named && Some(&row.app) == app
        });
        row.map(|row| (row.id, row.app.as_str()))
            .ok_or(Refusal::Unauthorized)
    }

    fn image(&self, image: &ReportedImage, app: &str) -> Result<i64, Refusal> {
        let mut images = self.images.iter();
        let row = images.find(|row| {
            let is_named = match &image.name {
                // References of images are in lower case.
                RowName::Text(location) => location.eq_ignore_ascii_case(&row.name),
                RowName::Id(id) => *id == row.id,
            };
            is_named && row.app == app
        });
        row.map(|row| row.id).ok_or(Refusal::Unauthorized)
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

/// What a statement finds, in the order of the ids; nothing where there is none to be asked.
async fn named_rows(
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
fn releases_named(app_uuids: &[&str], apps: &Apps) -> Option<SelectStatement> {
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

/// Id, app and location of the successful images that a report names.
fn images_named(app_uuids: &[&str], apps: &Apps) -> Option<SelectStatement> {
    let images = apps.releases.iter().flat_map(|release| &release.images);
    let (locations, ids) = split(images.map(|image| &image.name));
    if locations.is_empty() && ids.is_empty() {
        return None;
    }
    let is_named = if locations.is_empty() {
        Expr::col(column("image", "id")).is_in(ids)
    } else {
        let lower = locations.iter().map(|location| location.to_lowercase());
        let as_told = locations.iter().map(|location| (*location).to_owned());
        let either: BTreeSet<String> = lower.chain(as_told).collect();
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

/// Id, app and name of the successful rows of these apps; the table is yet to be joined to that of the apps. None where
/// there are no apps.
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

/// Texts and numbers that rows are named by.
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
