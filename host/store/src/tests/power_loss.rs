//! The power is cut at every write that SQLite makes for the store: completed steps are there at the next start,
//! uncompleted ones are there completely or not at all, and the store opens.
//!
//! SQLite's writes are recorded, and applied to disks in all states that are possible after each write: with all, none
//! or parts of the data that no sync had covered by then.

mod disk;
mod recorder;
mod story;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::types::Value as SqlValue;

use self::disk::{Fate, Files, Op, after, put};
use self::recorder::Recorder;
use super::*;

/// Every table; a separate test checks that the list is complete.
const TABLES: [&str; 9] = [
    "setting",
    "api_key",
    "target",
    "running_release",
    "image",
    "intent",
    "plugin_data",
    "update_lock",
    "definition",
];

/// The complete contents of a store, a line for each row.
type Contents = Vec<String>;

/// The actions of a store, with the resulting operations on its disk.
struct Record {
    before: Files,
    ops: Vec<Op>,
    /// After each step: the number of operations so far, and the contents of the store.
    steps: Vec<(usize, Contents)>,
}

fn contents(store: &Store) -> Contents {
    let connection = store.connection();
    let mut found = Vec::new();
    for table in TABLES {
        let query = format!("SELECT * FROM {table} ORDER BY 1, 2");
        let mut statement = connection.prepare(&query).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values: Vec<SqlValue> = (0..columns).map(|column| row.get_unwrap(column)).collect();
            let mut digest = DefaultHasher::new();
            format!("{values:?}").hash(&mut digest);
            // Short enough to be read if they differ.
            found.push(format!("{table} {:?} {:x}", values[0], digest.finish()));
        }
    }
    found
}

/// In memory if possible: the disk's behaviour is simulated.
fn folder_in_memory() -> tempfile::TempDir {
    if Path::new("/dev/shm").is_dir() {
        tempfile::tempdir_in("/dev/shm").unwrap()
    } else {
        folder()
    }
}

/// The life of a device from its first start, with a second start in the middle.
fn life_of_a_store() -> Record {
    let folder = folder_in_memory();
    let recorder = Recorder::start(folder.path());
    let mut steps = Vec::new();
    let mut store = open(folder.path());
    steps.push((recorder.count(), contents(&store)));
    for step in story::steps() {
        step(&mut store);
        steps.push((recorder.count(), contents(&store)));
    }
    // Neither stopping nor starting changes anything.
    let held = contents(&store);
    drop(store);
    steps.push((recorder.count(), held));
    let store = open(folder.path());
    steps.push((recorder.count(), contents(&store)));
    store.put_intent("kind", "last", &json!(1)).unwrap();
    steps.push((recorder.count(), contents(&store)));
    store.remove_intent("kind", "last").unwrap();
    steps.push((recorder.count(), contents(&store)));
    drop(store);
    Record {
        before: Files::new(),
        ops: recorder.finish(),
        steps,
    }
}

impl Record {
    /// Returns the allowed contents of a store after a power cut after `position` operations: those of the last
    /// completed step, or those of the next one. `None` if no step was completed yet.
    fn allowed(&self, position: usize) -> Option<[&Contents; 2]> {
        let mut steps = self.steps.iter();
        let answered = steps.rposition(|(at, _)| *at <= position)?;
        let (_, held) = &self.steps[answered];
        let next = self.steps.get(answered + 1);
        Some([held, next.map_or(held, |(_, held)| held)])
    }

    /// Cuts the power after every operation, and opens the result; returns how many disks were
    /// tried.
    fn cut_everywhere(&self, fates: &(dyn Fn(usize) -> Vec<Fate> + Sync)) -> usize {
        let next = AtomicUsize::new(0);
        // Many writes result in the same disk if none of their data is there.
        let tried: Mutex<BTreeSet<u64>> = Mutex::default();
        let work = || {
            loop {
                let position = next.fetch_add(1, Ordering::Relaxed);
                if position > self.ops.len() {
                    return;
                }
                for fate in fates(position) {
                    let files = after(&self.before, &self.ops[..position], fate);
                    let allowed = self.allowed(position);
                    let mut digest = DefaultHasher::new();
                    (&files, &allowed).hash(&mut digest);
                    if tried.lock().unwrap().insert(digest.finish()) {
                        let what = format!("after {position} of {}, {fate:?}", self.ops.len());
                        check(&files, allowed, &what);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                thread.join().unwrap();
            }
        });
        tried.into_inner().unwrap().len()
    }
}

/// Opens a store from these files.
fn check(files: &Files, allowed: Option<[&Contents; 2]>, what: &str) {
    let folder = folder_in_memory();
    put(files, folder.path());
    let opened = Store::open(folder.path()).unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!(opened.set_aside, None, "{what}: it is taken for corrupt");
    let found = contents(&opened.store);
    if let Some(allowed) = allowed {
        let is_allowed = allowed.contains(&&found);
        assert!(is_allowed, "{what}: {found:#?}\nis none of {allowed:#?}");
    }
}

fn every_fate(position: usize) -> Vec<Fate> {
    let scattered = Fate::Scattered(position as u64);
    vec![Fate::Lost, Fate::Written, Fate::Torn, scattered]
}

#[test]
fn no_answered_write_is_lost_and_none_is_half_there_whenever_the_power_is_cut() {
    let record = life_of_a_store();
    assert!(record.ops.len() > 300, "{}", record.ops.len());
    let disks = record.cut_everywhere(&every_fate);
    println!("{} operations, {disks} disks", record.ops.len());
}

#[test]
fn every_table_is_written_in_the_life_that_is_cut() {
    let mut written = BTreeSet::new();
    let record = life_of_a_store();
    for line in record.steps.iter().flat_map(|(_, held)| held) {
        written.extend(line.split(' ').next());
    }
    assert_eq!(written, BTreeSet::from(TABLES));
    let folder = folder();
    let store = open(folder.path());
    let connection = store.connection();
    let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(query).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    let mut names: BTreeSet<String> = names.map(Result::unwrap).collect();
    // Older supervisors wrote it, and it is no longer read.
    assert!(names.remove("config"));
    assert_eq!(names, TABLES.map(str::to_owned).into());
}

#[test]
fn a_start_after_a_power_cut_may_itself_be_cut() {
    let life = life_of_a_store();
    for place in 1..12 {
        let position = life.ops.len() * place / 12;
        let Some([held, next]) = life.allowed(position) else {
            continue;
        };
        let fate = Fate::Scattered(!(position as u64));
        let before = after(&life.before, &life.ops[..position], fate);
        let folder = folder_in_memory();
        put(&before, folder.path());
        let recorder = Recorder::start(folder.path());
        drop(open(folder.path()));
        let start = Record {
            before,
            ops: recorder.finish(),
            // Never completed: both are possible.
            steps: vec![(0, held.clone()), (usize::MAX, next.clone())],
        };
        start.cut_everywhere(&every_fate);
    }
}

#[test]
fn a_change_of_the_schema_is_whole_or_not_at_all_whenever_the_power_is_cut() {
    let folder = folder_in_memory();
    let store = open(folder.path());
    store.put_intent("kind", "key", &json!(1)).unwrap();
    store
        .write("go back to the first schema", |work| {
            let older = "DROP TABLE update_lock; DROP TABLE definition;
                 DROP INDEX plugin_data_by_expiry; ALTER TABLE plugin_data DROP COLUMN expires_at;
                 PRAGMA user_version = 1";
            work.execute_batch(older).unwrap();
            Ok(())
        })
        .unwrap();
    drop(store);
    let file = std::fs::read(folder.path().join(FILE_NAME)).unwrap();
    let recorder = Recorder::start(folder.path());
    let store = open(folder.path());
    let held = contents(&store);
    drop(store);
    let start = Record {
        before: [(FILE_NAME.to_owned(), file)].into(),
        ops: recorder.finish(),
        steps: vec![(0, held)],
    };
    assert!(start.ops.len() > 10, "{}", start.ops.len());
    start.cut_everywhere(&every_fate);
}
