//! Bodies as lines that a person can read: JSON indented, text as it is, other bytes in hexadecimal.

use plugin_test_host::protocol::text::is_plain;
use serde_json::Value;

/// How many bytes a line in hexadecimal has.
const IN_A_LINE: usize = 16;

/// Returns a body as lines: indented if it is a JSON object or array.
pub(super) fn body_lines(body: &[u8]) -> Vec<String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(json @ (Value::Object(_) | Value::Array(_))) => json_lines(&json),
        _ => plain_lines(body, LineEnds::Hidden),
    }
}

/// Returns JSON, indented, with the fields of objects in the order of their names.
pub(super) fn json_lines(json: &Value) -> Vec<String> {
    let mut json = json.clone();
    json.sort_all_objects();
    let text = format!("{json:#}");
    text.lines().map(visible).collect()
}

/// Whether the lines of a text contain how they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    Hidden,
    Visible,
}

/// Returns text as its lines, and bytes that are not text in hexadecimal.
pub(super) fn plain_lines(body: &[u8], ends: LineEnds) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(body) else {
        let lines = body.chunks(IN_A_LINE).map(hexadecimal);
        return lines.collect();
    };
    let lines = text.split_inclusive('\n').map(|line| match ends {
        LineEnds::Hidden => visible(line.strip_suffix('\n').unwrap_or(line)),
        LineEnds::Visible => visible(line),
    });
    lines.collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// Escapes what does not show in a terminal, or would control it: a body is from a plugin.
fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if is_plain(character.encode_utf8(&mut [0; 4])) {
            shown.push(character);
        } else {
            shown.extend(character.escape_default());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_indented_json_lines_of_text_or_hexadecimal() {
        for (body, expected) in [
            (&b""[..], vec![]),
            (
                &b"{\"b\":1,\"a\":{}}"[..],
                vec!["{", "  \"a\": {},", "  \"b\": 1", "}"],
            ),
            (&b"Hello,\nAda\n"[..], vec!["Hello,", "Ada"]),
            (&b"21.5"[..], vec!["21.5"]),
            (&b"\xff\x00"[..], vec!["ff 00"]),
            (&b"a\x1b[2J\tb"[..], vec!["a\\u{1b}[2J\\tb"]),
        ] {
            assert_eq!(body_lines(body), expected, "{body:?}");
        }
        let long = body_lines(&[0xff; 2 * IN_A_LINE + 1]);
        assert_eq!((long.len(), long[2].as_str()), (3, "ff"));
        let ends = plain_lines(b"a\r\nb", LineEnds::Visible);
        assert_eq!(ends, ["a\\r\\n", "b"]);
    }
}
