//! Lines of `/proc/PID/stat` and `/proc/PID/task/TID/stat` (proc(5)).
//!
//! The second field is the name, in parentheses. A process chooses its own name, which may contain spaces and
//! parentheses, so the other fields are counted from the last `)`.

#![warn(missing_docs)]

use std::fs;
use std::path::Path;

/// The state and the times of a process or a thread. Times are in ticks of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The state, for example `R` for running or `Z` for a zombie.
    pub state: char,
    /// The processor time in its own code.
    pub user: u64,
    /// The processor time in the kernel.
    pub system: u64,
    /// The processor time of the children that it has waited for, in both.
    pub children: u64,
    /// When it started, since the boot.
    pub start: u64,
}

impl ProcessStat {
    /// Reads a file such as `/proc/PID/stat`; `None` if there is no such process or thread.
    #[must_use]
    pub fn read(file: impl AsRef<Path>) -> Option<ProcessStat> {
        // A name need not be UTF-8: a process could otherwise hide by choosing another one.
        let line = fs::read(file).ok()?;
        ProcessStat::parse(&String::from_utf8_lossy(&line))
    }

    /// Parses a line; `None` if it is damaged.
    #[must_use]
    pub fn parse(line: &str) -> Option<ProcessStat> {
        let (_, fields) = line.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        // The state is the 3rd field of the line, the times are the 14th to 17th, and the start is the 22nd.
        let mut times = fields.by_ref().skip(10);
        let mut time = || times.next()?.parse::<u64>().ok();
        let (user, system) = (time()?, time()?);
        let (children_user, children_system) = (time()?, time()?);
        let start = fields.nth(4)?.parse().ok()?;
        Some(ProcessStat {
            state,
            user,
            system,
            children: children_user.saturating_add(children_system),
            start,
        })
    }

    /// Returns the processor time of the process or thread itself.
    #[must_use]
    pub fn own_time(&self) -> u64 {
        self.user.saturating_add(self.system)
    }

    /// Returns whether it has ended: a zombie remains until its parent reads its exit status.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "S 1 42 42 0 -1 4194304 100 0 0 0 12 30 3 4 20 0 1 0 4242 6 7";

    #[test]
    fn a_line_is_read_whatever_the_name_is() {
        let expected = ProcessStat {
            state: 'S',
            user: 12,
            system: 30,
            children: 7,
            start: 4242,
        };
        for name in ["sh", "", "a b", "a) b) (c", ") R 1 2", "a\nb", "ü)"] {
            let stat = ProcessStat::parse(&format!("7 ({name}) {FIELDS}\n"));
            assert_eq!(stat, Some(expected), "{name:?}");
        }
        assert_eq!(expected.own_time(), 42);
    }

    #[test]
    fn a_zombie_has_ended_and_a_sleeping_process_has_not() {
        for (state, ended) in [
            ('S', false),
            ('R', false),
            ('D', false),
            ('Z', true),
            ('X', true),
        ] {
            let line = format!("7 (a) {}", FIELDS.replace('S', &state.to_string()));
            let stat = ProcessStat::parse(&line).unwrap();
            assert_eq!((stat.state, stat.has_ended()), (state, ended));
        }
    }

    #[test]
    fn a_damaged_line_is_none() {
        let whole = format!("7 (a) {FIELDS}");
        // Without its start, which is followed by two more fields.
        let cut = whole.split_once(" 4242").unwrap().0;
        let no_number = whole.replace(" 30 ", " x ");
        for line in ["", "7", "7 (a", "7 (a)", "7 (a) S", cut, no_number.as_str()] {
            assert_eq!(ProcessStat::parse(line), None, "{line:?}");
        }
        let huge = whole.replace(" 12 30 ", " 18446744073709551615 30 ");
        assert_eq!(ProcessStat::parse(&huge).unwrap().own_time(), u64::MAX);
    }

    #[test]
    fn a_thread_cannot_hide_behind_its_name() {
        let stat = std::thread::spawn(|| {
            fs::write("/proc/thread-self/comm", b"\xff) Z 1 (").unwrap();
            ProcessStat::read("/proc/thread-self/stat")
        });
        let stat = stat.join().unwrap().unwrap();
        assert!(!stat.has_ended() && stat.start > 0, "{stat:?}");
        assert_eq!(ProcessStat::read("/proc/self/no-such-file"), None);
    }
}
