//! The names of everything on a bus between machines, which are made here alone.
//!
//! Devices go by their number: it is digits, is given once, and is all that what others tell of them has.

/// What goes before the subjects of one cloud; others may share the server.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    prefix: String,
}

impl Subjects {
    /// `prefix` is of letters, digits, `-` and `_`.
    pub(crate) fn under(prefix: &str) -> Self {
        Subjects {
            prefix: prefix.to_owned(),
        }
    }

    /// What replicas tell each other.
    pub(crate) fn news(&self) -> String {
        format!("{}.news", self.prefix)
    }

    /// Where the replica that a device is connected to is asked for it.
    pub(crate) fn calls(&self, device: i64) -> String {
        format!("{}.device.{device}.call", self.prefix)
    }

    /// The lines of a device.
    pub(crate) fn lines(&self, device: i64) -> String {
        format!("{}.device.{device}.log", self.prefix)
    }

    /// The lines of all devices.
    pub(crate) fn all_lines(&self) -> String {
        format!("{}.device.*.log", self.prefix)
    }

    /// The stream that lines are kept in.
    pub(crate) fn line_stream(&self) -> String {
        format!("{}-log", self.prefix)
    }
}

/// Whether this can be a subject that one end of a call made up: nobody has us send to any other.
pub(crate) fn is_inbox(subject: &str) -> bool {
    subject.len() <= 128
        && subject.strip_prefix("_INBOX.").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_is_one_word_behind_its_prefix() {
        assert!(is_inbox("_INBOX.Ab0"));
        let long = format!("_INBOX.{}", "a".repeat(200));
        for other in ["", "_INBOX.", "fleet.news", "_INBOX.a.>", "_INBOX.*", &long] {
            assert!(!is_inbox(other), "{other}");
        }
    }
}
