//! The protection behind the sandbox of a service: its process has no privileges, and what it writes is believed only
//! as far as it concerns the service itself. As root, everything is tested; as another user, what needs no privileges.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::Duration;

use ::confinement::Wall;
use engine::LogsFrom;
use engine::wasm::UserRange;
use futures::{FutureExt as _, StreamExt as _};
use model::{ContainerId, ContainerState, Mount};
use wasm_service::process::ProcessId;
use wasm_service::record::{self, STATE, State};

use crate::fixture::{WasmFixture, test};
use crate::suite::{Fixture, Program, Service, eventually};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The fields of a process's status, as proc(5) has them.
fn status_of(process: &ProcessId) -> BTreeMap<String, Vec<String>> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).unwrap();
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    fields
        .map(|(name, values)| {
            let values = values.split_whitespace().map(str::to_owned).collect();
            (name.to_owned(), values)
        })
        .collect()
}

/// A service that appends a line to a file of a volume, prints it, and ends.
fn writer(fixture: &WasmFixture, name: &str, volume: &str, line: &str) -> Service {
    let mut service = fixture.runs(name, &["append", "/data/notes", line]);
    service.config.mounts.push(Mount::Volume {
        source: volume.to_owned(),
        target: "/data".into(),
        read_only: false,
    });
    service
}

fn uid_of(fixture: &WasmFixture, id: &ContainerId) -> u32 {
    let launch: record::Launch = record::read(&fixture.container(id).join(record::LAUNCH))
        .unwrap()
        .unwrap();
    launch.user.unwrap().uid
}

#[test]
fn a_service_is_a_user_of_its_own_behind_every_wall() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let web = fixture.start(&words.service("web", &Program::Tick)).await;
        let db = fixture.start(&words.service("db", &Program::Tick)).await;
        let mut users = Vec::new();
        for id in [&web, &db] {
            let status = status_of(&fixture.process(id));
            assert_eq!(status["NoNewPrivs"], ["1"]);
            assert_eq!(status["Seccomp"], ["2"]);
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                assert_eq!(status[set], ["0000000000000000"], "{set}");
            }
            let report = fixture.state_of(id).confinement.unwrap();
            for wall in [
                Wall::Capabilities,
                Wall::NoNewPrivileges,
                Wall::Files,
                Wall::SystemCalls,
                Wall::Bounds,
            ] {
                assert!(report.in_force.contains(&wall), "{wall}: {report:?}");
            }
            assert_eq!(report.in_force.contains(&Wall::User), is_root());
            if is_root() {
                assert_eq!(status["CapBnd"], ["0000000000000000"]);
                let uid: u32 = status["Uid"][0].parse().unwrap();
                let range = UserRange::default();
                assert!((range.first..range.first + range.count).contains(&uid));
                assert!(status["Uid"].iter().all(|other| *other == uid.to_string()));
                assert_eq!(status["Groups"], [uid.to_string()]);
                users.push(uid);
            }
        }
        users.dedup();
        assert_eq!(users.len(), if is_root() { 2 } else { 0 });
    });
}

#[test]
fn services_of_an_app_share_a_volume_and_no_folder_else() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let volume = words.volume("shared").await;
        let (code, lines) = words
            .finish(&writer(&fixture, "one", &volume, "first"))
            .await;
        assert_eq!((code, lines), (Some(0), vec!["first".to_owned()]));
        let (code, lines) = words
            .finish(&writer(&fixture, "two", &volume, "second"))
            .await;
        assert_eq!(code, Some(0));
        assert_eq!(lines, ["first", "second"]);
        if !is_root() {
            return;
        }
        let id = fixture.start(&words.service("three", &Program::Tick)).await;
        let folder = fixture.container(&id);
        let own = fs::metadata(folder.join("root")).unwrap();
        assert_eq!(own.gid(), uid_of(&fixture, &id));
        for file in ["root", "container.json", "launch.json", "log", "lock"] {
            let about = fs::metadata(folder.join(file)).unwrap();
            assert_eq!(about.mode() & 0o007, 0, "{file}: {:o}", about.mode());
        }
        // The service can neither write nor replace the files that the engine believes.
        assert_eq!(
            fs::metadata(folder.join("container.json")).unwrap().uid(),
            0
        );
        let about = fs::metadata(&folder).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o7777), (0, 0o1771));
    });
}

#[test]
fn a_service_keeps_its_user_and_its_files_over_updates() {
    if !is_root() {
        return;
    }
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let volume = words.volume("data").await;
        let label = fixture.ownership().branding.label("service-name");
        let mut users = Vec::new();
        for (name, line) in [("web_1", "before"), ("web_2", "after")] {
            let mut service = writer(&fixture, name, &volume, line);
            service.config.labels.insert(label.clone(), "web".into());
            let id = fixture.start(&service).await;
            let ended = words.wait_for(&id, ContainerState::Exited).await;
            assert_eq!(ended.exit_code, Some(0));
            users.push(uid_of(&fixture, &id));
            fixture.engine().remove_container(&id).await.unwrap();
        }
        assert_eq!(users[0], users[1]);
        let notes = fixture
            .state()
            .join("volumes")
            .join(&volume)
            .join("data/notes");
        assert_eq!(fs::read_to_string(&notes).unwrap(), "before\nafter\n");
        assert_eq!(fs::metadata(&notes).unwrap().uid(), users[0]);
    });
}

#[test]
fn files_that_an_earlier_version_left_are_handed_over() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let volume = words.volume("data").await;
        let data = fixture.state().join("volumes").join(&volume).join("data");
        fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
        fs::write(data.join("notes"), "old\n").unwrap();
        fs::set_permissions(data.join("notes"), Permissions::from_mode(0o600)).unwrap();
        let secret = fixture.folder().join("secret");
        fs::write(&secret, "").unwrap();
        symlink(&secret, data.join("link")).unwrap();
        let (code, lines) = words.finish(&writer(&fixture, "web", &volume, "new")).await;
        assert_eq!(code, Some(0));
        assert_eq!(lines, ["old", "new"]);
        // The owner of the link itself is changed, not that of its target.
        assert_eq!(
            fs::metadata(&secret).unwrap().uid(),
            rustix::process::geteuid().as_raw()
        );
    });
}

#[test]
fn links_in_the_folder_of_a_service_do_not_lead_the_supervisor_elsewhere() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let id = fixture.start(&words.service("web", &Program::Tick)).await;
        let engine = fixture.engine();
        engine.stop_container(&id, Duration::ZERO).await.unwrap();
        let folder = fixture.container(&id);
        let victim = fixture.folder().join("victim");
        fs::write(&victim, "1 o the secret\n").unwrap();
        for name in ["log", "log.1", STATE] {
            let _ = fs::remove_file(folder.join(name));
            symlink(&victim, folder.join(name)).unwrap();
        }
        symlink(
            &victim,
            folder.join(format!(".{STATE}.{}", std::process::id())),
        )
        .unwrap();
        // It counts as damaged, and is rewritten rather than followed.
        assert_eq!(
            words.find(&id).await.unwrap().state,
            ContainerState::Created
        );
        if let Ok(mut logs) = engine.logs(&id, LogsFrom::Start).await {
            let line = logs.next().now_or_never().flatten();
            assert!(!matches!(line, Some(Ok(_))), "{line:?}");
        }
        // A pipe without a writer does not block the engine.
        let _ = fs::remove_file(folder.join(STATE));
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            folder.join(STATE),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
        assert_eq!(
            words.find(&id).await.unwrap().state,
            ContainerState::Created
        );
        engine.stop_container(&id, Duration::ZERO).await.unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "1 o the secret\n");
    });
}

#[test]
fn folders_of_the_kernel_are_read_and_never_written_and_the_warning_says_what_they_open() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let image = words.pull().await;
        let mut service = fixture.runs("web", &["append", "/proc/sys/kernel/core_pattern", "|/x"]);
        service.config.mounts.push(Mount::Bind {
            source: "/proc".into(),
            target: "/proc".into(),
            read_only: false,
        });
        let spec = engine::ContainerSpec {
            name: &service.name,
            config: &service.config,
            init_environment: &service.init_environment,
            image_id: &image.id,
            network_container: None,
        };
        let before = fs::read("/proc/sys/kernel/core_pattern").unwrap();
        let made = fixture.engine().create_container(&spec).await.unwrap();
        let opens = |warning: &String| warning.contains("`/proc`") && warning.contains("processes");
        assert!(made.warnings.iter().any(opens), "{:?}", made.warnings);
        fixture.engine().start_container(&made.id).await.unwrap();
        let ended = words.wait_for(&made.id, ContainerState::Exited).await;
        assert_eq!(ended.exit_code, Some(1));
        assert_eq!(fs::read("/proc/sys/kernel/core_pattern").unwrap(), before);
        // Reading still works.
        let mut service = fixture.runs("reader", &["read", "/proc/sys/kernel/ostype"]);
        service.config.mounts.push(Mount::Bind {
            source: "/proc".into(),
            target: "/proc".into(),
            read_only: false,
        });
        let (code, lines) = words.finish(&service).await;
        assert_eq!((code, lines[0].as_str()), (Some(0), "Linux"));
    });
}

#[test]
fn a_state_that_names_another_process_ends_the_service_and_not_that_process() {
    if !is_root() {
        return;
    }
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let id = fixture.start(&words.service("web", &Program::Tick)).await;
        let process = fixture.process(&id);
        let mut victim = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let path = fixture.container(&id).join(STATE);
        let state = State {
            process: Some(ProcessId::from_pid(victim.id()).unwrap()),
            ..fixture.state_of(&id)
        };
        record::write(&path, &state).unwrap();
        fixture
            .engine()
            .stop_container(&id, Duration::ZERO)
            .await
            .unwrap();
        eventually("the service's own process ends", async || {
            (!process.is_alive()).then_some(())
        })
        .await;
        assert!(victim.try_wait().unwrap().is_none());
        victim.kill().unwrap();
        victim.wait().unwrap();
    });
}

#[test]
fn a_service_without_limits_is_in_a_control_group_with_some() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let id = fixture.start(&words.service("web", &Program::Tick)).await;
        let launch: record::Launch = record::read(&fixture.container(&id).join(record::LAUNCH))
            .unwrap()
            .unwrap();
        let report = fixture.state_of(&id).confinement.unwrap();
        let limit = |wall: Wall, files: [&str; 2]| -> Option<u64> {
            let group = launch
                .cgroups
                .iter()
                .find(|group| group.walls.contains(&wall));
            let Some(group) = group else {
                // The report names it as missing.
                let missing = report.missing.iter().any(|missing| missing.wall == wall);
                assert!(missing, "{wall}: {report:?}");
                return None;
            };
            assert!(report.in_force.contains(&wall), "{wall}: {report:?}");
            let pid = fixture.process(&id).pid.to_string();
            let members = fs::read_to_string(group.path.join("cgroup.procs")).unwrap();
            assert!(members.lines().any(|member| member == pid), "{members}");
            let text = files.map(|file| fs::read_to_string(group.path.join(file)));
            let text = text.into_iter().find_map(Result::ok).unwrap();
            Some(text.trim().parse().unwrap())
        };
        let pids = limit(Wall::Processes, ["pids.max", "pids.max"]);
        assert!(pids.is_none_or(|pids| pids == 64), "{pids:?}");
        let all = fs::read_to_string("/proc/meminfo").unwrap();
        let all: u64 = all.split_whitespace().nth(1).unwrap().parse().unwrap();
        let memory = limit(Wall::Memory, ["memory.max", "memory.limit_in_bytes"]);
        assert!(
            memory.is_none_or(|memory| memory <= (all << 10) / 2 + (65 << 20)),
            "{memory:?}"
        );
        assert!(launch.memory_limit <= (all << 10) / 2 + (1 << 20));
    });
}
