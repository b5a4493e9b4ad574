//! Bodies of the cloud's answers: counted while they are read, unpacked up to a limit, and parsed completely or not at
//! all.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::Value;

/// The longest body, in bytes, both packed and unpacked. Targets have a few hundred kilobytes.
pub(crate) const MAX_BODY: usize = 16 << 20;
/// The most values that a body may have: each uses far more memory than the two bytes it takes in JSON.
const MAX_VALUES: usize = 500_000;

/// Why a body is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("it is longer than {} MiB", MAX_BODY >> 20)]
    TooLong,
    #[error("it has more than {MAX_VALUES} values")]
    TooMany,
    #[error("it cannot be unpacked")]
    Packing(#[source] std::io::Error),
    /// Not JSON, or nested more than 127 deep.
    #[error("it is not JSON: {0}")]
    Json(serde_json::Error),
}

/// Parses the JSON in `body`, which is packed if `gzip` is set. Blocks for as long as the work takes.
pub(crate) fn parse(body: Vec<u8>, gzip: bool) -> Result<Value, PayloadError> {
    let body = if gzip { unpack(&body)? } else { body };
    let separators = body
        .iter()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'));
    if separators.count() > MAX_VALUES {
        return Err(PayloadError::TooMany);
    }
    serde_json::from_slice(&body).map_err(PayloadError::Json)
}

/// Unpacks the first bytes of a packed text as far as possible, up to `most` bytes.
pub(crate) fn beginning(packed: &[u8], most: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut decoder = GzDecoder::new(packed).take(most as u64);
    // An end that is cut off, or a text that is not packed, ends it.
    let _ = decoder.read_to_end(&mut text);
    text
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, PayloadError> {
    let mut body = Vec::new();
    let mut decoder = GzDecoder::new(packed).take(MAX_BODY as u64 + 1);
    decoder
        .read_to_end(&mut body)
        .map_err(PayloadError::Packing)?;
    if body.len() > MAX_BODY {
        return Err(PayloadError::TooLong);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn packed(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_beginning_of_a_packed_text_is_unpacked_as_far_as_it_arrived() {
        let whole = packed(br#""the fleet wants another system""#);
        assert_eq!(beginning(&whole, 10), br#""the fleet"#);
        assert_eq!(
            beginning(&whole, 1000),
            br#""the fleet wants another system""#
        );
        assert!(br#""the fleet wants another system""#.starts_with(&beginning(&whole[..20], 1000)));
        assert_eq!(beginning(b"plain", 1000), b"");
    }

    #[test]
    fn packed_and_plain_bodies_are_the_same() {
        let body = json!({"a": [1, {"b": "c"}]});
        let text = body.to_string().into_bytes();
        assert_eq!(parse(text.clone(), false).unwrap(), body);
        assert_eq!(parse(packed(&text), true).unwrap(), body);
    }

    #[test]
    fn hostile_bodies_are_refused_before_they_cost_memory() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(matches!(
            parse(deep.into_bytes(), false),
            Err(PayloadError::Json(_))
        ));
        let many = format!("[{}1]", "1,".repeat(600_000));
        assert!(matches!(
            parse(many.into_bytes(), false),
            Err(PayloadError::TooMany)
        ));
        // 64 MiB in 64 KiB.
        let bomb = packed(&vec![b' '; 64 << 20]);
        assert!(bomb.len() < 128 << 10);
        assert!(matches!(parse(bomb, true), Err(PayloadError::TooLong)));
        for broken in [&b"\x1f\x8b\x08\x00"[..], b"plain"] {
            assert!(matches!(
                parse(broken.to_vec(), true),
                Err(PayloadError::Packing(_))
            ));
        }
        for malformed in ["", "{", "{}{}", "\u{0}"] {
            let parsed = parse(malformed.as_bytes().to_vec(), false);
            assert!(
                matches!(parsed, Err(PayloadError::Json(_))),
                "{malformed:?}"
            );
        }
    }
}
