//! One line of a log, in the form for the cloud (docs/spec/device.md#log-upload). Pure.

use serde_json::{Map, Value};

/// The maximum characters of a message; a longer one is cut, and ends in [`CUT`].
const MAX_MESSAGE: usize = 10_000;
const CUT: &str = "[...]";

/// A line that a service or the supervisor printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The text without its line end.
    pub message: String,
    /// Milliseconds since the epoch.
    pub timestamp_ms: i64,
    /// The number of the service that printed it; `None` if the supervisor did.
    pub service: Option<u64>,
    /// Whether it went to the standard error output.
    pub is_stderr: bool,
}

impl LogLine {
    /// Returns one line of JSON with its end; `None` if the cloud has no number for the service.
    pub(super) fn written(&self) -> Option<Vec<u8>> {
        let mut fields = Map::new();
        fields.insert("message".into(), self.cut().into());
        fields.insert("timestamp".into(), self.timestamp_ms.into());
        match self.service {
            None => fields.insert("isSystem".into(), true.into()),
            Some(0) => return None,
            Some(number) => fields.insert("serviceId".into(), number.into()),
        };
        if self.is_stderr {
            fields.insert("isStdErr".into(), true.into());
        }
        let mut line = Value::Object(fields).to_string().into_bytes();
        line.push(b'\n');
        Some(line)
    }

    fn cut(&self) -> String {
        if self.message.chars().nth(MAX_MESSAGE).is_none() {
            return self.message.clone();
        }
        let beginning = self.message.chars().take(MAX_MESSAGE - CUT.len());
        beginning.chain(CUT.chars()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str, service: Option<u64>, is_stderr: bool) -> Option<String> {
        let line = LogLine {
            message: message.into(),
            timestamp_ms: 12,
            service,
            is_stderr,
        };
        let written = line.written()?;
        Some(String::from_utf8(written).unwrap())
    }

    #[test]
    fn a_line_says_who_printed_it() {
        for (service, is_stderr, expected) in [
            (
                None,
                false,
                Some(r#"{"message":"a\"b","timestamp":12,"isSystem":true}"#),
            ),
            (
                Some(7),
                false,
                Some(r#"{"message":"a\"b","timestamp":12,"serviceId":7}"#),
            ),
            (
                Some(7),
                true,
                Some(r#"{"message":"a\"b","timestamp":12,"serviceId":7,"isStdErr":true}"#),
            ),
            (Some(0), false, None),
        ] {
            let expected = expected.map(|expected| format!("{expected}\n"));
            assert_eq!(line("a\"b", service, is_stderr), expected);
        }
    }

    #[test]
    fn a_long_message_is_cut_at_ten_thousand_characters() {
        let length = |message: &str| {
            let written = line(message, None, false).unwrap();
            let written: Value = serde_json::from_str(&written).unwrap();
            let message = written["message"].as_str().unwrap().to_owned();
            (message.chars().count(), message.ends_with("ä[...]"))
        };
        assert_eq!(length(&"ä".repeat(10_000)), (10_000, false));
        assert_eq!(length(&"ä".repeat(10_001)), (10_000, true));
        assert_eq!(length(&"ä".repeat(1_000_000)), (10_000, true));
    }
}
