//! The test programs of the workspace, run in three rows.
//!
//! Cargo runs the programs one after the other, and for much of the time both processors wait for what the tests
//! started. Two groups of programs share no resources of the machine with each other: those of the cloud use
//! PostgreSQL, NATS and browsers, those of whole devices Docker, control groups and D-Bus. Programs of one group do
//! share resources, so they take turns in a row. All others share nothing: they have the third row, and are also run by
//! a row that has finished its own programs, so that no processor is idle while another row continues.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use process_stat::ProcessStat;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use crate::cargo;
use crate::interrupted::clean_up_when_interrupted;

/// A program that cargo has built from tests.
struct TestProgram {
    file: PathBuf,
    /// Its package's folder, in which tests expect to run.
    folder: PathBuf,
    /// Its source file, relative to the repository.
    source: PathBuf,
}

/// The resources of the machine that a program shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// PostgreSQL, NATS, browsers.
    Cloud,
    /// Docker, control groups, D-Bus.
    Device,
    /// No shared resources.
    Apart,
}

/// The folders whose programs belong to [`Group::Device`].
const OF_DEVICES: [&str; 4] = ["tests", "host/confinement", "host/engine", "host/os"];

/// The folders whose programs take minutes. They are started first in their group, so that none of them runs alone at
/// the end.
const LONG: [&str; 3] = ["sdk/cli", "tests/tests/load.rs", "tests/simulator"];

/// The folders whose tests show that guests do not delay the host.
const COMPARE_PRIORITIES: [&str; 1] = ["tests/hostile"];

/// The niceness of `supervisor-compile` (`host/compile/src/confine.rs`).
const NICENESS_OF_COMPILERS: &str = "10";

/// How many of a failed test's last lines are repeated at the end of all tests.
const LINES_OF_FAILURE: usize = 30;

/// A command that runs tests, and a name for what it tests.
pub(crate) struct TestRun {
    pub(crate) name: String,
    pub(crate) command: Command,
}

/// All test programs.
pub(crate) struct TestPrograms(Vec<TestProgram>);

impl TestPrograms {
    /// Has cargo build those of `packages`.
    ///
    /// # Errors
    /// Names the command that failed; cargo has printed the reason.
    pub(crate) fn build(packages: &[String]) -> Result<Self> {
        let mut build = cargo::cargo(["test", "--no-run"]);
        build
            .arg("--message-format=json-render-diagnostics")
            .args(packages)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        let messages = build.output().context("failed to start cargo")?;
        if !messages.status.success() {
            bail!("building the tests failed ({})", messages.status);
        }
        let repository = cargo::repository();
        let messages = messages.stdout.split(|byte| *byte == b'\n');
        let mut programs: Vec<TestProgram> = messages
            .filter_map(|line| {
                let message: Value = serde_json::from_slice(line).unwrap_or_default();
                TestProgram::from_message(&message, &repository)
            })
            .collect();
        programs.sort_by_key(|program| {
            let is_long = LONG.iter().any(|long| program.source.starts_with(long));
            (is_unit_tests(&program.source), !is_long)
        });
        Ok(TestPrograms(programs))
    }

    /// Runs all of them, in an environment that `prepare` completes, and `others`, which share no resources with any of
    /// them. Shows the output of each when it ends.
    ///
    /// # Errors
    /// Names the programs with failed tests.
    pub(crate) fn run(
        &self,
        others: Vec<TestRun>,
        prepare: impl Fn(&mut Command) + Sync,
    ) -> Result<()> {
        let queues = [Group::Cloud, Group::Device, Group::Apart].map(|group| {
            let programs = self.0.iter();
            let programs = programs.filter(|program| group_of(&program.source) == group);
            programs.map(TestProgram::as_run).collect::<VecDeque<_>>()
        });
        let mut queues = queues.map(Mutex::new);
        // After the first, which takes the longest.
        let apart = queues[2].get_mut();
        let rest = apart.split_off(apart.len().min(1));
        apart.extend(others);
        apart.extend(rest);
        let running = RunningTests::default();
        let to_end = running.clone();
        clean_up_when_interrupted(move || to_end.end());
        let (prepare, apart, running) = (&prepare, &queues[2], &running);
        let failed = std::thread::scope(|threads| {
            let rows = queues.each_ref().map(|own| {
                threads.spawn(move || -> Result<Vec<String>> {
                    let mut failed = Vec::new();
                    while let Some(mut run) = next(own).or_else(|| next(apart)) {
                        prepare(&mut run.command);
                        failed.extend(run.finish(running)?);
                    }
                    Ok(failed)
                })
            });
            let mut failed = Vec::new();
            for row in rows {
                match row.join() {
                    Ok(of_row) => failed.extend(of_row?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            anyhow::Ok(failed)
        })?;
        if !failed.is_empty() {
            bail!("tests failed:\n  {}", failed.join("\n  "));
        }
        Ok(())
    }
}

/// Removes the first element of a queue.
fn next(queue: &Mutex<VecDeque<TestRun>>) -> Option<TestRun> {
    queue.lock().pop_front()
}

/// Returns the group of a program by the path of its source relative to the repository.
fn group_of(source: &Path) -> Group {
    if source.starts_with("cloud") {
        Group::Cloud
    } else if OF_DEVICES.iter().any(|folder| source.starts_with(folder)) {
        Group::Device
    } else {
        Group::Apart
    }
}

/// Returns whether a program contains a crate's unit tests. Those finish within seconds and so come last: a long
/// program that started last would run alone.
fn is_unit_tests(source: &Path) -> bool {
    source
        .parent()
        .is_some_and(|folder| folder.ends_with("src"))
}

impl TestProgram {
    /// Returns the program that a message of cargo announces, if any.
    fn from_message(message: &Value, repository: &Path) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let source = Path::new(message["target"]["src_path"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(TestProgram {
            file: PathBuf::from(message["executable"].as_str()?),
            folder: folder.to_owned(),
            source: source.strip_prefix(repository).unwrap_or(source).to_owned(),
        })
    }

    /// Returns how to run it: with the priority that compilers of plugins have: on a machine that is busy
    /// with other tests, a compiler of a lower priority would wait for minutes, and the test that needs its result, too.
    /// Tests that compare priorities keep the usual one.
    fn as_run(&self) -> TestRun {
        let compares = |folder: &&str| self.source.starts_with(folder);
        let mut command = if COMPARE_PRIORITIES.iter().any(compares) {
            Command::new(&self.file)
        } else {
            let mut nice = Command::new("nice");
            nice.args(["-n", NICENESS_OF_COMPILERS]).arg(&self.file);
            nice
        };
        command
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        TestRun {
            name: self.source.display().to_string(),
            command,
        }
    }
}

impl TestRun {
    /// Runs the tests; returns the failures and what each of them printed last, unless all passed.
    fn finish(mut self, running: &RunningTests) -> Result<Option<String>> {
        let name = &self.name;
        println!("running {name}");
        let mut printed = tempfile::tempfile()?;
        self.command
            .stdin(Stdio::null())
            .stdout(printed.try_clone()?)
            .stderr(printed.try_clone()?);
        let started = Instant::now();
        let mut test = running
            .start(&mut self.command)
            .with_context(|| format!("failed to start {name}"))?;
        let on_processor = on_processor_at_end(&test);
        running.forget(&test);
        let status = test.wait()?;
        let time = time_in_words(started.elapsed(), on_processor);
        let text = show(&mut printed, name, &time)?;
        let failure = || {
            let text = String::from_utf8_lossy(&text);
            let failed = failed_tests(&text).join(", ");
            let printed = ends_of_failures(&text);
            format!("{name} ({status}): {failed}{printed}")
        };
        Ok((!status.success()).then(failure))
    }
}

/// The test programs that run at present; `None` once no more may start.
#[derive(Clone)]
struct RunningTests(Arc<Mutex<Option<HashSet<Pid>>>>);

impl RunningTests {
    /// Ends them. A terminal's Ctrl-C reaches them by itself, but a signal to this process alone would leave them behind,
    /// without the engines and databases that they use.
    fn end(&self) {
        for pid in self.0.lock().take().into_iter().flatten() {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    fn start(&self, command: &mut Command) -> io::Result<Child> {
        let mut running = self.0.lock();
        let Some(running) = running.as_mut() else {
            return Err(io::ErrorKind::Interrupted.into());
        };
        let child = command.spawn()?;
        running.extend(pid(&child));
        Ok(child)
    }

    /// Forgets a program that has ended, before its number can become another process's.
    fn forget(&self, child: &Child) {
        if let (Some(running), Some(pid)) = (self.0.lock().as_mut(), pid(child)) {
            running.remove(&pid);
        }
    }
}

impl Default for RunningTests {
    fn default() -> Self {
        RunningTests(Arc::new(Mutex::new(Some(HashSet::new()))))
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

/// Waits until a process has ended. Returns how long it and those of its children whose end it waited for ran on a
/// processor, which shows where the time of all tests goes; `None` if the kernel does not say.
fn on_processor_at_end(child: &Child) -> Option<Duration> {
    // It stays in /proc until its exit status is read.
    waitid(
        WaitId::Pid(pid(child)?),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    )
    .ok()?;
    let stat = ProcessStat::read(format!("/proc/{}/stat", child.id()))?;
    let ticks = stat.own_time().saturating_add(stat.children);
    let second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(
        ticks.saturating_mul(1000).checked_div(second)?,
    ))
}

fn time_in_words(elapsed: Duration, on_processor: Option<Duration>) -> String {
    let elapsed = elapsed.as_secs();
    match on_processor {
        Some(time) => format!("{elapsed} s, {} s of a processor", time.as_secs()),
        None => format!("{elapsed} s"),
    }
}

/// Shows the output of a program in one piece, whatever else is running.
fn show(printed: &mut File, name: &str, time: &str) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    printed.rewind()?;
    printed.read_to_end(&mut text)?;
    let mut out = io::stdout().lock();
    writeln!(out, "\n{name}, {time}:")?;
    out.write_all(&text)?;
    out.flush()?;
    Ok(text)
}

/// Returns the names of the failed tests, according to the program's output; for a program that was killed before it
/// listed them, those that had begun and not ended.
fn failed_tests(printed: &str) -> Vec<&str> {
    let names = |end| {
        let tests = printed
            .lines()
            .filter_map(|line| line.strip_prefix("test "));
        tests.filter_map(move |test: &str| test.strip_suffix(end))
    };
    let failed: Vec<&str> = names(" ... FAILED").collect();
    if !failed.is_empty() {
        return failed;
    }
    let passed: Vec<&str> = names(" ... ok").collect();
    let is_open = |test: &&str| !passed.contains(test);
    names(" has been running for over 60 seconds")
        .filter(is_open)
        .collect()
}

/// Returns the last lines that each failed test printed, without backtraces, indented, according to the program's output:
/// where the whole output of thousands of tests is cut, the reason of a failure stands at the end of it.
fn ends_of_failures(printed: &str) -> String {
    let (mut ends, mut lines) = (String::new(), VecDeque::new());
    let (mut in_failure, mut in_backtrace) = (false, false);
    for line in printed.lines().chain(["failures:"]) {
        let is_heading = line.starts_with("---- ") && line.ends_with(" ----");
        if is_heading || line == "failures:" {
            ends.extend(lines.drain(..).map(|line| format!("\n    {line}")));
            (in_failure, in_backtrace) = (is_heading, false);
        }
        in_backtrace |= line == "stack backtrace:";
        if in_backtrace {
            in_backtrace = !line.starts_with("note: ");
        } else if in_failure && !line.is_empty() {
            // The heading stays.
            if lines.len() > LINES_OF_FAILURE {
                lines.remove(1);
            }
            lines.push_back(line);
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_share_something_on_a_machine_are_of_one_group() {
        for (source, expected) in [
            ("cloud/server/tests/cloud/main.rs", Group::Cloud),
            ("cloud/odata/src/lib.rs", Group::Cloud),
            ("tests/tests/device/main.rs", Group::Device),
            ("tests/hostile/tests/hostile.rs", Group::Device),
            ("host/engine/tests/docker.rs", Group::Device),
            ("host/confinement/tests/walls.rs", Group::Device),
            ("host/os/tests/system_bus.rs", Group::Device),
            ("host/reconcile/tests/reconcile/main.rs", Group::Apart),
            ("host/plan/tests/plan/main.rs", Group::Apart),
            ("xtask/src/main.rs", Group::Apart),
        ] {
            assert_eq!(group_of(Path::new(source)), expected, "{source}");
        }
    }

    #[test]
    fn the_time_on_a_processor_includes_that_of_children() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh")
            .args(["-c", &format!("sh -c '{busy}'; true")])
            .spawn()
            .unwrap();
        let time = on_processor_at_end(&child).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(!time.is_zero());
    }

    #[test]
    fn a_test_that_runs_ends_when_this_program_is_interrupted() {
        let running = RunningTests::default();
        let mut command = Command::new("sleep");
        command.arg("600");
        let name = "sleep".to_owned();
        let outcome = std::thread::scope(|threads| {
            let test = threads.spawn(|| TestRun { name, command }.finish(&running));
            while running.0.lock().as_ref().is_some_and(HashSet::is_empty) {
                std::thread::yield_now();
            }
            running.end();
            test.join().unwrap()
        });
        let failure = outcome.unwrap().unwrap();
        assert!(failure.contains("signal: 15"), "{failure}");
        let command = Command::new("true");
        let name = "true".to_owned();
        let later = TestRun { name, command }.finish(&running);
        assert!(later.is_err(), "no other test begins");
    }

    #[test]
    fn tests_that_failed_are_named() {
        let printed = "test a::b ... ok\ntest a::c has been running for over 60 seconds\ntest a::c ... ok\ntest a::d has been running for over 60 seconds\n";
        assert_eq!(failed_tests(printed), ["a::d"]);
        let printed = format!("{printed}test a::d ... FAILED\ntest result: FAILED. 2 passed\n");
        assert_eq!(failed_tests(&printed), ["a::d"]);
    }

    #[test]
    fn the_last_lines_of_each_failure_are_repeated() {
        let many: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let printed = format!(
            "running 3 tests\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n{many}\n---- b stdout ----\nno\nstack backtrace:\n   0: f\nnote: Some\nlog\n\n\nfailures:\n    a\n    b\n\ntest result: FAILED.\n"
        );
        let ends = ends_of_failures(&printed);
        let lines: Vec<&str> = ends.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 1 + 1 + LINES_OF_FAILURE + 3, "{ends}");
        assert_eq!(lines[1], "---- a stdout ----");
        assert_eq!(lines[2], format!("line {}", 100 - LINES_OF_FAILURE));
        assert_eq!(
            &lines[LINES_OF_FAILURE + 2..],
            ["---- b stdout ----", "no", "log"]
        );
        assert_eq!(ends_of_failures("test a ... ok\n"), "");
    }

    #[test]
    fn programs_with_tests_of_a_crate_itself_come_last() {
        assert!(is_unit_tests(Path::new("host/plan/src/lib.rs")));
        assert!(!is_unit_tests(Path::new("host/plan/tests/plan/main.rs")));
    }
}
