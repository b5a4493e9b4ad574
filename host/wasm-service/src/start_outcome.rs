//! The outcome of starting a process, as it reports itself.

use std::fmt;

/// The first line of standard output of a service's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The service runs.
    Ready,
    /// Another process serves the container.
    AlreadyServed,
    /// The compiled code of the component cannot be loaded, and why: it was damaged after the engine's check, or
    /// created by another version, or for another processor. This is not recorded in the container's state: the engine
    /// has it compiled again and starts another process.
    DoesNotLoad(String),
    /// The service does not run, and why. The container's state contains the reason as well.
    Failed(String),
}

const READY: &str = "ready";
const ALREADY_SERVED: &str = "already served";
const DOES_NOT_LOAD: &str = "does not load: ";

impl StartOutcome {
    /// Parses the output of a process that has closed it.
    #[must_use]
    pub fn read(output: &str) -> Self {
        match output.trim() {
            READY => StartOutcome::Ready,
            ALREADY_SERVED => StartOutcome::AlreadyServed,
            "" => StartOutcome::Failed("its process ended at once".to_owned()),
            line => match line.strip_prefix(DOES_NOT_LOAD) {
                Some(reason) => StartOutcome::DoesNotLoad(reason.to_owned()),
                None => StartOutcome::Failed(line.to_owned()),
            },
        }
    }
}

impl fmt::Display for StartOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |reason: &str| reason.replace('\n', " ");
        match self {
            StartOutcome::Ready => f.write_str(READY),
            StartOutcome::AlreadyServed => f.write_str(ALREADY_SERVED),
            StartOutcome::DoesNotLoad(reason) => write!(f, "{DOES_NOT_LOAD}{}", line(reason)),
            StartOutcome::Failed(reason) => f.write_str(&line(reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_reads_what_the_process_wrote() {
        for outcome in [
            StartOutcome::Ready,
            StartOutcome::AlreadyServed,
            StartOutcome::DoesNotLoad("it is damaged".to_owned()),
            StartOutcome::Failed("the port 80 is taken".to_owned()),
        ] {
            assert_eq!(StartOutcome::read(&format!("{outcome}\n")), outcome);
        }
        let lines = StartOutcome::Failed("one\ntwo".to_owned());
        assert_eq!(
            StartOutcome::read(&format!("{lines}\n")),
            StartOutcome::Failed("one two".to_owned())
        );
    }

    #[test]
    fn a_process_that_says_nothing_has_failed() {
        let expected = StartOutcome::Failed("its process ended at once".to_owned());
        assert_eq!(StartOutcome::read(""), expected);
        assert_eq!(StartOutcome::read(" \n"), expected);
    }
}
