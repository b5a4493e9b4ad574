//! Tests of locks taken over the API.

use std::time::Duration;

use model::{LockHolder, LockKind, LockRefusal, LockRequest, UpdateLock};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn request(service: &str) -> LockRequest {
    LockRequest {
        app: APP,
        service: service.parse().unwrap(),
        reason: "writes flash".into(),
        ttl: HOUR,
        survives_reboot: false,
    }
}

fn surviving(service: &str) -> LockRequest {
    LockRequest {
        survives_reboot: true,
        ..request(service)
    }
}

impl Host {
    fn lease(&self, request: &LockRequest) -> UpdateLock {
        self.locks.lease(request).unwrap()
    }

    fn is_locked(&self, service: &str) -> bool {
        matches!(self.take(&[service]), Err(LockError::Locked { .. }))
    }

    /// Starts the next run of the supervisor, after a reboot if `boot` differs.
    fn starts_again(&mut self, boot: &str) {
        self.boot_is(boot);
        self.locks = self.next_supervisor();
        self.locks.sweep();
        self.locks.recall_leases().unwrap();
    }

    fn boot_is(&self, boot: &str) {
        let folder = self.root.path().join("proc/sys/kernel/random");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("boot_id"), boot).unwrap();
    }

    /// Deletes the host's volatile folder, like a reboot.
    fn forget_volatile(&self) {
        fs::remove_dir_all(self.root.path().join("tmp")).unwrap();
    }

    fn records(&self) -> usize {
        self.store.lock_records().unwrap().len()
    }
}

fn booted() -> Host {
    let mut host = host();
    host.starts_again("first");
    host
}

#[test]
fn a_lease_is_a_lock_file_and_giving_it_back_removes_it() {
    let host = booted();
    let result = host.lease(&request("web"));
    assert_eq!(
        result.path,
        Path::new("/tmp/platform-supervisor/services/7/web/updates.lock")
    );
    assert!(host.path("web").is_file());
    assert!(host.is_locked("web"));
    assert!(!host.is_locked("db"));
    host.locks.give_back(APP, &"web".parse().unwrap()).unwrap();
    assert!(!host.is_locked("web"));
    assert_eq!(host.records(), 0);
    let again = host.locks.give_back(APP, &"web".parse().unwrap());
    assert!(matches!(again, Err(LockRefusal::NotHeld(_))), "{again:?}");
}

#[test]
fn the_list_says_who_holds_what() {
    let host = booted();
    let _ours = host.take(&["ours"]).unwrap();
    host.lease(&surviving("leased"));
    host.user_lock("file", |path| fs::write(path, "").unwrap());
    host.user_lock("folder", |path| fs::create_dir(path).unwrap());
    host.user_lock("link", |path| symlink("/nowhere", path).unwrap());
    host.locks.prepare(APP, &"free".parse().unwrap()).unwrap();
    let locks = host.locks.list().unwrap();
    let found: Vec<(String, &LockHolder)> = locks
        .iter()
        .map(|lock| (lock.service.as_ref().unwrap().to_string(), &lock.holder))
        .collect();
    assert_eq!(found.len(), 5, "{found:?}");
    for (service, holder) in found {
        match (service.as_str(), holder) {
            ("ours", LockHolder::Supervisor)
            | ("file", LockHolder::File(LockKind::File))
            | ("folder", LockHolder::File(LockKind::Folder))
            | ("link", LockHolder::File(LockKind::Link)) => {}
            ("leased", LockHolder::Api(lock)) => {
                assert_eq!((lock.reason.as_str(), lock.ttl), ("writes flash", HOUR));
                assert!(lock.survives_reboot);
                assert!(lock.expires_ms > crate::clock::now_ms());
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(locks.iter().all(|lock| lock.since_ms.is_some()));
}

#[test]
fn the_list_names_folders_that_cannot_be_read() {
    let host = booted();
    host.lease(&request("web"));
    let services = host.root.path().join("tmp/platform-supervisor/services");
    fs::write(services.join("8"), "").unwrap();
    let locks = host.locks.list().unwrap();
    let [_, spoilt] = locks.as_slice() else {
        panic!("{locks:?}");
    };
    assert_eq!((spoilt.app, &spoilt.service), (AppId(8), &None));
    assert!(matches!(spoilt.holder, LockHolder::Unreadable(_)));
}

#[test]
fn renewing_changes_all_but_the_beginning() {
    let host = booted();
    let first = host.lease(&request("web"));
    let longer = LockRequest {
        reason: "still writes".into(),
        ttl: HOUR * 2,
        ..surviving("web")
    };
    let renewed = host.lease(&longer);
    assert_eq!(renewed.since_ms, first.since_ms);
    let LockHolder::Api(lock) = renewed.holder else {
        panic!("{renewed:?}");
    };
    assert_eq!((lock.reason.as_str(), lock.ttl), ("still writes", HOUR * 2));
    assert_eq!(host.records(), 1);
}

#[test]
fn a_lock_that_somebody_else_made_is_neither_taken_nor_given_back() {
    let host = booted();
    let web = "web".parse().unwrap();
    host.user_lock("web", |path| symlink("/nowhere", path).unwrap());
    for refused in [
        host.locks.lease(&request("web")).err(),
        host.locks.give_back(APP, &web).err(),
    ] {
        assert!(
            matches!(refused, Some(LockRefusal::HeldByFile(_))),
            "{refused:?}"
        );
    }
    let _ours = host.take(&["db"]).unwrap();
    let refused = host.locks.lease(&request("db"));
    assert!(
        matches!(refused, Err(LockRefusal::HeldBySupervisor(_))),
        "{refused:?}"
    );
    assert_eq!(host.records(), 0);
}

#[test]
fn removing_the_file_gives_the_lock_back() {
    let host = booted();
    host.lease(&request("web"));
    fs::remove_file(host.path("web")).unwrap();
    assert!(!host.is_locked("web"));
    assert_eq!(host.records(), 0);

    host.lease(&request("web"));
    fs::remove_file(host.path("web")).unwrap();
    // Now a user's lock, unknown to the record.
    fs::write(host.path("web"), "mine").unwrap();
    let given = host.locks.give_back(APP, &"web".parse().unwrap());
    assert!(matches!(given, Err(LockRefusal::HeldByFile(_))));
    assert!(host.path("web").exists());
}

#[test]
fn overriding_ends_a_lease_for_good() {
    let host = booted();
    host.lease(&surviving("web"));
    drop(
        host.locks
            .take(APP, &names(&["web"]), LockPolicy::Override)
            .unwrap(),
    );
    assert!(!host.is_locked("web"));
    assert_eq!(host.records(), 0);
}

#[test]
fn a_restart_leaves_leases_as_they_are() {
    let mut host = booted();
    let before = host.lease(&request("web"));
    host.starts_again("first");
    assert!(host.is_locked("web"));
    let listed = host.locks.list().unwrap();
    let [listed] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(listed.since_ms, before.since_ms);
    assert!(matches!(&listed.holder, LockHolder::Api(_)));

    // A lock whose file was removed meanwhile was released.
    fs::remove_file(host.path("web")).unwrap();
    host.starts_again("first");
    assert!(!host.is_locked("web"));
    assert_eq!(host.records(), 0);
}

#[test]
fn a_reboot_ends_those_that_were_not_to_survive_it() {
    // Whether or not the folder was emptied.
    for volatile in [true, false] {
        let mut host = booted();
        host.lease(&request("web"));
        host.lease(&surviving("db"));
        if volatile {
            host.forget_volatile();
        }
        host.starts_again("second");
        assert!(!host.is_locked("web"));
        assert!(host.is_locked("db"));
        assert_eq!(host.records(), 1);
        // From now on it belongs to this boot.
        host.starts_again("second");
        assert!(host.is_locked("db"));
        fs::remove_file(host.path("db")).unwrap();
        host.starts_again("second");
        assert!(!host.is_locked("db"));
    }
}

#[test]
fn a_kill_at_any_moment_leaves_nothing_that_stays_for_ever() {
    for survives_reboot in [false, true] {
        let mut host = booted();
        let request = LockRequest {
            survives_reboot,
            ..request("web")
        };
        host.lease(&request);
        let mut record = host.store.lock_records().unwrap().remove(0);

        // Before the store knew that the file was created.
        record.is_placed = false;
        host.store.put_lock(&record).unwrap();
        host.starts_again("first");
        assert!(host.is_locked("web"));
        assert!(host.store.lock_records().unwrap()[0].is_placed);

        // Before the file was created.
        host.store.put_lock(&record).unwrap();
        fs::remove_file(host.path("web")).unwrap();
        host.starts_again("first");
        assert!(host.is_locked("web"));

        // Before the store forgot it.
        record.is_placed = true;
        host.locks.give_back(APP, &record.service).unwrap();
        host.store.put_lock(&record).unwrap();
        host.starts_again("first");
        assert!(!host.is_locked("web"));
        assert_eq!(host.records(), 0);
    }
}

#[test]
fn a_lease_that_ended_while_nobody_looked_is_removed_at_the_start() {
    let mut host = booted();
    host.lease(&request("web"));
    let mut record = host.store.lock_records().unwrap().remove(0);
    record.expires_in_boot = 0;
    host.store.put_lock(&record).unwrap();
    host.starts_again("first");
    assert!(!host.is_locked("web"));
    assert!(!host.path("web").exists());

    // The time of day counts only after a reboot.
    host.lease(&surviving("web"));
    let mut record = host.store.lock_records().unwrap().remove(0);
    record.expires_at = 1;
    host.store.put_lock(&record).unwrap();
    host.starts_again("first");
    assert!(host.is_locked("web"));
    host.store.put_lock(&record).unwrap();
    host.starts_again("second");
    assert!(!host.is_locked("web"));

    // No lock lasts longer because a clock was set back.
    host.lease(&surviving("web"));
    let mut record = host.store.lock_records().unwrap().remove(0);
    record.expires_at = i64::MAX;
    host.store.put_lock(&record).unwrap();
    host.starts_again("third");
    let listed = host.locks.list().unwrap();
    let LockHolder::Api(lock) = &listed[0].holder else {
        panic!("{listed:?}");
    };
    let hour = i64::try_from(HOUR.as_millis()).unwrap();
    assert!(lock.expires_ms <= crate::clock::now_ms() + hour);
}

#[test]
fn a_lease_in_a_folder_that_cannot_be_used_is_refused() {
    let host = booted();
    let services = host.root.path().join("tmp/platform-supervisor/services");
    fs::create_dir_all(&services).unwrap();
    fs::write(services.join("7"), "").unwrap();
    let refused = host.locks.lease(&request("web"));
    assert!(
        matches!(refused, Err(LockRefusal::Failed(_))),
        "{refused:?}"
    );
    assert_eq!(host.records(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_when_its_time_is_over() {
    let host = booted();
    let keeping = tokio::spawn(host.locks.clone().keep_leases());
    host.lease(&request("web"));
    host.lease(&LockRequest {
        ttl: HOUR / 2,
        ..request("db")
    });
    tokio::time::sleep(HOUR / 2 - Duration::from_secs(1)).await;
    assert!(host.is_locked("web") && host.is_locked("db"));
    // Renewed in time.
    host.lease(&request("web"));
    let gone = |service: &'static str| {
        let path = host.path(service);
        async move { until_removed(&path).await.unwrap() }
    };
    gone("db").await;
    assert!(host.is_locked("web"));
    assert_eq!(host.records(), 1);
    let begun = tokio::time::Instant::now();
    gone("web").await;
    assert!(begun.elapsed() >= HOUR - Duration::from_secs(2));
    keeping.abort();
}
