//! The schema, as a list of migration steps. A released step is never changed: to change the
//! schema, add one at the end.

use rusqlite::{Connection, TransactionBehavior};

/// Each step brings the schema to the version of its position, counted from 1.
const STEPS: &[&str] = &[
    // 1
    "
    -- Single values by name: the device's uuid, the snapshot of local mode.
    CREATE TABLE setting (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- The global key has app 0 and no service.
    CREATE TABLE api_key (
        app INTEGER NOT NULL,
        service TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        PRIMARY KEY (app, service)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE target (
        source TEXT PRIMARY KEY CHECK (source IN ('local', 'cloud')),
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- The release of each app that runs, or last ran, whole.
    CREATE TABLE running_release (
        app TEXT PRIMARY KEY,
        release TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- Configuration variables in force.
    CREATE TABLE config (
        key TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE image (
        reference TEXT NOT NULL,
        app TEXT NOT NULL,
        app_id INTEGER NOT NULL,
        service TEXT NOT NULL,
        image_id INTEGER NOT NULL,
        PRIMARY KEY (reference, app, service)
    ) STRICT, WITHOUT ROWID;

    -- In the order that they were put.
    CREATE TABLE intent (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        UNIQUE (kind, key)
    ) STRICT;

    CREATE TABLE plugin_data (
        plugin TEXT NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (plugin, key)
    ) STRICT, WITHOUT ROWID;
    ",
    // 2
    "
    -- Update locks that services took over the API. Times in milliseconds: of the clock since the epoch,
    -- and, in the boot that is named, of the clock since that boot, which nobody sets.
    CREATE TABLE update_lock (
        app INTEGER NOT NULL,
        service TEXT NOT NULL,
        token TEXT NOT NULL,
        reason TEXT NOT NULL,
        ttl INTEGER NOT NULL,
        taken_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        boot TEXT NOT NULL,
        expires_in_boot INTEGER NOT NULL,
        survives_reboot INTEGER NOT NULL CHECK (survives_reboot IN (0, 1)),
        is_placed INTEGER NOT NULL CHECK (is_placed IN (0, 1)),
        PRIMARY KEY (app, service)
    ) STRICT, WITHOUT ROWID;
    ",
    // 3
    "
    -- What containers, volumes and networks were made from, by what and by the digest of it.
    CREATE TABLE definition (
        subject TEXT NOT NULL,
        digest TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (subject, digest)
    ) STRICT, WITHOUT ROWID;
    ",
    // 4
    "
    -- When what a plugin has stored is as if it were removed: milliseconds of the clock since the epoch.
    ALTER TABLE plugin_data ADD COLUMN expires_at INTEGER;
    CREATE INDEX plugin_data_by_expiry ON plugin_data (plugin, expires_at) WHERE expires_at IS NOT NULL;
    ",
];

/// The version that this supervisor writes.
pub(crate) fn known_version() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Migrates a schema to [`known_version`]; a newer one is left unchanged. Returns the version that
/// was found.
pub(crate) fn migrate(connection: &mut Connection) -> rusqlite::Result<i64> {
    migrate_by(STEPS, connection)
}

fn migrate_by(steps: &[&str], connection: &mut Connection) -> rusqlite::Result<i64> {
    // One transaction for all steps: after a kill, the schema is either the old or the new one.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let done = usize::try_from(found).unwrap_or(usize::MAX);
    for (index, step) in steps.iter().enumerate().skip(done) {
        transaction.execute_batch(step)?;
        transaction.execute_batch(&format!("PRAGMA user_version = {}", index + 1))?;
    }
    transaction.commit()?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(connection: &Connection) -> i64 {
        connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .unwrap()
    }

    #[test]
    fn steps_run_once_each_and_in_order() {
        let mut connection = Connection::open_in_memory().unwrap();
        let first = ["CREATE TABLE a (x)"];
        let both = ["CREATE TABLE a (x)", "ALTER TABLE a ADD COLUMN y"];
        assert_eq!(migrate_by(&first, &mut connection).unwrap(), 0);
        assert_eq!(migrate_by(&both, &mut connection).unwrap(), 1);
        assert_eq!(migrate_by(&both, &mut connection).unwrap(), 2);
        assert_eq!(version(&connection), 2);
        connection
            .execute("INSERT INTO a (x, y) VALUES (1, 2)", [])
            .unwrap();
    }

    #[test]
    fn a_step_that_fails_leaves_everything_as_it_was() {
        let mut connection = Connection::open_in_memory().unwrap();
        let broken = ["CREATE TABLE a (x)", "NOT A STATEMENT"];
        assert!(migrate_by(&broken, &mut connection).is_err());
        assert_eq!(version(&connection), 0);
        assert!(
            connection
                .execute("INSERT INTO a (x) VALUES (1)", [])
                .is_err()
        );
    }

    #[test]
    fn a_newer_schema_is_not_touched() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
        assert_eq!(migrate(&mut connection).unwrap(), 99);
        assert_eq!(version(&connection), 99);
    }
}
