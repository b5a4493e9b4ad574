//! Services outlive the engine, are found again, stop on request, and come back when they should.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engine::wasm::Wasm;
use engine::{Containers as _, LogsFrom};
use held_port::HeldPort;
use model::{ContainerId, ContainerState, PortMapping, Protocol, RestartPolicy};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use wasm_service::log_file::now_ms;
use wasm_service::process::ProcessId;
use wasm_service::record::{self, STATE, Status};

use crate::fixture::{WasmFixture, surroundings, test};
use crate::suite::{Fixture, Program, Service, create_on, eventually, next_line};

/// The task of [`hosts_an_engine_for_another_test`].
const HOSTED: &str = "WASM_ENGINE_TEST_HOSTED";

/// An engine in its own process, which starts one service and waits to be killed.
struct Host {
    child: Child,
    container: ContainerId,
}

impl Host {
    fn start(fixture: &WasmFixture) -> Self {
        let program = std::env::current_exe().unwrap();
        let test = "processes::hosts_an_engine_for_another_test";
        let mut child = Command::new(program)
            .args([test, "--exact", "--nocapture"])
            .env(HOSTED, fixture.folder())
            .env(
                "WASM_ENGINE_TEST_DEVICE",
                fixture.ownership().device.as_str(),
            )
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let output = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut lines = std::io::BufRead::lines(output).map(Result::unwrap);
        let container = lines
            .find_map(|line| Some(line.strip_prefix("started ")?.to_owned()))
            .expect("the engine starts the service")
            .parse()
            .unwrap();
        Host { child, container }
    }

    fn signal_group(mut self, signal: Signal) {
        kill_process_group(Pid::from_child(&self.child), signal).unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
async fn hosts_an_engine_for_another_test() {
    let Some(folder) = std::env::var_os(HOSTED) else {
        return;
    };
    let (dist, guests) = surroundings().unwrap();
    let device = std::env::var("WASM_ENGINE_TEST_DEVICE").unwrap();
    let ownership = engine::Ownership {
        device: device.parse().unwrap(),
        ..crate::suite::new_ownership()
    };
    let folder = std::path::Path::new(&folder);
    let config = engine::wasm::WasmConfig {
        folder: folder.join("wasm"),
        runner: dist.join("bin/supervisor-wasm"),
        cache: crate::fixture::cache(&dist),
        api: None,
        host_root: folder.join("host"),
        disk: engine::Disk::default(),
        users: engine::wasm::UserRange::default(),
        requires_confinement: std::sync::Arc::new(|| false),
    };
    let labels = crate::suite::labels(&ownership);
    let wasm = Wasm::open(config, ownership).await.unwrap();
    let image = format!("file:{}/guest.wasm", guests.display())
        .parse()
        .unwrap();
    let service = Service {
        name: "hosted".into(),
        config: model::ServiceConfig {
            labels,
            restart: RestartPolicy::Always,
            ..crate::suite::service_config::service_config(image, vec!["tick".into()])
        },
        init_environment: BTreeMap::new(),
    };
    let id = create_on(&wasm, &service).await.unwrap();
    wasm.start_container(&id).await.unwrap();
    println!("started {id}");
    std::future::pending::<()>().await;
}

fn survives(signal: Signal) {
    test(async |fixture| {
        fixture.close();
        let host = Host::start(&fixture);
        let id = host.container.clone();
        let process = fixture.process(&id);
        // The whole group, as a terminal or a service manager would.
        host.signal_group(signal);
        assert!(process.is_alive());

        fixture.reopen().await;
        let fixture_words: &dyn Fixture = &*fixture;
        let found = fixture_words.find(&id).await.unwrap();
        assert_eq!(found.state, ContainerState::Running);
        assert_eq!(fixture.process(&id), process);
        // Its log goes on, from the beginning and from now.
        for from in [LogsFrom::Start, LogsFrom::Since(now_ms())] {
            let mut logs = fixture.engine().logs(&id, from).await.unwrap();
            let line = next_line(&mut logs).await.unwrap().message;
            assert!(line.starts_with("tick "), "{line}");
        }
        fixture
            .engine()
            .stop_container(&id, Duration::ZERO)
            .await
            .unwrap();
        assert!(!process.is_alive());
    });
}

#[test]
fn killing_the_engines_process_leaves_services_running_and_they_are_found_again() {
    survives(Signal::KILL);
}

#[test]
fn terminating_the_engines_process_leaves_services_running_and_they_are_found_again() {
    survives(Signal::TERM);
}

#[test]
fn stopping_ends_the_input_and_waits_for_the_service() {
    test(async |fixture| {
        let mut service = fixture.runs("wait", &["wait"]);
        service.config.restart = RestartPolicy::Always;
        let id = fixture.start_until(&service, "waiting").await;
        let engine = fixture.engine();
        engine
            .stop_container(&id, Duration::from_secs(600))
            .await
            .unwrap();
        let words: &dyn Fixture = &*fixture;
        let stopped = words.find(&id).await.unwrap();
        assert_eq!(
            (stopped.state, stopped.exit_code),
            (ContainerState::Exited, Some(0))
        );
        assert_eq!(fixture.lines_until(&id, "stopped").await, ["waiting"]);
    });
}

#[test]
fn service_that_does_not_stop_is_killed_when_its_time_is_over() {
    test(async |fixture| {
        for words in [&["ignore-stop"], &["spin"]] {
            let first = if words[0] == "spin" {
                "spinning"
            } else {
                "waiting"
            };
            let id = fixture
                .start_until(&fixture.runs(words[0], words), first)
                .await;
            let grace = Duration::from_millis(100);
            fixture.engine().stop_container(&id, grace).await.unwrap();
            let words: &dyn Fixture = &*fixture;
            let stopped = words.find(&id).await.unwrap();
            assert_eq!(
                (stopped.state, stopped.exit_code),
                (ContainerState::Exited, Some(137))
            );
        }
    });
}

#[test]
fn stopped_service_stays_stopped_when_the_engine_opens_again() {
    test(async |fixture| {
        let mut service = fixture.runs("tick", &["tick"]);
        service.config.restart = RestartPolicy::Always;
        let id = fixture.start(&service).await;
        let engine = fixture.engine();
        engine.stop_container(&id, Duration::ZERO).await.unwrap();
        drop(engine);
        for _ in 0..2 {
            fixture.reopen().await;
            let words: &dyn Fixture = &*fixture;
            let found = words.find(&id).await.unwrap();
            assert_eq!(found.state, ContainerState::Exited);
            pretend_reboot(&fixture, &id);
        }
    });
}

#[test]
fn process_that_was_killed_comes_back_by_its_policy() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        for (policy, comes_back) in [
            (RestartPolicy::Always, true),
            (RestartPolicy::UnlessStopped, true),
            (RestartPolicy::OnFailure, true),
            (RestartPolicy::No, false),
        ] {
            let mut service = words.service(&format!("{policy:?}"), &Program::Tick);
            service.config.restart = policy;
            let id = fixture.start(&service).await;
            let process = fixture.process(&id);
            kill(&process);
            if comes_back {
                eventually("another process serves it", async || {
                    let state = fixture.state_of(&id);
                    let is_new = state.process.is_some_and(|p| p != process && p.is_alive());
                    (is_new && state.status == Status::Running && state.restarts > 0).then_some(())
                })
                .await;
            } else {
                let ended = words.wait_for(&id, ContainerState::Exited).await;
                assert_eq!(ended.exit_code, Some(137));
                // The state shows it without further action.
                eventually("the end is noted", async || {
                    (fixture.state_of(&id).status == Status::Exited).then_some(())
                })
                .await;
            }
        }
    });
}

/// A program for the engine to run instead of the supervisor's: its starts with these numbers, from 1, are killed
/// before they do anything.
fn killed_at_starts(fixture: &WasmFixture, starts: &str) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let program = fixture.folder().join("runner");
    let count = fixture.folder().join("starts");
    let script = format!(
        "#!/bin/sh\nn=0\n[ -e {count} ] && read n < {count}\nn=$((n + 1))\necho $n > {count}\n\
         case $n in {starts}) kill -9 $$ ;; esac\nexec {} \"$@\"\n",
        fixture.config().runner.display(),
        count = count.display(),
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn a_process_that_is_killed_as_it_starts_is_started_again() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let config = engine::wasm::WasmConfig {
            runner: killed_at_starts(&fixture, "2|3|4"),
            ..fixture.config()
        };
        fixture.close();
        let wasm = Wasm::open(config, fixture.ownership()).await.unwrap();
        let mut service = words.service("killed", &Program::Tick);
        service.config.restart = RestartPolicy::Always;
        let id = create_on(&wasm, &service).await.unwrap();
        wasm.start_container(&id).await.unwrap();
        let process = fixture.process(&id);
        kill(&process);
        eventually("another process serves it", async || {
            let state = fixture.state_of(&id);
            let is_new = state.process.is_some_and(|p| p != process && p.is_alive());
            (is_new && state.status == Status::Running).then_some(())
        })
        .await;
        let starts = std::fs::read_to_string(fixture.folder().join("starts")).unwrap();
        assert_eq!(starts.trim(), "5");
        // It is watched as before.
        let process = fixture.process(&id);
        kill(&process);
        eventually("another process serves it", async || {
            let state = fixture.state_of(&id);
            let is_new = state.process.is_some_and(|p| p != process && p.is_alive());
            (is_new && state.status == Status::Running).then_some(())
        })
        .await;
    });
}

#[test]
fn a_service_whose_port_is_in_use_at_a_restart_runs_once_the_port_is_free() {
    test(async |fixture| {
        let held = HeldPort::new().unwrap();
        let port = held.address().port();
        let mut service = fixture.runs("web", &["tick"]);
        service.config.ports.push(PortMapping {
            host_ip: "127.0.0.1".into(),
            host_port: Some(port),
            container_port: 80,
            protocol: Protocol::Tcp,
        });
        service.config.restart = RestartPolicy::Always;
        let id = fixture.start(&service).await;
        let process = fixture.process(&id);
        // Whoever takes the port first after the process has ended has it: here, us.
        let holder = eventually("the port to be ours", async || {
            if let Some(process) = fixture.state_of(&id).process.filter(ProcessId::is_alive) {
                kill(&process);
            }
            TcpListener::bind(("127.0.0.1", port)).ok()
        })
        .await;
        eventually("a start to fail", async || {
            let error = fixture.state_of(&id).error?;
            error.contains(&format!("127.0.0.1:{port}")).then_some(())
        })
        .await;
        drop(holder);
        eventually("another process serves it", async || {
            let state = fixture.state_of(&id);
            let is_new = state.process.is_some_and(|p| p != process && p.is_alive());
            (is_new && state.status == Status::Running).then_some(())
        })
        .await;
    });
}

#[test]
fn a_container_that_is_stopped_between_two_tries_stays_stopped() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let config = engine::wasm::WasmConfig {
            runner: killed_at_starts(&fixture, "[2-9]|??"),
            ..fixture.config()
        };
        fixture.close();
        let wasm = Wasm::open(config, fixture.ownership()).await.unwrap();
        let mut service = words.service("stopped", &Program::Tick);
        service.config.restart = RestartPolicy::Always;
        let id = create_on(&wasm, &service).await.unwrap();
        wasm.start_container(&id).await.unwrap();
        kill(&fixture.process(&id));
        let starts = || {
            let count = std::fs::read_to_string(fixture.folder().join("starts")).unwrap();
            count.trim().parse::<u32>().unwrap_or_default()
        };
        eventually("some tries to fail", async || (starts() >= 4).then_some(())).await;
        wasm.stop_container(&id, Duration::ZERO).await.unwrap();
        assert_eq!(fixture.state_of(&id).status, Status::Exited);
        // An engine that opens again finds nothing to start either.
        drop(wasm);
        fixture.reopen().await;
        assert_eq!(fixture.state_of(&id).status, Status::Exited);
    });
}

#[test]
fn after_a_reboot_services_run_again_by_their_policy() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let mut services = Vec::new();
        for (policy, runs) in [
            (RestartPolicy::Always, true),
            (RestartPolicy::UnlessStopped, true),
            (RestartPolicy::OnFailure, false),
            (RestartPolicy::No, false),
        ] {
            let mut service = words.service(&format!("{policy:?}"), &Program::Tick);
            service.config.restart = policy;
            services.push((fixture.start(&service).await, runs));
        }
        // All at once, together with the engine.
        let processes: Vec<ProcessId> =
            services.iter().map(|(id, _)| fixture.process(id)).collect();
        fixture.close();
        for process in &processes {
            kill(process);
        }
        for (id, _) in &services {
            pretend_reboot(&fixture, id);
        }
        fixture.reopen().await;
        for (id, runs) in &services {
            let state = if *runs {
                ContainerState::Running
            } else {
                ContainerState::Exited
            };
            words.wait_for(id, state).await;
        }
    });
}

#[test]
fn service_that_died_with_the_engine_is_started_when_it_opens() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let mut service = words.service("tick", &Program::Tick);
        service.config.restart = RestartPolicy::Always;
        let id = fixture.start(&service).await;
        let process = fixture.process(&id);
        fixture.close();
        kill(&process);
        fixture.reopen().await;
        words.wait_for(&id, ContainerState::Running).await;
        assert_ne!(fixture.process(&id), process);
    });
}

#[test]
fn another_process_with_the_same_number_is_left_alone() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let id = fixture.start(&words.service("tick", &Program::Tick)).await;
        let process = fixture.process(&id);
        fixture.close();
        kill(&process);

        // As if the process number had been assigned to this one in between.
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut state = fixture.state_of(&id);
        state.process = Some(ProcessId {
            pid: Pid::from_child(&stranger).as_raw_pid(),
            ..process
        });
        record::write(&fixture.container(&id).join(STATE), &state).unwrap();
        fixture.reopen().await;

        let found = words.find(&id).await.unwrap();
        assert_eq!(
            (found.state, found.exit_code),
            (ContainerState::Exited, Some(137))
        );
        let engine = fixture.engine();
        engine.stop_container(&id, Duration::ZERO).await.unwrap();
        engine.remove_container(&id).await.unwrap();
        assert_eq!(stranger.try_wait().unwrap(), None, "it was killed");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    });
}

#[test]
fn starting_at_the_same_time_starts_one_process() {
    test(async |fixture| {
        let words: &dyn Fixture = &*fixture;
        let id = words.create(&words.service("tick", &Program::Tick)).await;
        let engine = fixture.engine();
        let started = futures::future::join_all((0..16).map(|_| engine.start_container(&id))).await;
        for started in started {
            started.unwrap();
        }
        let folder = fixture.container(&id);
        let is_of_folder = |entry: &std::fs::DirEntry| {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains(&*folder.to_string_lossy())
        };
        // The others have reported that they are not needed, and are about to end.
        eventually("one process is left", async || {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            (all.filter(is_of_folder).count() == 1).then_some(())
        })
        .await;
        assert!(fixture.process(&id).is_alive());
    });
}

#[test]
fn services_get_nothing_of_ours() {
    test(async |fixture| {
        // Left open for children, as a program that started us may have done.
        let (inherited, _writer) = rustix::pipe::pipe().unwrap();
        fixture.reopen().await;
        let words: &dyn Fixture = &*fixture;
        let id = fixture.start(&words.service("tick", &Program::Tick)).await;
        let of = |name: &str| format!("/proc/{}/{name}", fixture.process(&id).pid);

        use std::os::fd::AsRawFd;
        let pipe = format!("/proc/self/fd/{}", inherited.as_raw_fd());
        let pipe = std::fs::read_link(pipe).unwrap();
        let open: Vec<_> = std::fs::read_dir(of("fd"))
            .unwrap()
            .flatten()
            .filter_map(|entry| std::fs::read_link(entry.path()).ok())
            .collect();
        assert!(open.len() > 3, "{open:?}");
        assert!(!open.contains(&pipe), "{open:?}");
        for standard in 0..3 {
            let target = std::fs::read_link(of(&format!("fd/{standard}"))).unwrap();
            assert_eq!(target.to_str(), Some("/dev/null"));
        }
        assert_eq!(std::fs::read(of("environ")).unwrap(), b"");
        // Its own session.
        let session = |stat: &str| -> i32 {
            let stat = std::fs::read_to_string(stat).unwrap();
            let fields = stat.rsplit_once(") ").unwrap().1;
            fields.split(' ').nth(3).unwrap().parse().unwrap()
        };
        assert_eq!(session(&of("stat")), fixture.process(&id).pid);
    });
}

fn kill(process: &ProcessId) {
    kill_process(Pid::from_raw(process.pid).unwrap(), Signal::KILL).unwrap();
    let deadline = std::time::Instant::now() + crate::suite::PATIENCE;
    while process.is_alive() {
        assert!(std::time::Instant::now() < deadline, "it does not die");
        std::thread::yield_now();
    }
}

/// Makes the container's state look as if it was written in another boot.
fn pretend_reboot(fixture: &WasmFixture, id: &ContainerId) {
    let mut state = fixture.state_of(id);
    let process = state.process.as_mut().unwrap();
    process.boot = "00000000-0000-0000-0000-000000000000".into();
    record::write(&fixture.container(id).join(STATE), &state).unwrap();
}
