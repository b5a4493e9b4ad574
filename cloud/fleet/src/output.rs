//! The output of commands: tables and sentences for people, JSON for programs. Results go to standard output,
//! everything else to standard error; colours are used only if a terminal shows them and NO_COLOR is not set.

use std::env;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal as _, Write as _, stderr, stdout};
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// The rating of a value, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CloudBehaviour {
    Plain,
    Good,
    Warning,
    Bad,
    Quiet,
}

/// The minimum width of a terminal, in characters, that tables are fitted to.
const NARROWEST: u16 = 60;

/// A column's heading, and the cell that it shows for a row.
pub(crate) type Column<T> = (&'static str, fn(&T) -> (String, CloudBehaviour));

/// Returns a cell with text, or for a value that may be missing.
pub(crate) fn plain<'a>(text: impl Into<Option<&'a String>>) -> (String, CloudBehaviour) {
    (
        text.into().cloned().unwrap_or_default(),
        CloudBehaviour::Plain,
    )
}

/// Like [`plain`], for less important values.
pub(crate) fn quiet<'a>(text: impl Into<Option<&'a String>>) -> (String, CloudBehaviour) {
    (
        text.into().cloned().unwrap_or_default(),
        CloudBehaviour::Quiet,
    )
}

/// The destination of a command's output.
pub(crate) struct Output {
    pub(crate) json: bool,
    colour: bool,
    /// Whether standard output is a terminal: tables fit its width.
    terminal: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = stdout().is_terminal();
        Output {
            json,
            colour: terminal && !plain,
            terminal,
        }
    }

    /// Prints the rows of a listing, or the text `none` if there are none.
    pub(crate) fn rows<T: Serialize>(&self, rows: &[T], columns: &[Column<T>], none: &str) {
        if self.json {
            return self.value(&rows);
        }
        if rows.is_empty() {
            return self.note(none);
        }
        let mut table = self.table();
        table.set_header(columns.iter().map(|(heading, _)| {
            let cell = Cell::new(heading);
            if self.colour {
                cell.add_attribute(Attribute::Bold)
            } else {
                cell
            }
        }));
        for row in rows {
            let cells = columns.iter().map(|(_, shown)| {
                let (text, behaviour) = shown(row);
                self.cell(&text, behaviour)
            });
            table.add_row(cells);
        }
        self.say(table);
    }

    /// Prints one thing and its properties; properties without a value are omitted.
    pub(crate) fn details<T: Serialize>(&self, thing: &T, properties: &[(&str, Option<String>)]) {
        if self.json {
            return self.value(thing);
        }
        let mut table = self.table();
        for (name, value) in properties {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                table.add_row([
                    self.cell(name, CloudBehaviour::Quiet),
                    self.cell(value, CloudBehaviour::Plain),
                ]);
            }
        }
        self.say(table);
    }

    /// Reports that something was done: a sentence for people, or JSON for programs.
    pub(crate) fn done(&self, sentence: impl Display, thing: &Value) {
        if self.json {
            self.value(thing)
        } else {
            line(&printable(&sentence.to_string()))
        }
    }

    /// Prints a result that is text.
    pub(crate) fn text(&self, text: impl Display) {
        line(&printable(&text.to_string()));
    }

    /// Prints JSON.
    pub(crate) fn value<T: Serialize + ?Sized>(&self, value: &T) {
        if let Ok(text) = serde_json::to_string_pretty(value) {
            line(&escaped(&text));
        }
    }

    /// Prints a line of JSON, for results that arrive one by one.
    pub(crate) fn value_in_line<T: Serialize + ?Sized>(&self, value: &T) {
        if let Ok(text) = serde_json::to_string(value) {
            line(&escaped(&text));
        }
    }

    /// Prints additional information for people.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.json {
            note_line(&printable(&text.to_string()));
        }
    }

    /// Shows at a terminal that the program is waiting, until the bar is dropped.
    pub(crate) fn waiting(&self, what: &str) -> ProgressBar {
        if self.json || !stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
        spinner.set_message(printable(what));
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    }

    /// Shows at a terminal how many bytes of a file are transferred, until the bar is dropped.
    pub(crate) fn bytes(&self, what: &str, size: u64) -> ProgressBar {
        if self.json || !stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(size).with_finish(ProgressFinish::AndClear);
        let looks = ProgressStyle::with_template("{msg}  {bar:30}  {bytes} of {total_bytes}");
        if let Ok(looks) = looks {
            bar.set_style(looks);
        }
        bar.set_message(printable(what));
        bar
    }

    /// Prints the failure of a command.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.json {
            let body = json!({
                "error": failure.to_string(),
                "causes": failure.causes(),
                "hint": failure.hint,
            });
            note_line(&escaped(&body.to_string()));
            return;
        }
        let colour = stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let (red, off) = if colour {
            ("\u{1b}[31m", "\u{1b}[0m")
        } else {
            ("", "")
        };
        let message = printable(&failure.to_string());
        note_line(&format!("{red}error{off}: {message}"));
        for cause in failure.causes() {
            note_line(&format!("  caused by: {}", printable(&cause)));
        }
        if let Some(hint) = &failure.hint {
            note_line(&format!("hint: {}", printable(hint)));
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING);
        // Columns of a single character are useless: the terminal wraps a table that does not fit.
        let fits = table.width().is_some_and(|width| width >= NARROWEST);
        table.set_content_arrangement(if self.terminal && fits {
            ContentArrangement::Dynamic
        } else {
            ContentArrangement::Disabled
        });
        if self.colour {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        table
    }

    fn cell(&self, text: &str, behaviour: CloudBehaviour) -> Cell {
        let cell = Cell::new(printable(text));
        match behaviour {
            _ if !self.colour => cell,
            CloudBehaviour::Plain => cell,
            CloudBehaviour::Good => cell.fg(Color::Green),
            CloudBehaviour::Warning => cell.fg(Color::Yellow),
            CloudBehaviour::Bad => cell.fg(Color::Red),
            CloudBehaviour::Quiet => cell.add_attribute(Attribute::Dim),
        }
    }

    fn say(&self, mut table: Table) {
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        for text in table.lines() {
            line(text.trim_end());
        }
    }
}

/// Prints a line of the result. A reader that stops early (`fleet devices | head`) ends the program quietly. Another
/// error, such as a full disk, means that the result is lost.
fn line(text: &str) {
    match writeln!(stdout(), "{text}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            note_line(&format!("error: cannot write to standard output: {error}"));
            std::process::exit(1);
        }
    }
}

/// Prints a line to standard error. Without a reader (`fleet devices 2>&1 | head`) the command continues: what it does
/// to the fleet does not depend on who reads its notes.
pub(crate) fn note_line(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}

/// Returns untrusted text without characters that control the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !steers(*c))
        .collect()
}

/// Returns equivalent JSON whose strings do not control the terminal either.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\n' => text.push(c),
            c if steers(c) => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}

/// Returns whether a character moves a terminal's cursor, or changes the reading direction.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a time of the API for people, in UTC.
pub(crate) fn when(time: &str) -> String {
    match time.get(..16) {
        Some(minutes) if time.ends_with('Z') => minutes.replace('T', " "),
        _ => time.to_owned(),
    }
}

/// Formats the size of a file or an image for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// Returns the part of a uuid or commit that is shown.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(7).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_does_not_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\r\u{7}c\td"), "a[2Jbc\td");
        assert_eq!(printable("a\u{9b}31mb"), "a31mb");
        assert_eq!(printable("a\u{202e}b"), "ab");
        assert_eq!(
            escaped("[\n\"a\u{9b}b\u{202e}\"]"),
            "[\n\"a\\u009bb\\u202e\"]"
        );
    }

    #[test]
    fn times_are_shown_to_the_minute() {
        assert_eq!(when("2026-01-02T03:04:05.678Z"), "2026-01-02 03:04");
        assert_eq!(when("soon"), "soon");
    }
}
