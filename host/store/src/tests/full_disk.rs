//! Starts on a disk that accepts no writes. The tests mount, which requires root; otherwise they do
//! nothing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use secure_fs::{Access, SecureDir};

use super::*;

/// A file system of 4 MiB, in memory, over a folder.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn over(folder: &Path) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(folder)
            .output();
        match mounted {
            Ok(done) if done.status.success() => Some(SmallDisk(folder.to_owned())),
            other => {
                println!("SKIPPED: no small disk ({other:?})");
                None
            }
        }
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn remount(&self, mode: &str) {
        let options = format!("remount,{mode}");
        let done = Command::new("mount")
            .args(["-o", &options])
            .arg(&self.0)
            .status();
        assert!(done.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

type Change = fn(&SmallDisk);

const UNWRITABLE: [(&str, Change, Change); 2] = [
    ("full", SmallDisk::fill, |disk| {
        fs::remove_file(disk.0.join("filler")).unwrap();
    }),
    (
        "read-only",
        |disk| disk.remount("ro"),
        |disk| disk.remount("rw"),
    ),
];

#[test]
fn a_store_whose_disk_takes_no_writes_is_read_until_it_does() {
    for (what, spoil, mend) in UNWRITABLE {
        for was_killed in [false, true] {
            let folder = folder();
            let state = folder.path().join("state");
            let Some(disk) = SmallDisk::over(&state) else {
                return;
            };
            let copies = SecureDir::open(&folder.path().join("run"), Access::Private).unwrap();
            let store = open(&state);
            store.put_intent("kind", "key", &json!(1)).unwrap();
            let uuid = store.device_uuid().clone();
            let key = if was_killed {
                store.regenerate_key(&KeyOwner::Global).unwrap()
            } else {
                store.global_key().unwrap()
            };
            // The state after a kill: a log that has not been merged into the database.
            let log = fs::read(state.join("store.db-wal")).unwrap();
            let database = fs::read(state.join("store.db")).unwrap();
            drop(store);
            if was_killed {
                fs::write(state.join("store.db"), database).unwrap();
                fs::write(state.join("store.db-wal"), log).unwrap();
            }
            spoil(&disk);
            let opened = Store::open_or_copy(&state, Some(&copies));
            let store = opened
                .unwrap_or_else(|error| panic!("{what}: {error:?}"))
                .store;
            assert!(!store.is_on_disk(), "{what}");
            assert_eq!(*store.device_uuid(), uuid, "{what}");
            assert_eq!(store.global_key().unwrap().reveal(), key.reveal(), "{what}");
            assert_eq!(store.intents().unwrap().len(), 1, "{what}");
            let shown = read_global_key(&state).unwrap();
            assert_eq!(shown.reveal(), key.reveal(), "{what}");
            // A second store cannot be opened at the same time.
            let second = Store::open_or_copy(&state, Some(&copies)).unwrap_err();
            assert!(matches!(second, StoreError::InUse { .. }), "{second}");
            let refused = store.put_intent("kind", "other", &json!(2)).unwrap_err();
            assert!(matches!(refused, StoreError::File { .. }), "{refused:?}");
            assert_eq!(store.intents().unwrap().len(), 1, "{what}");

            mend(&disk);
            store.put_intent("kind", "other", &json!(2)).unwrap();
            assert!(store.is_on_disk(), "{what}");
            drop(store);
            let store = open(&state);
            assert_eq!(store.intents().unwrap().len(), 2, "{what}");
            assert_eq!(store.global_key().unwrap().reveal(), key.reveal(), "{what}");
        }
    }
}

#[test]
fn a_disk_that_fills_while_the_store_is_open_shows_until_it_takes_writes() {
    for (what, spoil, mend) in UNWRITABLE {
        let folder = folder();
        let state = folder.path().join("state");
        let Some(disk) = SmallDisk::over(&state) else {
            return;
        };
        let store = open(&state);
        assert!(store.takes_writes(), "{what}");
        if what == "read-only" {
            // The open database prevents its disk from becoming read-only.
            continue;
        }
        spoil(&disk);
        let large = json!("x".repeat(1 << 20));
        let refused = store.put_intent("kind", "key", &large).unwrap_err();
        assert!(matches!(refused, StoreError::Failed { .. }), "{refused:?}");
        assert!(!store.takes_writes(), "{what}");
        // The store notices without any write that there is room again.
        mend(&disk);
        assert!(store.takes_writes(), "{what}");
        store.put_intent("kind", "key", &large).unwrap();
        // A failure with another cause says nothing about the disk.
        let row = |work: &rusqlite::Transaction<'_>| {
            work.execute("INSERT INTO nowhere VALUES (1)", [])?;
            Ok(())
        };
        assert!(store.write("write", row).is_err());
        assert!(store.takes_writes(), "{what}");
    }
}

#[test]
fn without_a_store_a_disk_that_takes_no_writes_is_an_error_that_says_so() {
    for (what, spoil, _) in UNWRITABLE {
        let folder = folder();
        let state = folder.path().join("state");
        let Some(disk) = SmallDisk::over(&state) else {
            return;
        };
        let copies = SecureDir::open(&folder.path().join("run"), Access::Private).unwrap();
        spoil(&disk);
        let refused = Store::open_or_copy(&state, Some(&copies)).unwrap_err();
        let shown = refused.to_string();
        assert!(shown.contains("store.db"), "{what}: {shown}");
    }
}
