//! A completed write is still there after the process was killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use super::*;

/// The variable that names the folder to the child process, which this file starts from its own
/// test binary.
const CHILD: &str = "STORE_TEST_WRITES_TO";

/// Not a test in itself: in the child process it writes until it is killed.
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CHILD) else {
        return;
    };
    let store = open(Path::new(&folder));
    for number in 0_u64.. {
        store
            .put_intent("kind", &number.to_string(), &json!(number))
            .unwrap();
        store
            .set_target(TargetSource::Local, &json!({ "number": number }))
            .unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nwritten {number}").unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    for writes in [1, 7, 40] {
        let folder = folder();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "tests::durability::child_that_writes_until_it_is_killed",
                "--nocapture",
            ])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let number = |line: std::io::Result<String>| {
            line.unwrap()
                .strip_prefix("written ")
                .map(|n| n.parse::<u64>().unwrap())
        };
        let mut last = lines.by_ref().filter_map(number).nth(writes).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Lines that it printed before it died count too.
        last = lines.filter_map(number).last().unwrap_or(last);

        let store = open(folder.path());
        let kept = store.intents().unwrap();
        assert!(kept.len() as u64 > last, "{} of {last}", kept.len());
        for (index, intent) in kept.iter().enumerate() {
            assert_eq!(intent.value, json!(index), "none is missing between");
        }
        let target = store.target(TargetSource::Local).unwrap().unwrap();
        assert!(target["number"].as_u64().unwrap() >= last);
    }
}
