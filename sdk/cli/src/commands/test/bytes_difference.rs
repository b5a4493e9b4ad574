//! The difference between the input or the output of an action and the expected one.

use serde_json::Value;

use super::body_lines::{LineEnds, json_lines, plain_lines};
use super::line_difference::difference;
use crate::action_bytes::ActionBytes;

/// Returns the lines that differ; `None` if the bytes are as expected. JSON is equal whatever its spaces and the order
/// of its fields.
pub(super) fn bytes_difference(expected: &ActionBytes, found: &[u8]) -> Option<Vec<String>> {
    let (expected, found) = match expected {
        ActionBytes::Bytes(bytes) if bytes == found => return None,
        ActionBytes::Bytes(bytes) => (
            plain_lines(bytes, LineEnds::Visible),
            plain_lines(found, LineEnds::Visible),
        ),
        ActionBytes::Json(json) => match serde_json::from_slice::<Value>(found) {
            Ok(found) if found == *json => return None,
            Ok(found) => (json_lines(json), json_lines(&found)),
            Err(_) => (json_lines(json), plain_lines(found, LineEnds::Hidden)),
        },
    };
    Some(difference(&expected, &found))
}
