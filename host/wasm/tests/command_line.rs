//! The program's command line. (`cargo xtask test` also needs this file so that cargo builds the program with the
//! tests; from there it goes into the layout that the black-box suites run.)

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_service_without_a_record_is_refused_with_the_argument_that_is_missing() {
    let refused = Command::new(env!("CARGO_BIN_EXE_supervisor-wasm"))
        .arg("wasm-service")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("--record"), "{message}");
}

/// Returns the session of a process, or `None` if the process is gone.
fn session_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(3)?.parse().ok()
}

/// Ctrl-C in a terminal ends every process of the supervisor's group, and this one has to outlive the supervisor.
#[test]
fn a_service_that_still_waits_for_the_previous_process_has_left_the_session() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("waiting-service");
    fs::create_dir_all(&folder).unwrap();
    let lock = fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut waiting = Command::new(env!("CARGO_BIN_EXE_supervisor-wasm"))
        .args(["wasm-service", "--record"])
        .arg(&folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // It waits at most 20 s for the lock, and then ends.
    while session_of(waiting.id()) != Some(waiting.id()) {
        let ended = waiting.try_wait().unwrap();
        assert!(ended.is_none(), "it ended in the test's session: {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}
