//! The life of the program: a second start, a stop, a kill, a broken database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rustix::process::{Pid, Signal, getpgid};
use serde_json::{Value, json};
use tests::{
    Supervisor, children_of, distribution, guest, service, services_of, subcommand, target, until,
};

fn two_services() -> Value {
    let server = guest("hello-server");
    target(
        1,
        &[
            service("one", &server, &json!({})),
            service("two", &server, &json!({})),
        ],
    )
}

#[tokio::test]
async fn a_second_run_on_the_same_folder_is_refused_with_the_reason() {
    let device = Supervisor::on_wasm().start().await;
    let second = device.run_second();
    assert!(!second.status.success());
    for part in [
        format!("process {}", device.pid()),
        device.state_dir().display().to_string(),
    ] {
        assert!(second.stderr.contains(&part), "{}", second.stderr);
    }
    assert_eq!(device.get("/ping").await.status, 200);
}

#[tokio::test]
async fn a_stop_leaves_services_running_and_the_next_start_finds_them() {
    let mut device = Supervisor::on_wasm().start().await;
    device.set_target(&two_services()).await;
    let containers = device.until_applied().await["containers"].clone();
    assert_eq!(containers.as_array().map(Vec::len), Some(2), "{containers}");
    let mut processes = services_of(device.state_dir());
    processes.sort_unstable();
    assert_eq!(processes.len(), 2);

    let status = device.terminate().await;
    assert_eq!(status.code(), Some(0));
    let mut left = services_of(device.state_dir());
    left.sort_unstable();
    assert_eq!(left, processes);

    device.start_again().await;
    assert_eq!(device.until_applied().await["containers"], containers);

    device.kill().await;
    device.start_again().await;
    assert_eq!(device.until_applied().await["containers"], containers);
    let mut left = services_of(device.state_dir());
    left.sort_unstable();
    assert_eq!(left, processes);
}

/// Returns the process group of a process.
fn group_of(pid: i32) -> i32 {
    getpgid(Pid::from_raw(pid)).unwrap().as_raw_pid()
}

/// Returns whether a process runs; one that nobody has waited for does not.
fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Ctrl-C in a terminal, and a terminal that closes.
#[tokio::test]
async fn a_signal_to_the_whole_group_stops_the_supervisor_in_order() {
    for signal in [Signal::INT, Signal::HUP] {
        let mut device = Supervisor::on_wasm().in_its_own_group().start().await;
        device.set_target(&two_services()).await;
        device.until_applied().await;
        let mut services = services_of(device.state_dir());
        services.sort_unstable();
        let children = children_of(device.pid());
        let (running, others): (Vec<i32>, Vec<i32>) =
            children.iter().partition(|child| services.contains(child));
        assert_eq!(running.len(), 2, "{children:?}");
        assert!(!others.is_empty(), "no process runs plugins");
        for child in children {
            assert_ne!(group_of(child), device.pid(), "the process {child}");
        }

        device.signal_group(signal);
        let status = device.until_ended().await;
        assert_eq!(status.code(), Some(0), "{signal:?}: {}", device.log());
        until("the other processes to end", || async {
            let left: Vec<i32> = others
                .iter()
                .copied()
                .filter(|pid| is_running(*pid))
                .collect();
            if left.is_empty() { Ok(()) } else { Err(left) }
        })
        .await;
        let log = device.log();
        assert!(!log.contains("ERROR"), "{signal:?}: {log}");
        assert!(log.contains("the supervisor stops"), "{log}");
        let mut left = services_of(device.state_dir());
        left.sort_unstable();
        assert_eq!(left, services, "{signal:?}");
    }
}

/// `nohup supervisor run &`
#[tokio::test]
async fn a_supervisor_that_was_started_to_ignore_a_closed_terminal_ignores_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("supervisor");
    let real = distribution().join("bin/supervisor");
    let script = format!("#!/bin/sh\ntrap '' HUP\nexec '{}' \"$@\"\n", real.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut device = Supervisor::on_wasm()
        .program(&program)
        .in_its_own_group()
        .start()
        .await;
    let status = fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
    assert_eq!(mask & 1, 1, "{status}");

    device.signal_group(Signal::HUP);
    assert_eq!(device.get("/ping").await.status, 200);
    assert_eq!(device.terminate().await.code(), Some(0));
    let log = device.log();
    assert!(log.contains("SIGTERM: the supervisor stops"), "{log}");
}

#[tokio::test]
async fn a_stopped_device_can_be_rid_of_its_services_and_a_running_one_cannot() {
    let mut device = Supervisor::on_wasm().start().await;
    device.set_target(&two_services()).await;
    device.until_applied().await;
    let host_root = device.host_root().display().to_string();
    let words = [
        "remove-services",
        "--engine",
        "wasm",
        "--host-root",
        &host_root,
    ];

    let refused = device.subcommand(&words);
    assert!(!refused.status.success());
    assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
    assert_eq!(services_of(device.state_dir()).len(), 2);

    device.terminate().await;
    let removed = device.subcommand(&words);
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(services_of(device.state_dir()), Vec::<i32>::new());
    // The target is kept, so the next start has them again.
    device.start_again().await;
    let status = device.until_applied().await;
    assert_eq!(status["containers"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_broken_database_is_set_aside_and_the_device_starts_empty() {
    let mut device = Supervisor::on_wasm().start().await;
    let old_key = device.key().to_owned();
    device.terminate().await;
    let database = fs::read_dir(device.state_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"SQLite format 3")))
        .expect("a database in the state folder");
    fs::write(&database, vec![0x5a; 8192]).unwrap();
    for side_file in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{side_file}", database.display()));
    }

    device.start_again().await;
    assert_ne!(device.key(), old_key);
    assert_eq!(
        device.json("/v2/local/target-state").await["state"]["local"]["apps"],
        json!({})
    );
    // The log names the new path, and the file is there.
    let log = device.log();
    let aside = fs::read_dir(device.state_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| fs::read(path).is_ok_and(|bytes| bytes == vec![0x5a; 8192]))
        .expect("the broken database is kept");
    assert!(log.contains(&aside.display().to_string()), "{log}");
}

#[tokio::test]
async fn a_log_stream_ends_with_the_supervisor() {
    let mut device = Supervisor::on_wasm().start().await;
    let stream = device
        .request("GET", "/v2/local/logs")
        .send()
        .await
        .unwrap();
    let reading = tokio::spawn(stream.text());
    assert_eq!(device.terminate().await.code(), Some(0));
    let text = reading.await.unwrap().unwrap();
    assert!(text.starts_with("{\"message\":\"Streaming logs\",\"isSystem\":true}\n"));
}

#[tokio::test]
async fn the_key_and_the_plugins_are_shown_whether_it_runs_or_not() {
    let mut device = Supervisor::on_wasm().start().await;
    let key = device.key().to_owned();
    for running in [true, false] {
        if !running {
            device.terminate().await;
        }
        let shown = device.subcommand(&["api-key", "show"]);
        assert_eq!(
            (shown.stdout, shown.stderr),
            (format!("{key}\n"), String::new())
        );
        let plugins = device.subcommand(&["plugins", "list"]);
        assert!(plugins.status.success(), "{plugins:?}");
        for name in ["device-info", "led-blink"] {
            assert!(plugins.stdout.contains(name), "{}", plugins.stdout);
        }
    }
}

/// `supervisor plugins list --json | head -1`
#[tokio::test]
async fn a_reader_of_what_a_command_prints_may_stop_early() {
    let device = Supervisor::on_wasm().start().await;
    let greeter = guest("greeter").display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.toml");
    fs::write(&policy, "").unwrap();
    let policy = policy.display().to_string();
    let plugins = folder.path().display().to_string();
    for words in [
        &["api-key", "show"][..],
        &["plugins", "list"],
        &["plugins", "list", "--json"],
        &["plugins", "check"],
        &["plugins", "trust", &greeter],
        &["plugins", "grant", &greeter, "--policy", &policy],
        &[
            "plugins",
            "install",
            &greeter,
            "--policy",
            &policy,
            "--plugin-dir",
            &plugins,
            "--wait",
            "0",
        ],
    ] {
        let (_, writer) = std::io::pipe().unwrap();
        let mut command = Command::new(distribution().join("bin/supervisor"));
        let ended = command
            .args(words)
            .arg("--state-dir")
            .arg(device.state_dir())
            .stdout(writer)
            .output()
            .unwrap();
        assert!(ended.status.success(), "{words:?}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{words:?}: {ended:?}");
    }
    // The command did its work, whether or not somebody reads about it.
    let granted = fs::read_to_string(&policy).unwrap();
    assert!(granted.contains("[plugins.greeter]"), "{granted}");
}

#[test]
fn a_state_folder_where_nothing_ran_has_no_key() {
    let empty = tempfile::tempdir().unwrap();
    let shown = subcommand(&["api-key", "show"], empty.path());
    assert!(!shown.status.success());
    assert!(shown.stderr.contains(&empty.path().display().to_string()));
    assert_eq!(fs::read_dir(empty.path()).unwrap().count(), 0);
}

#[test]
fn an_error_of_the_configuration_file_names_the_file_the_line_the_table_and_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("supervisor.toml");
    let path = file.display().to_string();
    for (text, line, expected) in [
        (
            "engine = \"wasm\"\n[branding]\nnmae = \"x\"\n",
            3,
            "[branding] nmae: there is no key `nmae` here; the keys are `env_prefix`",
        ),
        (
            "engine = \"wasm\"\nlisten = [\"localhost\"]\n",
            2,
            "listen: `localhost` is not an address to listen on, such as",
        ),
    ] {
        fs::write(&file, text).unwrap();
        for words in [&["run"][..], &["plugins", "list"]] {
            let words = [words, &["--config", &path]].concat();
            let refused = subcommand(&words, folder.path());
            assert_eq!(refused.status.code(), Some(1), "{refused:?}");
            let expected = format!("error: {path}:{line}: {expected}");
            assert!(refused.stderr.starts_with(&expected), "{refused:?}");
        }
    }
}
