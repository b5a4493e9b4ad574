//! Images on devices: compares a report with the stored rows.

mod named;

use std::collections::{BTreeMap, HashMap, HashSet};

use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::cloud::Cloud;
use data::{DataError, SystemPurpose, Transaction};
use sea_query::{Alias, Expr, OnConflict, Query};

use crate::device::report::apps::{Apps, ReportedApp, ReportedImage, ReportedRelease, RowName};
use named::{NamedRow, apps_named, images_named, named_rows, releases_named};

/// Minimum interval between writes of a download's progress, in milliseconds.
const PROGRESS: i64 = 30_000;

/// The new state of an image on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Install {
    image: i64,
    release: i64,
    status: String,
    progress: Option<i64>,
}

/// The stored state of an image on a device.
#[derive(Debug)]
struct StoredInstall {
    release: i64,
    status: String,
    progress: Option<i64>,
    modified_at: i64,
}

/// The rows named in a report.
pub(super) struct ReportRows {
    /// The uuid of the device's fleet.
    fleet: Option<String>,
    /// By their commits.
    releases: Vec<NamedRow>,
    /// By their locations.
    images: Vec<NamedRow>,
    present: HashMap<i64, StoredInstall>,
}

/// Returns the successful release of a fleet with this commit.
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
    /// Reads the rows that a report names, and the images that the device has.
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
        // After a move, a device keeps its old release until the new one is present.
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

    /// Returns the release of the device's fleet with this commit, if the report names it among its releases.
    pub(super) fn release_of_fleet(&self, commit: &str) -> Option<i64> {
        let fleet = self.fleet.as_ref()?;
        let mut releases = self.releases.iter();
        let release = releases.find(|row| row.app == *fleet && row.name == commit);
        release.map(|row| row.id)
    }

    /// Returns the changed images of the device.
    ///
    /// # Errors
    /// 401 if a release or an image does not belong to its app.
    pub(super) fn changes(&self, apps: &Apps) -> Result<Vec<Install>, Refusal> {
        // Ordered by image, so that all writers use one order.
        let mut installs: BTreeMap<i64, Install> = BTreeMap::new();
        for release in &apps.releases {
            let (id, app) = self.release(release)?;
            for image in &release.images {
                let of = self.image(image, app)?;
                installs.insert(of, self.becomes(of, id, image));
            }
        }
        // Images that the device no longer has are missing in the report.
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

    /// Whether it differs from the stored data by more than a download step that was just written.
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

/// Returns the apps other than its fleet whose releases a device may have: those that manage or operate it. To the
/// device, all others do not exist.
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

/// Writes images of a device: new ones and existing ones.
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
