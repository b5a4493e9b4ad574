//! One line, in the format sent by devices and in the format read by clients.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Maximum number of characters of a message; devices cut it there as well.
const LONGEST: usize = 10_000;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Its number, unique among the lines of the device; 0 before it is stored.
    pub id: i64,
    /// When the cloud received it, in milliseconds.
    pub created_at: i64,
    /// The device's own timestamp, in milliseconds.
    pub timestamp: i64,
    pub message: String,
    pub is_system: bool,
    pub is_std_err: bool,
    /// The number of the service that wrote it.
    pub service: Option<i64>,
}

/// The result of parsing one line sent by a device.
#[derive(Debug, PartialEq, Eq)]
pub enum ParsedLine {
    Line(LogLine),
    /// A line of a device behind the sending device, which is skipped.
    Other,
    /// Not a line.
    Nothing,
}

impl ParsedLine {
    /// # Panics
    /// Never: what has another form is [`ParsedLine::Nothing`].
    pub fn read(value: &Value, now: i64) -> Self {
        let Value::Object(fields) = value else {
            return ParsedLine::Nothing;
        };
        if fields.contains_key("uuid") {
            return ParsedLine::Other;
        }
        let flag = |name| match fields.get(name) {
            None | Some(Value::Null) => Some(false),
            Some(value) => value.as_bool(),
        };
        let line = || {
            Some(LogLine {
                id: 0,
                created_at: now,
                timestamp: milliseconds(fields.get("timestamp")?)?,
                message: cut(fields.get("message")?.as_str()?),
                is_system: flag("isSystem")?,
                is_std_err: flag("isStdErr")?,
                service: match fields.get("serviceId") {
                    None | Some(Value::Null) => None,
                    Some(id) => Some(id.as_i64()?),
                },
            })
        };
        line().map_or(ParsedLine::Nothing, ParsedLine::Line)
    }
}

impl LogLine {
    /// Creates a message of the cloud itself.
    pub fn system(message: String, now: i64) -> Self {
        LogLine {
            id: 0,
            created_at: now,
            timestamp: now,
            message,
            is_system: true,
            is_std_err: false,
            service: None,
        }
    }

    /// Cuts the message to the maximum length of a line.
    pub fn bounded(self) -> Self {
        LogLine {
            message: cut(&self.message),
            ..self
        }
    }

    /// Returns the line in the format read by clients.
    pub fn json(&self) -> Value {
        let mut object = Map::from_iter([
            ("message".to_owned(), json!(self.message)),
            ("timestamp".to_owned(), json!(self.timestamp)),
            ("createdAt".to_owned(), json!(self.created_at)),
            ("isSystem".to_owned(), json!(self.is_system)),
            ("isStdErr".to_owned(), json!(self.is_std_err)),
        ]);
        if let Some(service) = self.service {
            object.insert("serviceId".to_owned(), json!(service));
        }
        Value::Object(object)
    }
}

fn milliseconds(value: &Value) -> Option<i64> {
    let whole = value.as_i64().or_else(|| {
        #[expect(clippy::cast_possible_truncation, reason = "such a cast saturates")]
        value.as_f64().map(|number| number as i64)
    });
    whole.filter(|milliseconds| *milliseconds >= 0)
}

/// Databases cannot store the character 0.
fn cut(message: &str) -> String {
    message
        .chars()
        .filter(|one| *one != '\0')
        .take(LONGEST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_has_a_message_and_a_time() {
        let read = |value: Value| ParsedLine::read(&value, 7);
        let whole =
            json!({ "message": "m\u{0}n", "timestamp": 5, "isStdErr": true, "serviceId": 3 });
        let ParsedLine::Line(line) = read(whole) else {
            panic!("a line")
        };
        let expected = json!({
            "message": "mn", "timestamp": 5, "createdAt": 7, "isSystem": false, "isStdErr": true, "serviceId": 3,
        });
        assert_eq!(line.json(), expected);
        assert_eq!(
            read(json!({ "message": "m", "timestamp": 5, "uuid": "x" })),
            ParsedLine::Other
        );
        for other in [
            json!({ "m": "old", "t": 5, "s": 1 }),
            json!({ "message": "m" }),
            json!({ "message": "m", "timestamp": "5" }),
            json!({ "message": "m", "timestamp": -5 }),
            json!({ "message": 1, "timestamp": 5 }),
            json!({ "message": "m", "timestamp": 5, "isSystem": 1 }),
            json!({ "message": "m", "timestamp": 5, "serviceId": "x" }),
            json!("text"),
            json!(null),
        ] {
            assert_eq!(read(other.clone()), ParsedLine::Nothing, "{other}");
        }
        let ParsedLine::Line(long) = read(json!({ "message": "x".repeat(20_000), "timestamp": 5 }))
        else {
            panic!("a line")
        };
        assert_eq!(long.message.len(), LONGEST);
    }
}
