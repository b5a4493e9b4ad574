//! Fresh databases of both kinds, for tests.
//!
//! A database test is written once and run on both; on PostgreSQL if `SUPERVISOR_TEST_POSTGRES` has the address of a
//! server that lets its user create databases (`cargo xtask test` starts one and sets it).
#![expect(
    clippy::expect_used,
    reason = "a test that cannot have its database is to fail"
)]

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures::FutureExt;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use crate::connection::Connection;
use crate::database::Database;
use crate::dialect::Dialect;
use crate::options::Options;
use crate::statement::{BuiltStatement, Sql, Statement};

/// The variable with the address of a PostgreSQL server for tests.
pub const POSTGRES: &str = "SUPERVISOR_TEST_POSTGRES";

/// Returns a test's statement, to which values are then added in their order.
#[must_use]
pub fn sql(text: &'static str) -> Sql {
    crate::statement::sql(text)
}

/// Returns a test's statement for one database, without values.
#[must_use]
pub fn text(text: impl Into<String>) -> BuiltStatement {
    BuiltStatement::new(text, [])
}

/// Runs a test on a fresh database of each kind, and removes them afterwards.
///
/// # Panics
/// If the test does, or a database cannot be created.
pub async fn on_both<T: Future<Output = ()>>(test: impl Fn(Database) -> T) {
    on_both_at(|_, database| test(database)).await;
}

/// Like [`on_both`]; the test also receives the address, to open the database again.
///
/// # Panics
/// If the test does, or a database cannot be created.
pub async fn on_both_at<T: Future<Output = ()>>(test: impl Fn(String, Database) -> T) {
    on_fresh(async |url| {
        let database = open(&url).await;
        test(url, database.clone()).await;
        database.close().await;
    })
    .await;
}

/// Runs a test with the address of a fresh database of each kind, which it opens itself.
///
/// # Panics
/// If the test does, or a database cannot be created.
pub async fn on_fresh(test: impl AsyncFn(String)) {
    println!("on SQLite:");
    let folder = tempfile::tempdir().expect("a temporary folder");
    test(sqlite(folder.path())).await;

    on_fresh_postgres(test).await;
}

/// Like [`on_fresh`], only on PostgreSQL.
///
/// # Panics
/// If the test does, or a database cannot be created.
pub async fn on_fresh_postgres(test: impl AsyncFn(String)) {
    let Ok(server) = std::env::var(POSTGRES) else {
        println!("SKIPPED: {POSTGRES} is not set, so nothing ran on PostgreSQL");
        return;
    };
    println!("on PostgreSQL:");
    let url = fresh_postgres(&server).await;
    let result = AssertUnwindSafe(test(url.clone())).catch_unwind().await;
    drop_postgres(&url).await;
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// Creates a database with all tables on a server, and returns its address.
///
/// # Panics
/// If it cannot be created.
pub async fn fresh_postgres(server: &str) -> String {
    let name = format!("test_{}", random_name());
    make(server, &name).await;
    with_database(server, &name)
}

/// Removes a database created by [`fresh_postgres`].
///
/// # Panics
/// If that fails.
pub async fn drop_postgres(url: &str) {
    let place = url.split('?').next().unwrap_or(url);
    let (_, name) = place.rsplit_once('/').expect("an address with a database");
    let server = with_database(url, "postgres");
    administer(&server, format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

/// A fresh database of each kind, for a test that uses both at once.
pub struct FreshDatabases {
    /// The address of the SQLite database, and that of the PostgreSQL one if there is a server.
    pub urls: Vec<String>,
    _folder: tempfile::TempDir,
}

impl FreshDatabases {
    /// Creates the databases.
    ///
    /// # Panics
    /// If one cannot be created.
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut urls = vec![sqlite(folder.path())];
        if let Ok(server) = std::env::var(POSTGRES) {
            urls.push(fresh_postgres(&server).await);
        }
        FreshDatabases {
            urls,
            _folder: folder,
        }
    }

    /// Removes the PostgreSQL database; the other one is removed on drop.
    ///
    /// # Panics
    /// If that fails.
    pub async fn remove(&self) {
        for url in &self.urls[1..] {
            drop_postgres(url).await;
        }
    }
}

/// Returns the address of a SQLite database in a folder.
fn sqlite(folder: &Path) -> String {
    format!("sqlite:{}", folder.join("test.sqlite").display())
}

/// A separate small file system, unmounted on drop.
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one of `size` MiB; `None` if this user may not mount one.
    ///
    /// # Panics
    /// If there is no temporary folder.
    #[must_use]
    pub fn new(size: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}m"), "tmpfs"]);
        let done = mount.arg(folder.path()).output().ok()?;
        if !done.status.success() {
            println!("SKIPPED: this user can mount no file system, so no disk was full");
            return None;
        }
        Some(SmallDisk(folder))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

async fn open(url: &str) -> Database {
    let options = Options::default().with_connections(6);
    Database::open(url, &options)
        .await
        .expect("a database that opens")
}

/// An arbitrary number: the holder of this lock creates the template.
const LOCK: i64 = 0x7465_6d70;

/// Creates a database with all tables, as a copy of one that stays on the server: copying is far faster than creating
/// the tables again.
async fn make(server: &str, name: &str) {
    let template = format!("test_template_{}", crate::schema::digest());
    let mut administrator = administrator(server).await;
    let lock = format!("SELECT pg_advisory_lock({LOCK})");
    run(&mut administrator, lock).await;
    let there = crate::statement::sql("SELECT datname::text FROM pg_database WHERE datname = ?")
        .with(template.as_str())
        .built(Dialect::Postgres);
    let there = Connection::Postgres(&mut administrator, PATIENCE)
        .texts(there)
        .await
        .expect("an answer");
    if there.is_empty() {
        // Under another name until it is complete.
        let making = format!("{template}_{}", random_name());
        run(&mut administrator, format!("CREATE DATABASE {making}")).await;
        open(&with_database(server, &making)).await.close().await;
        let rename = format!("ALTER DATABASE {making} RENAME TO {template}");
        run(&mut administrator, rename).await;
    }
    let unlock = format!("SELECT pg_advisory_unlock({LOCK})");
    run(&mut administrator, unlock).await;
    let copy = format!("CREATE DATABASE {name} TEMPLATE {template}");
    run(&mut administrator, copy).await;
    let _ = administrator.close().await;
}

async fn administer(server: &str, statement: String) {
    let mut administrator = administrator(server).await;
    run(&mut administrator, statement).await;
    let _ = administrator.close().await;
}

/// How long the server may take to make or drop a database, or another test to make the template.
const PATIENCE: Duration = Duration::from_secs(300);

async fn run(administrator: &mut PgConnection, statement: String) {
    Connection::Postgres(administrator, PATIENCE)
        .script(statement)
        .await
        .expect("the right to make and drop databases");
}

async fn administrator(server: &str) -> PgConnection {
    PgConnection::connect(server).await.expect("the server")
}

/// Returns the address of another database on the same server.
fn with_database(server: &str, name: &str) -> String {
    let (place, options) = server.split_once('?').unwrap_or((server, ""));
    let (host, _) = place.rsplit_once('/').expect("an address with a database");
    format!("{host}/{name}?{options}")
}

fn random_name() -> String {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("random bytes");
    hex::encode(bytes)
}
