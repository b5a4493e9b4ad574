//! What commands say: tables and sentences for people, JSON for programs. Results go to standard output,
//! all else to standard error; colour only where a terminal shows it and NO_COLOR is not set.

use std::env;
use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _, stderr, stdout};
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// How a value stands, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Plain,
    Good,
    Warning,
    Bad,
    Quiet,
}

/// The narrowest terminal, in characters, that tables are fitted to.
const NARROWEST: u16 = 60;

/// A column's heading, and what it shows of a row.
pub(crate) type Column<T> = (&'static str, fn(&T) -> (String, Mood));

/// A cell of text, or of what may be missing.
pub(crate) fn plain<'a>(text: impl Into<Option<&'a String>>) -> (String, Mood) {
    (text.into().cloned().unwrap_or_default(), Mood::Plain)
}

/// As [`plain`], for what matters less.
pub(crate) fn quiet<'a>(text: impl Into<Option<&'a String>>) -> (String, Mood) {
    (text.into().cloned().unwrap_or_default(), Mood::Quiet)
}

/// Where commands say things.
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

    /// Rows of a listing; what is said where there are none.
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
                let (text, mood) = shown(row);
                self.cell(&text, mood)
            });
            table.add_row(cells);
        }
        self.say(table);
    }

    /// One thing and its properties; those without a value are left out.
    pub(crate) fn details<T: Serialize>(&self, thing: &T, properties: &[(&str, Option<String>)]) {
        if self.json {
            return self.value(thing);
        }
        let mut table = self.table();
        for (name, value) in properties {
            if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
                table.add_row([self.cell(name, Mood::Quiet), self.cell(value, Mood::Plain)]);
            }
        }
        self.say(table);
    }

    /// That something was done: a sentence, or what a program wants to know of it.
    pub(crate) fn done(&self, sentence: impl Display, thing: &Value) {
        if self.json {
            self.value(thing)
        } else {
            line(&printable(&sentence.to_string()))
        }
    }

    /// A result that is text.
    pub(crate) fn text(&self, text: impl Display) {
        line(&printable(&text.to_string()));
    }

    /// JSON.
    pub(crate) fn value<T: Serialize + ?Sized>(&self, value: &T) {
        if let Ok(text) = serde_json::to_string_pretty(value) {
            line(&escaped(&text));
        }
    }

    /// A line of JSON, for what comes one by one.
    pub(crate) fn value_in_line<T: Serialize + ?Sized>(&self, value: &T) {
        if let Ok(text) = serde_json::to_string(value) {
            line(&escaped(&text));
        }
    }

    /// Something beside the result, for people.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.json {
            eprintln!("{}", printable(&text.to_string()));
        }
    }

    /// Shows at a terminal that something is waited for, until it is dropped.
    pub(crate) fn waiting(&self, what: &str) -> ProgressBar {
        if self.json || !stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
        spinner.set_message(printable(what));
        spinner.enable_steady_tick(Duration::from_millis(120));
        spinner
    }

    /// Shows at a terminal how many bytes of a file went, until it is dropped.
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

    /// A command's end that was not wished for.
    pub(crate) fn failure(&self, failure: &Failure) {
        if self.json {
            let body = json!({
                "error": failure.to_string(),
                "causes": failure.causes(),
                "hint": failure.hint,
            });
            eprintln!("{}", escaped(&body.to_string()));
            return;
        }
        let colour = stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let (red, off) = if colour {
            ("\u{1b}[31m", "\u{1b}[0m")
        } else {
            ("", "")
        };
        eprintln!("{red}error{off}: {}", printable(&failure.to_string()));
        for cause in failure.causes() {
            eprintln!("  caused by: {}", printable(&cause));
        }
        if let Some(hint) = &failure.hint {
            eprintln!("hint: {}", printable(hint));
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(NOTHING);
        // Columns of a letter each help nobody: what does not fit there is wrapped by the terminal.
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

    fn cell(&self, text: &str, mood: Mood) -> Cell {
        let cell = Cell::new(printable(text));
        match mood {
            _ if !self.colour => cell,
            Mood::Plain => cell,
            Mood::Good => cell.fg(Color::Green),
            Mood::Warning => cell.fg(Color::Yellow),
            Mood::Bad => cell.fg(Color::Red),
            Mood::Quiet => cell.add_attribute(Attribute::Dim),
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

/// A line of the result. Who reads no more (`fleet devices | head`) ends the program, quietly.
fn line(text: &str) {
    if writeln!(stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// Text of others without what would steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !steers(*c))
        .collect()
}

/// JSON whose strings steer no terminal either; it says the same.
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

/// What moves a terminal's cursor, or turns the order of what is read.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A time of the API as people read it, in UTC.
pub(crate) fn when(time: &str) -> String {
    match time.get(..16) {
        Some(minutes) if time.ends_with('Z') => minutes.replace('T', " "),
        _ => time.to_owned(),
    }
}

/// Bytes of a file or an image, for people.
pub(crate) fn size(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

/// As much of a uuid or commit as is shown.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(7).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_does_not_steer_the_terminal() {
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
