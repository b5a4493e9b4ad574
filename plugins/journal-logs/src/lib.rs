//! `POST /v2/journal-logs`: what the host's journal command prints for the options in the body
//! (docs/spec/device.md#journal-logs).
//!
//! The plugin reads the options and names the type of the output; the output itself passes outside it.
//! What the journal command refuses, such as a time that is none, is an empty answer, as it always was.

mod options;

use supervisor_sdk::{Error, Fields, Response, journal, plugin};

use crate::options::JournalRequest;

plugin! {
    capabilities: { journal => "prints the host's journal for clients that have a key of the device" }
    routes: { POST "/v2/journal-logs" => journal_logs }
    openapi: "openapi.json"
    limits: { concurrency: 16 }
}

/// What is printed where nothing is asked for.
const FORMAT: &str = "short";

async fn journal_logs(Fields(wanted): Fields<JournalRequest>) -> Result<Response, Error> {
    let mut options = wanted.options();
    let format = options.format.get_or_insert_with(|| FORMAT.to_owned());
    let content_type = content_type(format);
    let output = journal::read(options).await?;
    Ok(Response::new(200)
        .with_header("content-type", content_type)
        .with_body(output))
}

/// What a format's output is: text unless it is made for programs.
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
