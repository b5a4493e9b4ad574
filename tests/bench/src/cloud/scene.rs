//! A cloud with a fleet of many devices, which are inserted into its database directly.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use data::{Database, Dialect, Options, SystemPurpose};
use sha2::{Digest as _, Sha256};
use simulator::{Admin, Cloud, Fleet, Setup};

use super::place::{Kind, Place};

/// The first number of inserted rows: above all numbers that the cloud assigns at the same time.
const FIRST: usize = 1_000_000;
/// The number of keys in one statement.
const AT_ONCE: usize = 500;

/// A cloud with a fleet.
pub(crate) struct Scene {
    pub(crate) cloud: Cloud,
    pub(crate) admin: Admin,
    pub(crate) fleet: Fleet,
    /// The commits of its two releases; the devices run the first one.
    pub(crate) commits: [String; 2],
    /// The uuid of the fleet, and the locations of the releases' images.
    pub(crate) app: String,
    pub(crate) images: [String; 2],
    pub(crate) devices: usize,
}

impl Scene {
    pub(crate) async fn new(place: &Place, devices: usize) -> Result<Self> {
        let cloud = Cloud::start(&Setup {
            program: program("fleet-cloud")?,
            database: Some(place.url.clone()),
            pushes_per_second: None,
        })?;
        let admin = Admin::sign_in(cloud.url()).await?;
        let fleet = admin.fleet("bench", "generic-amd64").await?;
        let (second, later) = fleet.release(1).await?;
        fleet.finish(later).await?;
        // Releases are ordered by when they were created.
        let (first, running) = fleet.release(2).await?;
        fleet.finish(running).await?;
        let row = admin
            .rows(&format!("/v7/application({})?$select=uuid", fleet.id))
            .await?;
        let app = row.first().and_then(|row| row["uuid"].as_str());
        let app = app.context("the fleet has no uuid")?.to_owned();
        let images = [image(&admin, running).await?, image(&admin, later).await?];
        fill(place, fleet.id, running, devices)
            .await
            .context("the devices cannot be made")?;
        Ok(Scene {
            cloud,
            admin,
            fleet,
            commits: [first, second],
            app,
            images,
            devices,
        })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr> {
        let address = self.cloud.url().strip_prefix("http://");
        Ok(address.context("no address")?.parse()?)
    }
}

/// Returns a program that was built for the benchmarks.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("BENCH_PROGRAMS");
    let folder = folder.context("BENCH_PROGRAMS is not set: start this by `cargo xtask bench`")?;
    Ok(PathBuf::from(folder).join(name))
}

pub(crate) fn uuid(device: usize) -> String {
    format!("{:032x}", device + FIRST)
}

pub(crate) fn key(device: usize) -> String {
    format!("key-of-device-{device:08}")
}

async fn image(admin: &Admin, release: i64) -> Result<String> {
    let path = format!(
        "/v7/image?$select=is_stored_at__image_location&$filter=release_image/any(r:r/is_part_of__release%20eq%20{release})"
    );
    let rows = admin.rows(&path).await?;
    let location = rows
        .first()
        .and_then(|row| row["is_stored_at__image_location"].as_str());
    Ok(location.context("the release has no image")?.to_owned())
}

/// Inserts devices as if each had registered and reported that it runs the release.
async fn fill(place: &Place, fleet: i64, release: i64, devices: usize) -> Result<()> {
    let database = Database::open(&place.url, &Options::default()).await?;
    let last = FIRST + devices;
    let numbers = format!(
        "WITH RECURSIVE g(n) AS (SELECT {FIRST} UNION ALL SELECT n + 1 FROM g WHERE n < {}) ",
        last - 1
    );
    let uuid = match database.dialect() {
        Dialect::Sqlite => "printf('%032x', n)",
        Dialect::Postgres => "lpad(to_hex(n), 32, '0')",
    };
    let mut statements = vec![
        format!("{numbers}INSERT INTO actor (id, created_at, modified_at) SELECT n, 1, 1 FROM g"),
        format!(
            "{numbers}INSERT INTO device (id, created_at, modified_at, actor, uuid, device_name, is_of__device_type, \
             belongs_to__application, is_running__release, api_heartbeat_state, is_connected_to_vpn, is_online, \
             is_undervolted, is_active, is_web_accessible, public_address, ip_address, os_version, \
             supervisor_version, status) \
             SELECT n, 1, 1, n, {uuid}, 'device ' || n, a.is_for__device_type, a.id, {release}, 'online', FALSE, \
             FALSE, FALSE, TRUE, FALSE, '127.0.0.1', '10.0.0.1', 'Simulated OS 6.0.0', '19.0.0', 'Idle' \
             FROM g, application AS a WHERE a.id = {fleet}"
        ),
        format!(
            "INSERT INTO service_install (created_at, modified_at, device, installs__service) \
             SELECT 1, 1, d.id, s.id FROM device AS d JOIN service AS s ON s.application = {fleet} \
             WHERE d.belongs_to__application = {fleet}"
        ),
        format!(
            "INSERT INTO image_install (created_at, modified_at, device, installs__image, install_date, status, \
             is_provided_by__release) SELECT 1, 1, d.id, m.image, 1, 'Running', {release} \
             FROM device AS d JOIN release_image AS m ON m.is_part_of__release = {release} \
             WHERE d.belongs_to__application = {fleet}"
        ),
    ];
    for begin in (0..devices).step_by(AT_ONCE) {
        let mut keys =
            "INSERT INTO api_key (created_at, modified_at, is_of__actor, key_hash, role) VALUES "
                .to_owned();
        for device in begin..(begin + AT_ONCE).min(devices) {
            let hash = hex::encode(Sha256::digest(key(device).as_bytes()));
            let comma = if device > begin { "," } else { "" };
            let actor = FIRST + device;
            // Writing to a String cannot fail.
            let _ = write!(keys, "{comma}(1, 1, {actor}, '{hash}', 'device-api-key')");
        }
        statements.push(keys);
    }
    statements.push("ANALYZE".to_owned());
    execute(&database, statements).await?;
    database.close().await;
    Ok(())
}

/// Executes statements one after the other; an error names its statement.
pub(super) async fn execute(
    database: &Database,
    statements: impl IntoIterator<Item = String>,
) -> Result<()> {
    for statement in statements {
        let begin: String = statement.chars().take(60).collect();
        database
            .execute(&SystemPurpose::Operation.text(statement, []))
            .await
            .with_context(|| format!("`{begin}…`"))?;
    }
    Ok(())
}

/// Measures scenes of each kind and size, each with a fresh database: `of` receives the scene and the name of its
/// database.
pub(super) async fn each(
    kinds: &[Kind],
    large: bool,
    mut of: impl AsyncFnMut(&Scene, &str) -> Result<()>,
) -> Result<()> {
    let sizes: &[usize] = if large { &[1_000, 100_000] } else { &[1_000] };
    for kind in kinds {
        for size in sizes {
            let place = kind.fresh().await?;
            let scene = Scene::new(&place, *size).await?;
            of(&scene, place.name).await?;
            drop(scene);
            place.end().await;
        }
    }
    Ok(())
}
