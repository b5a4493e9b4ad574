mod leases;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

use super::*;

const APP: AppId = AppId(7);
/// A user without any rights. Ownership of folders is only tested by root.
const NOBODY: u32 = 65534;

pub(super) struct Host {
    pub(super) root: tempfile::TempDir,
    pub(super) locks: Locks,
    store: Store,
}

pub(super) fn host() -> Host {
    let root = tempfile::tempdir().unwrap();
    let store = Store::open(&root.path().join("state")).unwrap().store;
    let locks = locks(root.path(), "marker-of-this-device", &store);
    Host { root, locks, store }
}

fn locks(root: &Path, marker: &str, store: &Store) -> Locks {
    Locks::new(root, &Branding::default(), marker, store.clone())
}

fn names(services: &[&str]) -> BTreeSet<ServiceName> {
    services.iter().map(|name| name.parse().unwrap()).collect()
}

impl Host {
    /// Returns the locks of the next run of the supervisor.
    pub(super) fn next_supervisor(&self) -> Locks {
        locks(self.root.path(), "marker-of-this-device", &self.store)
    }

    pub(super) fn path(&self, service: &str) -> PathBuf {
        let folder = self.root.path().join("tmp/platform-supervisor/services/7");
        folder.join(service).join("updates.lock")
    }

    fn take(&self, services: &[&str]) -> Result<UpdateLocks, LockError> {
        self.locks.take(APP, &names(services), LockPolicy::Respect)
    }

    /// Puts a lock of the user, of any kind.
    fn user_lock(&self, service: &str, put: impl FnOnce(&Path)) {
        self.locks.prepare(APP, &service.parse().unwrap()).unwrap();
        put(&self.path(service));
    }
}

#[test]
fn taking_puts_a_marked_file_for_each_service_and_dropping_removes_it() {
    let host = host();
    let guard = host.take(&["web", "db"]).unwrap();
    assert!(guard.covers(&"web".parse().unwrap()));
    for service in ["web", "db"] {
        let content = fs::read_to_string(host.path(service)).unwrap();
        assert_eq!(content, "marker-of-this-device");
        let folder = fs::metadata(host.path(service).parent().unwrap()).unwrap();
        assert_eq!(folder.permissions().mode() & 0o7777, 0o1777);
    }
    drop(guard);
    for service in ["web", "db"] {
        assert!(fs::symlink_metadata(host.path(service)).is_err());
    }
}

#[test]
fn anything_at_the_path_is_a_users_lock_and_stays() {
    type Put = fn(&Path);
    let put: [(&str, Put); 5] = [
        ("empty file", |path| fs::write(path, "").unwrap()),
        ("file", |path| fs::write(path, "mine").unwrap()),
        ("folder", |path| fs::create_dir(path).unwrap()),
        ("dangling link", |path| symlink("/nowhere", path).unwrap()),
        ("socket", |path| {
            std::os::unix::net::UnixListener::bind(path).unwrap();
        }),
    ];
    for (what, put) in put {
        let host = host();
        host.user_lock("web", put);
        let refused = host.take(&["db", "web"]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Lockfile exists for { appId: 7, service: web }",
            "{what}"
        );
        assert!(fs::symlink_metadata(host.path("web")).is_ok(), "{what}");
        // All or none: the lock that was free was released again.
        assert!(fs::symlink_metadata(host.path("db")).is_err(), "{what}");
        drop(host.take(&["db"]).unwrap());
    }
}

#[test]
fn a_link_to_a_lock_of_ours_is_a_users_lock() {
    let host = host();
    let ours = host.root.path().join("elsewhere");
    fs::write(&ours, "marker-of-this-device").unwrap();
    host.user_lock("web", |path| symlink(&ours, path).unwrap());
    assert!(matches!(host.take(&["web"]), Err(LockError::Locked { .. })));
}

#[test]
fn what_a_killed_supervisor_left_is_reclaimed() {
    let host = host();
    std::mem::forget(host.take(&["web"]).unwrap());
    let next = host.next_supervisor();
    drop(
        next.take(APP, &names(&["web"]), LockPolicy::Respect)
            .unwrap(),
    );
    assert!(fs::symlink_metadata(host.path("web")).is_err());
}

#[test]
fn what_another_device_left_is_not_ours() {
    let host = host();
    std::mem::forget(host.take(&["web"]).unwrap());
    let other = locks(host.root.path(), "another-device", &host.store);
    assert!(
        other
            .take(APP, &names(&["web"]), LockPolicy::Respect)
            .is_err()
    );
    other.sweep();
    assert!(fs::symlink_metadata(host.path("web")).is_ok());
}

#[test]
fn a_sweep_removes_our_left_overs_and_no_users_lock() {
    let host = host();
    std::mem::forget(host.take(&["web"]).unwrap());
    host.user_lock("db", |path| fs::write(path, "").unwrap());
    host.locks.sweep();
    assert!(fs::symlink_metadata(host.path("web")).is_err());
    assert!(fs::symlink_metadata(host.path("db")).is_ok());
}

#[test]
fn two_operations_of_one_supervisor_do_not_share_a_lock() {
    let host = host();
    let guard = host.take(&["web", "db"]).unwrap();
    let refused = host.take(&["web"]).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Locks for app 7 are being held by another supervisor operation"
    );
    // The refusal took nothing from the first.
    assert!(fs::symlink_metadata(host.path("web")).is_ok());
    drop(guard);
    drop(host.take(&["web"]).unwrap());
}

#[test]
fn overriding_removes_a_users_lock_for_good() {
    let host = host();
    host.user_lock("web", |path| fs::write(path, "mine").unwrap());
    host.user_lock("db", |path| fs::create_dir(path).unwrap());
    let result = host
        .locks
        .take(APP, &names(&["web", "db"]), LockPolicy::Override);
    drop(result.unwrap());
    assert!(fs::symlink_metadata(host.path("web")).is_err());
    assert!(fs::symlink_metadata(host.path("db")).is_err());
}

#[test]
fn a_folder_with_something_in_it_survives_overriding() {
    let host = host();
    host.user_lock("web", |path| {
        fs::create_dir(path).unwrap();
        fs::write(path.join("keep"), "").unwrap();
    });
    let result = host.locks.take(APP, &names(&["web"]), LockPolicy::Override);
    assert!(matches!(result, Err(LockError::Locked { .. })));
}

#[test]
fn a_lock_that_a_user_put_over_ours_is_not_removed() {
    let host = host();
    let guard = host.take(&["web"]).unwrap();
    fs::remove_file(host.path("web")).unwrap();
    fs::write(host.path("web"), "mine").unwrap();
    drop(guard);
    assert!(fs::symlink_metadata(host.path("web")).is_ok());
}

#[tokio::test]
async fn the_removal_of_a_lock_is_noticed() {
    let host = host();
    host.user_lock("web", |path| fs::write(path, "").unwrap());
    let path = host.path("web");
    let watching = tokio::spawn({
        let path = path.clone();
        async move { until_removed(&path).await }
    });
    tokio::task::yield_now().await;
    fs::remove_file(&path).unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(10), watching)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    // A lock that is already gone is not waited for.
    until_removed(&path).await.unwrap();
}

/// Takes the locks of all apps; `apps` are those that have containers.
async fn all(host: &Host, apps: Option<&[u32]>, policy: LockPolicy) -> Result<AllLocks, LockError> {
    let apps = apps.map(|apps| apps.iter().map(|app| AppId((*app).into())).collect());
    host.locks.take_all(apps, policy).await
}

#[tokio::test]
async fn the_locks_of_all_apps_are_those_of_every_service_folder() {
    let host = host();
    for service in ["web", "db"] {
        host.locks.prepare(APP, &service.parse().unwrap()).unwrap();
    }
    let services = host.root.path().join("tmp/platform-supervisor/services");
    for other in ["9/one", "07/odd", "x/none", "7/no name"] {
        fs::create_dir_all(services.join(other)).unwrap();
    }
    symlink(services.join("7"), services.join("8")).unwrap();
    let lock = |service: &str| services.join(service).join("updates.lock");
    let held = all(&host, None, LockPolicy::Respect).await.unwrap();
    for (service, locked) in [
        ("7/web", true),
        ("7/db", true),
        ("9/one", true),
        ("07/odd", false),
        ("x/none", false),
        ("7/no name", false),
    ] {
        assert_eq!(lock(service).exists(), locked, "{service}");
    }
    drop(held);
    assert!(!lock("7/web").exists() && !lock("9/one").exists());

    // In an app without containers, a lock does not matter.
    fs::write(lock("9/one"), "mine").unwrap();
    drop(all(&host, Some(&[7]), LockPolicy::Respect).await.unwrap());
    let refused = all(&host, None, LockPolicy::Respect).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Lockfile exists for { appId: 9, service: one }"
    );
    assert!(!lock("7/web").exists(), "all or none");
    drop(all(&host, None, LockPolicy::Override).await.unwrap());
    assert!(!lock("9/one").exists());
}

#[tokio::test]
async fn an_operation_on_all_apps_waits_for_another_on_one_and_for_one_on_all() {
    let host = Arc::new(host());
    let one = host.take(&["web"]).unwrap();
    let waiting = tokio::spawn({
        let host = Arc::clone(&host);
        async move { all(&host, None, LockPolicy::Respect).await }
    });
    // It waits for the first as soon as a second is blocked.
    while host.locks.one_at_a_time.try_lock().is_ok() {
        tokio::task::yield_now().await;
    }
    drop(one);
    let held = waiting.await.unwrap().unwrap();
    let second = tokio::spawn({
        let host = Arc::clone(&host);
        async move { all(&host, None, LockPolicy::Respect).await }
    });
    tokio::task::yield_now().await;
    assert!(host.path("web").exists());
    drop(held);
    drop(second.await.unwrap().unwrap());
    assert!(!host.path("web").exists());
}

#[tokio::test]
async fn the_wait_for_another_operation_ends_after_ten_seconds() {
    let host = host();
    let one = host.take(&["web"]).unwrap();
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let refused = all(&host, None, LockPolicy::Override).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Locks for app 7 are being held by another supervisor operation"
    );
    assert!(begun.elapsed().as_secs() >= 10);
    drop(one);
    let all_of_none = all(&host, Some(&[]), LockPolicy::Respect).await.unwrap();
    let refused = all(&host, None, LockPolicy::Respect).await.unwrap_err();
    assert!(matches!(refused, LockError::AllBusy), "{refused}");
    drop(all_of_none);
}

/// Makes a lock folder unreadable, even for root.
type Spoil = fn(&Path);

const SPOILT_APPS: [(&str, Spoil); 2] = [
    ("a file", |services| {
        fs::write(services.join("7"), "").unwrap();
    }),
    ("a loop of links", |services| {
        symlink("7", services.join("7")).unwrap();
    }),
];

#[tokio::test]
async fn a_folder_that_cannot_be_read_counts_as_locked_and_is_not_overridden() {
    for (what, spoil) in SPOILT_APPS {
        let host = host();
        let services = host.root.path().join("tmp/platform-supervisor/services");
        fs::create_dir_all(&services).unwrap();
        spoil(&services);
        for policy in [LockPolicy::Respect, LockPolicy::Override] {
            let refused = [
                host.locks.take(APP, &names(&["web"]), policy).err(),
                all(&host, Some(&[7]), policy).await.err(),
                host.locks
                    .take_missing(APP, names(&[]), LockScope::WholeFolder, &[], policy)
                    .err(),
            ];
            for refused in refused {
                let Some(LockError::Failed { path, .. }) = &refused else {
                    panic!("{what}: {refused:?}");
                };
                assert!(path.starts_with(services.join("7")), "{what}: {path:?}");
            }
        }
        assert!(fs::symlink_metadata(services.join("7")).is_ok(), "{what}");
    }
}

#[tokio::test]
async fn the_folder_of_all_apps_that_cannot_be_read_locks_them_all() {
    let host = host();
    let services = host.root.path().join("tmp/platform-supervisor/services");
    fs::create_dir_all(services.parent().unwrap()).unwrap();
    fs::write(&services, "").unwrap();
    let refused = all(&host, None, LockPolicy::Override).await.unwrap_err();
    assert!(matches!(refused, LockError::Failed { .. }), "{refused}");
    assert!(host.locks.list().is_err());
}

#[test]
fn services_that_are_gone_keep_their_app_locked_where_the_whole_folder_counts() {
    let host = host();
    host.user_lock("left-over", |path| fs::write(path, "").unwrap());
    let take = |reach, policy| {
        host.locks
            .take_missing(APP, names(&["web"]), reach, &[], policy)
    };
    drop(take(LockScope::Named, LockPolicy::Respect).unwrap());
    let refused = take(LockScope::WholeFolder, LockPolicy::Respect).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Lockfile exists for { appId: 7, service: left-over }"
    );
    let guard = take(LockScope::WholeFolder, LockPolicy::Override).unwrap();
    let guard = Arc::new(guard.unwrap());
    assert!(guard.covers(&"left-over".parse().unwrap()));
    // A lock that is held already is not taken twice.
    let held = [Arc::clone(&guard)];
    let more = host.locks.take_missing(
        APP,
        names(&["web"]),
        LockScope::WholeFolder,
        &held,
        LockPolicy::Respect,
    );
    assert!(more.unwrap().is_none());
}

#[test]
fn a_tree_that_somebody_else_made_first_is_moved_away_whole() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let host = host();
    let top = host.root.path().join("tmp/platform-supervisor");
    let service = top.join("services/7/web");
    fs::create_dir_all(&service).unwrap();
    fs::write(service.join("updates.lock"), "").unwrap();
    for folder in ["", "services", "services/7", "services/7/web"] {
        chown(top.join(folder), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    drop(host.take(&["web"]).unwrap());
    for folder in ["", "services", "services/7"] {
        let about = fs::symlink_metadata(top.join(folder)).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o7777), (0, 0o755), "{folder}");
    }
    let beside = fs::read_dir(host.root.path().join("tmp")).unwrap();
    assert_eq!(beside.count(), 2, "what was there, and ours");
}

#[test]
fn an_apps_folder_of_somebody_else_counts_as_locked() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let host = host();
    host.locks.prepare(APP, &"web".parse().unwrap()).unwrap();
    let app = host
        .path("web")
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    chown(&app, Some(NOBODY), Some(NOBODY)).unwrap();
    let refused = host.take(&["web"]).unwrap_err();
    let LockError::Failed { source, .. } = &refused else {
        panic!("{refused:?}");
    };
    let why = source.to_string();
    assert!(why.contains("belongs to the user 65534"), "{why}");
}

#[test]
fn the_folder_of_a_service_that_became_a_link_keeps_the_mode_of_what_it_names() {
    let host = host();
    host.locks.prepare(APP, &"web".parse().unwrap()).unwrap();
    let victim = host.root.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = host.path("web").parent().unwrap().to_owned();
    fs::remove_dir(&folder).unwrap();
    symlink(&victim, &folder).unwrap();
    assert!(host.locks.prepare(APP, &"web".parse().unwrap()).is_err());
    for policy in [LockPolicy::Respect, LockPolicy::Override] {
        let refused = host.locks.take(APP, &names(&["web"]), policy);
        assert!(matches!(refused, Err(LockError::Failed { .. })));
    }
    let mode = fs::metadata(&victim).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn our_lock_is_written_where_it_was_opened_although_its_path_changes() {
    let host = host();
    let web: ServiceName = "web".parse().unwrap();
    let folder = host.locks.tree.make_service(APP, &web).unwrap();
    let victim = host.root.path().join("victim");
    fs::create_dir(&victim).unwrap();
    let path = host.path("web").parent().unwrap().to_owned();
    fs::rename(&path, path.with_file_name("moved")).unwrap();
    symlink(&victim, &path).unwrap();
    let lock = LockFile::new(&folder, "updates.lock", "marker");
    assert!(lock.take(&host.locks.tree).unwrap());
    assert!(path.with_file_name("moved").join("updates.lock").is_file());
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}
