//! Notes on devices and releases: commands that show one, and the messages about a new one.

use serde::Deserialize;
use serde_json::json;

use crate::cloud::Cloud;
use crate::failure::Result;
use crate::output::Output;

/// Shows the note of the row at `address`, which people call `name`; JSON output identifies the row by `identity`.
pub(super) async fn show(
    cloud: &Cloud,
    output: &Output,
    address: &str,
    identity: (&str, &str),
    name: &str,
) -> Result<()> {
    #[derive(Deserialize)]
    struct NoteRow {
        note: Option<String>,
    }
    let row: Option<NoteRow> = cloud.row(address, "$select=note").await?;
    let note = row.and_then(|row| row.note);
    match (output.json, &note) {
        (true, _) => output.value(&json!({ identity.0: identity.1, "note": note })),
        (false, Some(note)) => output.text(note),
        (false, None) => output.note(format!("{name} has no note")),
    }
    Ok(())
}

/// Returns the note for a text, which is `None` if the text is empty, and the message about the row that has it.
pub(super) fn parsed(text: String) -> (Option<String>, &'static str) {
    if text.is_empty() {
        (None, "no longer has a note")
    } else {
        (Some(text), "now has a note")
    }
}
