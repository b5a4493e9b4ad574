//! The effects of a service on itself stay within it.

use std::time::{Duration, Instant};

use engine::LogsFrom;
use held_port::HeldPort;
use model::{ContainerState, PortMapping, Protocol};
use tokio::net::TcpStream;
use wasm_service::log_file::{LOG, MAX_FILE, OLDER_LOG};

use crate::fixture::test;
use crate::suite::{Fixture, eventually, next_line};

#[test]
fn memory_is_limited_and_the_service_receives_the_failure() {
    test(async |fixture| {
        let mut service = fixture.runs("bomb", &["fill-memory"]);
        service.config.mem_limit = 32 << 20;
        let id = fixture.start(&service).await;
        let words: &dyn Fixture = &*fixture;
        let ended = words.wait_for(&id, ContainerState::Exited).await;
        assert_eq!(ended.exit_code, Some(1));
        let line = fixture
            .wait_for_line(&id, |line| line.starts_with("no more memory"))
            .await;
        let number: u32 = line.split(' ').nth(4).unwrap().parse().unwrap();
        assert!((16..32).contains(&number), "{line}");
    });
}

#[test]
fn cpu_is_limited_without_control_groups() {
    test(async |fixture| {
        let mut service = fixture.runs("spin", &["spin"]);
        service.config.nano_cpus = 100_000_000;
        let id = fixture.start_until(&service, "spinning").await;
        let process = fixture.process(&id);
        let begun = Instant::now();
        let before = cpu_ticks(process.pid);
        // A quarter of a second of CPU time, of which it gets a tenth: the machine's load can only
        // make it longer.
        eventually("it computes", async || {
            (cpu_ticks(process.pid) >= before + 25).then_some(())
        })
        .await;
        assert!(begun.elapsed() > Duration::from_secs(1), "{begun:?}");
    });
}

/// Hundredths of a second that a process used.
fn cpu_ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let number = |index: usize| fields[index].parse::<u64>().unwrap();
    number(11) + number(12)
}

#[test]
fn spinning_service_does_not_hold_up_its_own_process() {
    test(async |fixture| {
        let mut service = fixture.runs("spin", &["spin"]);
        let held = HeldPort::new().unwrap();
        let port = held.address().port();
        service.config.ports.push(PortMapping {
            host_ip: "127.0.0.1".into(),
            host_port: Some(port),
            container_port: 80,
            protocol: Protocol::Tcp,
        });
        let id = fixture.start_until(&service, "spinning").await;
        TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        fixture
            .engine()
            .stop_container(&id, Duration::ZERO)
            .await
            .unwrap();
    });
}

#[test]
fn a_flooding_service_fills_its_two_files_and_its_log_is_still_read() {
    test(async |fixture| {
        let id = fixture.start(&fixture.runs("flood", &["flood"])).await;
        let mut logs = fixture.engine().logs(&id, LogsFrom::Start).await.unwrap();
        let folder = fixture.container(&id);
        // More than fits into one file.
        let lines = 2 * MAX_FILE / 100;
        for _ in 0..lines {
            let line = next_line(&mut logs).await.unwrap();
            assert_eq!(line.message.len(), 100);
        }
        for name in [LOG, OLDER_LOG] {
            let length = std::fs::metadata(folder.join(name)).unwrap().len();
            assert!(length <= MAX_FILE, "{name}: {length}");
        }
    });
}

#[test]
fn trap_is_an_exit_code_and_a_trace_in_the_log() {
    test(async |fixture| {
        let id = fixture.start(&fixture.runs("trap", &["trap"])).await;
        let words: &dyn Fixture = &*fixture;
        let ended = words.wait_for(&id, ContainerState::Exited).await;
        assert_eq!(ended.exit_code, Some(134));
        let mut logs = fixture.engine().logs(&id, LogsFrom::Start).await.unwrap();
        assert_eq!(next_line(&mut logs).await.unwrap().message, "about to trap");
        let mut trace = Vec::new();
        while !trace
            .iter()
            .any(|line: &String| line.contains("unreachable"))
        {
            let line = next_line(&mut logs).await.unwrap();
            assert!(line.stderr, "{line:?}");
            trace.push(line.message);
        }
    });
}
