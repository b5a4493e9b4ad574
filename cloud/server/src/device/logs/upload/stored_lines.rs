//! Repeated lines: a device whose connection broke sends again what may not have arrived
//! (docs/spec/device.md#log-upload), and lines that had arrived are left out.

use std::collections::HashMap;

use cloud_core::logs::line::LogLine;

/// The properties that distinguish a line from others.
type LineIdentity = (i64, Option<i64>, bool, bool, String);

/// The stored lines that the first lines of a request may repeat.
#[derive(Debug)]
pub(super) struct StoredLines {
    left: HashMap<LineIdentity, usize>,
    /// The time of the newest of them, in milliseconds: newer lines cannot be repetitions.
    newest: i64,
}

impl StoredLines {
    pub(super) fn from_lines(lines: &[LogLine]) -> Self {
        let mut left = HashMap::new();
        for line in lines {
            *left.entry(same(line)).or_default() += 1;
        }
        let newest = lines.iter().map(|line| line.timestamp).max();
        StoredLines {
            left,
            newest: newest.unwrap_or(i64::MIN),
        }
    }

    /// Removes stored lines from `lines`; returns whether more repetitions may follow.
    pub(super) fn leave_out(&mut self, lines: &mut Vec<LogLine>) -> bool {
        // A line that was printed twice is stored twice, and left out twice.
        let mut old = false;
        lines.retain(|line| {
            old |= line.timestamp <= self.newest;
            match self.left.get_mut(&same(line)) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            }
        });
        old
    }
}

fn same(line: &LogLine) -> LineIdentity {
    (
        line.timestamp,
        line.service,
        line.is_system,
        line.is_std_err,
        line.message.clone(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(timestamp: i64, message: &str) -> LogLine {
        LogLine {
            service: Some(1),
            is_system: false,
            ..LogLine::system(message.to_owned(), timestamp)
        }
    }

    fn left(known: &mut StoredLines, lines: &[(i64, &str)]) -> (Vec<(i64, String)>, bool) {
        let mut lines = lines.iter().map(|(at, text)| line(*at, text)).collect();
        let more = known.leave_out(&mut lines);
        let left = lines.into_iter().map(|line| (line.timestamp, line.message));
        (left.collect(), more)
    }

    #[test]
    fn lines_are_left_out_as_often_as_they_are_stored() {
        let kept = [line(1, "a"), line(2, "b"), line(2, "b"), line(2, "c")];
        let mut known = StoredLines::from_lines(&kept);
        let (rest, more) = left(&mut known, &[(2, "b"), (2, "c")]);
        assert_eq!((rest, more), (Vec::new(), true));
        let (rest, more) = left(&mut known, &[(2, "b"), (2, "b"), (3, "b")]);
        assert_eq!(rest, [(2, "b".to_owned()), (3, "b".to_owned())]);
        assert!(more, "one of them was no newer than the newest");
        let (rest, more) = left(&mut known, &[(4, "a")]);
        assert_eq!((rest.len(), more), (1, false));
    }

    #[test]
    fn a_line_of_another_service_or_output_is_another_one() {
        let mut known = StoredLines::from_lines(&[line(1, "a")]);
        let other = |change: fn(&mut LogLine)| {
            let mut line = line(1, "a");
            change(&mut line);
            line
        };
        let mut lines = vec![
            other(|line| line.service = None),
            other(|line| line.is_std_err = true),
            other(|line| line.is_system = true),
            other(|_| {}),
        ];
        known.leave_out(&mut lines);
        assert_eq!(lines.len(), 3);
        assert!(!StoredLines::from_lines(&[]).leave_out(&mut lines));
    }
}
