//! Checks that a worker with something to do is alive.
//!
//! It is pinged again and again. A worker that does not answer is hung if it sleeps, is stopped, or computes; if it
//! waits for a disk or for the processor, which it may share with many others on a small board, it is given time.

use std::fs;
use std::io::Error;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use process_stat::ProcessStat;

use super::session::Session;
use crate::wire::{Question, Reply};

/// How often a worker with something to do is pinged.
const PULSE: Duration = Duration::from_secs(1);
/// How often a worker that has not answered is checked.
const LOOK: Duration = Duration::from_millis(100);
/// How long it may sleep without answering: a ping wakes it.
const ASLEEP: Duration = Duration::from_secs(1);
/// How much processor time it may use before it answers, which takes far less than a thousandth of that.
const COMPUTING: Duration = Duration::from_secs(1);
/// How long it may take in any case.
const LONGEST: Duration = Duration::from_secs(30);

/// Pings the worker, which is this process, again and again while it has something to do; returns when it no longer
/// responds.
pub(super) async fn pulse(session: &Arc<Session>, process: Option<u32>) -> Error {
    loop {
        if session.open.load(SeqCst) == 0 {
            session.opened.notified().await;
        }
        tokio::time::sleep(PULSE).await;
        if session.open.load(SeqCst) == 0 {
            continue;
        }
        let mut pinged = pin!(session.ask(&Question::Ping, None));
        let mut watch = Watch::begin(Instant::now(), look(process));
        loop {
            match tokio::time::timeout(LOOK, &mut pinged).await {
                Ok(Ok(Some(Reply::Done))) => break,
                Ok(Ok(_)) => return Error::other("it did not answer"),
                Ok(Err(error)) => return error,
                Err(_) => {}
            }
            if let Some(why) = watch.look(Instant::now(), look(process)) {
                return Error::other(why);
            }
        }
    }
}

/// What the threads of a process are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Activity {
    /// Whether any of them computes, or waits for the processor or a disk.
    is_awake: bool,
    /// The processor time of all threads.
    used: Duration,
}

/// A worker that has not answered yet.
struct Watch {
    since: Instant,
    /// When it was last seen awake.
    awake: Instant,
    at_first: Activity,
    latest: Activity,
}

impl Watch {
    fn begin(since: Instant, activity: Activity) -> Watch {
        Watch {
            since,
            awake: since,
            at_first: activity,
            latest: activity,
        }
    }

    /// Returns why it counts as hung, if it does.
    fn look(&mut self, now: Instant, activity: Activity) -> Option<String> {
        if activity.is_awake || activity.used > self.latest.used {
            self.awake = now;
        }
        self.latest = activity;
        let computed = activity.used.saturating_sub(self.at_first.used);
        let took = now.saturating_duration_since(self.since).as_millis();
        let how = if computed >= COMPUTING {
            "while it computed"
        } else if now.saturating_duration_since(self.awake) >= ASLEEP {
            "while it slept or was stopped"
        } else if now.saturating_duration_since(self.since) >= LONGEST {
            "while it waited for the processor or a disk"
        } else {
            return None;
        };
        Some(format!("no answer for {took} ms, {how}"))
    }
}

/// Returns what the process is doing now. One that the system does not show counts as awake.
fn look(process: Option<u32>) -> Activity {
    let mut activity = Activity {
        is_awake: false,
        used: Duration::ZERO,
    };
    let tasks = process.map(|process| Path::new("/proc").join(process.to_string()).join("task"));
    let tasks = tasks.and_then(|tasks| fs::read_dir(tasks).ok());
    let Some(tasks) = tasks else {
        activity.is_awake = true;
        return activity;
    };
    for task in tasks.flatten() {
        // A thread that has ended in the meantime has nothing to report.
        if let Some((is_awake, used)) = ProcessStat::read(task.path().join("stat")).map(activity_of)
        {
            activity.is_awake |= is_awake;
            activity.used += used;
        }
    }
    activity
}

/// Returns whether a thread runs or waits for a disk, and its processor time.
fn activity_of(stat: ProcessStat) -> (bool, Duration) {
    let is_awake = matches!(stat.state, 'R' | 'D');
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let milliseconds = stat.own_time().saturating_mul(1000) / ticks;
    (is_awake, Duration::from_millis(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns when a worker with this activity at each check counts as hung, in milliseconds.
    fn hung_after(at: impl Fn(u64) -> (bool, u64)) -> u64 {
        let begun = Instant::now();
        let activity = |time: u64| {
            let (is_awake, used) = at(time);
            Activity {
                is_awake,
                used: Duration::from_millis(used),
            }
        };
        let mut watch = Watch::begin(begun, activity(0));
        (100..60_000)
            .step_by(100)
            .find(|time| {
                let now = begun + Duration::from_millis(*time);
                watch.look(now, activity(*time)).is_some()
            })
            .unwrap()
    }

    #[test]
    fn a_starved_worker_is_given_time_and_a_hung_one_is_not() {
        // Stopped, or all its threads are waiting.
        assert_eq!(hung_after(|_| (false, 5_000)), 1_000);
        // It computes on one processor, or on two.
        assert_eq!(hung_after(|time| (true, 5_000 + time)), 1_000);
        assert_eq!(hung_after(|time| (true, 2 * time)), 500);
        // It waits for a processor that others use, and gets a hundredth of it.
        assert_eq!(hung_after(|time| (true, time / 100)), 30_000);
        // It waits for a disk, and continues in bursts.
        assert_eq!(hung_after(|_| (true, 0)), 30_000);
        assert_eq!(hung_after(|time| (false, time / 500 * 10)), 30_000);
        // It was awake for a while.
        assert_eq!(hung_after(|time| (time < 700, 0)), 1_600);
    }

    #[test]
    fn a_thread_is_awake_if_it_runs_or_waits_for_a_disk() {
        let line = "12 (a) S 1 2 3 4 5 6 7 8 9 10 30 20 0 0 20 0 1 0 100";
        let ticks = rustix::param::clock_ticks_per_second();
        let used = Duration::from_millis(50 * 1000 / ticks);
        for (state, is_awake) in [("S", false), ("T", false), ("R", true), ("D", true)] {
            let stat = ProcessStat::parse(&line.replace('S', state)).unwrap();
            assert_eq!(activity_of(stat), (is_awake, used), "{state}");
        }
        assert!(look(Some(std::process::id())).is_awake);
        assert!(look(None).is_awake);
    }
}
