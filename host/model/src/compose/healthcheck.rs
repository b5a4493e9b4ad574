//! A service's `healthcheck`; missing fields come from the image.

use serde_json::Value;

use super::reader::Reader;
use crate::Healthcheck;

/// Returns `None` to keep the image's own health check unchanged.
pub(super) fn healthcheck(reader: &mut Reader<'_>) -> Option<Healthcheck> {
    let fields = reader.record("healthcheck")?;
    let check = reader.within("healthcheck", fields, |reader| {
        let test = test(reader);
        let disabled = reader.flag("disable");
        Healthcheck {
            test: if disabled { vec!["NONE".into()] } else { test },
            interval: reader.duration("interval"),
            timeout: reader.duration("timeout"),
            start_period: reader.duration("start_period"),
            retries: Some(reader.integer("retries", 0)).filter(|retries| *retries > 0),
        }
    });
    (check != Healthcheck::default()).then_some(check)
}

/// Reads the test: a text is a shell command; a list is used unchanged.
fn test(reader: &mut Reader<'_>) -> Vec<String> {
    match reader.take("test") {
        None => Vec::new(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec!["CMD-SHELL".into(), text.clone()],
        Some(Value::Array(items)) => {
            let words: Option<Vec<String>> = items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect();
            match words {
                // Engines refuse the container if the first word is anything else.
                Some(words)
                    if words.is_empty()
                        || ["NONE", "CMD", "CMD-SHELL"].contains(&words[0].as_str()) =>
                {
                    words
                }
                _ => {
                    let value = Value::Array(items.clone());
                    reader.problem(
                        "test",
                        &value,
                        "a string, or a list of strings that begins with `NONE`, `CMD` or `CMD-SHELL`",
                    );
                    Vec::new()
                }
            }
        }
        Some(other) => {
            reader.ignored("test", other);
            Vec::new()
        }
    }
}
