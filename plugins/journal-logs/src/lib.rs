//! `POST /v2/journal-logs`: the output of the host's journal command for the options in the body
//! (docs/spec/device.md#journal-logs).
//!
//! The plugin reads the options and names the type of the output; the output itself does not pass
//! through the plugin. If the journal command refuses an option, such as an invalid time, the answer is
//! empty, as it always was.

mod options;

use supervisor_sdk::{Error, Fields, Response, journal, plugin};

use crate::options::JournalRequest;

plugin! {
    capabilities: { journal => "prints the host's journal for clients that have a key of the device" }
    routes: { POST "/v2/journal-logs" => journal_logs }
    openapi: "openapi.json"
    limits: { concurrency: 16 }
}

/// The format if none is requested.
const FORMAT: &str = "short";

async fn journal_logs(Fields(request): Fields<JournalRequest>) -> Result<Response, Error> {
    let mut options = request.options();
    let format = options.format.get_or_insert_with(|| FORMAT.to_owned());
    let content_type = content_type(format);
    let output = journal::read(options).await?;
    Ok(Response::new(200)
        .with_header("content-type", content_type)
        .with_body(output))
}

/// Returns the type of a format's output: text, except for formats for programs.
fn content_type(format: &str) -> &'static str {
    match format {
        "json" | "json-pretty" | "json-sse" | "json-seq" => "application/json",
        "export" => "application/octet-stream",
        _ => Response::TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_for_programs_have_types_of_their_own() {
        for (format, expected) in [
            ("short", "text/plain; charset=utf-8"),
            ("cat", "text/plain; charset=utf-8"),
            ("verbose", "text/plain; charset=utf-8"),
            ("nonsense", "text/plain; charset=utf-8"),
            ("json", "application/json"),
            ("json-pretty", "application/json"),
            ("export", "application/octet-stream"),
        ] {
            assert_eq!(content_type(format), expected, "{format}");
        }
    }
}
