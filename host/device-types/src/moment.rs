//! Moments in the form for clients: ISO 8601 with milliseconds and `Z`.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// A point in time, in milliseconds since the epoch; written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    /// Returns the current moment.
    #[must_use]
    pub fn now() -> Self {
        Moment(jiff::Timestamp::now().as_millisecond())
    }

    /// Returns the moment that is `delay` from now.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        let delay = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        Moment(Moment::now().0.saturating_add(delay))
    }

    /// Returns the moment as text; `None` if it is out of the calendar's range.
    #[must_use]
    pub fn to_iso_8601(self) -> Option<String> {
        let moment = jiff::Timestamp::from_millisecond(self.0).ok()?;
        Some(format!("{moment:.3}"))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Out of the range of any clock; the epoch is as good as any other text.
        let epoch = || "1970-01-01T00:00:00.000Z".to_owned();
        serializer.serialize_str(&self.to_iso_8601().unwrap_or_else(epoch))
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_with_milliseconds_and_z() {
        for (milliseconds, text) in [
            (0, Some("1970-01-01T00:00:00.000Z")),
            (1_700_000_000_123, Some("2023-11-14T22:13:20.123Z")),
            (i64::MAX, None),
        ] {
            assert_eq!(Moment(milliseconds).to_iso_8601().as_deref(), text);
        }
    }
}
