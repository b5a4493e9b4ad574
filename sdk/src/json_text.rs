//! Reads JSON of a caller: the body of a request, and the input of an action. The text of an error says which of them it is
//! (`source`, such as `the body`) and which field does not fit.

use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Error, Value};
use serde_path_to_error::Track;

/// How much of each end of a long error is shown, in characters.
const SHOWN: usize = 100;

/// Reads JSON into `T`, and checks that nothing follows it.
pub(crate) fn read<T: DeserializeOwned>(source: &str, text: &[u8]) -> Result<T, String> {
    if text.is_empty() {
        return Err(format!("{source} is missing: it must be JSON"));
    }
    let deserializer = &mut Deserializer::from_slice(without_mark(text));
    let value = with_path(source, |track| {
        T::deserialize(serde_path_to_error::Deserializer::new(
            &mut *deserializer,
            track,
        ))
    })?;
    let end = deserializer.end();
    end.map_err(|error| malformed(source, &error))?;
    Ok(value)
}

/// Reads JSON of any form. Of repeated names, the last one counts.
pub(crate) fn read_value(source: &str, text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(without_mark(text)).map_err(|error| malformed(source, &error))
}

/// Converts JSON of any form.
pub(crate) fn from_value<T: DeserializeOwned>(source: &str, value: Value) -> Result<T, String> {
    with_path(source, |track| {
        T::deserialize(serde_path_to_error::Deserializer::new(value, track))
    })
}

/// Returns JSON without the byte-order mark that some editors and shells write (RFC 8259, section 8.1).
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

fn malformed(source: &str, error: &Error) -> String {
    format!("{source} is not JSON: {}", shortened(error))
}

/// Returns the text of an error, without its middle if it is long: it may repeat the value that does not
/// fit.
fn shortened(error: &Error) -> String {
    let text = error.to_string();
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text;
    }
    let head: String = text.chars().take(SHOWN).collect();
    // The end says what was expected, and where.
    let tail: String = text.chars().skip(count - SHOWN).collect();
    format!("{head}…{tail}")
}

/// Runs a deserialization that keeps track of where it is, so that its error can name the field.
fn with_path<T>(
    source: &str,
    read: impl FnOnce(&mut Track) -> Result<T, Error>,
) -> Result<T, String> {
    let mut track = Track::new();
    read(&mut track).map_err(|error| {
        if error.is_syntax() || error.is_eof() {
            return malformed(source, &error);
        }
        match track.path().to_string().as_str() {
            "." => format!("{source}: {}", shortened(&error)),
            path => {
                let path: String = path.chars().take(2 * SHOWN).collect();
                format!("field `{path}` of {source}: {}", shortened(&error))
            }
        }
    })
}
