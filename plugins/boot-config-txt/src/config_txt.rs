//! The file `config.txt`, line by line.
//!
//! Most of it is not ours: comments, lines below filters (`[pi4]`, `[EDID=...]`, `[none]`), files that are
//! included, settings that nobody asked for. All of that stays as it is, byte for byte. What was asked for
//! stands in a block of its own at the end, after `[all]`, so that it holds for every board and wins over what
//! is above it. A line above the block that would add to it or contradict it is set aside as a comment. So it
//! can be told from the file alone what was written here, and the file is again what it was before when
//! nothing is asked for any more (but for the end of its last line, which is added where it was missing).
//!
//! A setting that the file has by itself as it is asked for is not written a second time.

use std::collections::BTreeMap;

use crate::settings::is_repeated;

/// The first and the last line of the block.
const BEGIN: &str =
    "# Set by the device supervisor (HOST_CONFIG_...), which undoes changes made here:";
const END: &str = "# End of what the device supervisor has set.";
/// Before a line that gives way to the block.
const SET_ASIDE: &str = "# Set aside by the device supervisor: ";

/// The filter that lets everything through.
const ALL: &str = "[all]";

/// Values by key; of a key that is not repeated there is one.
pub(crate) type Settings = BTreeMap<String, Vec<String>>;

/// A parsed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigTxt {
    /// What is not ours, with the lines that were set aside in their places.
    own: Vec<Vec<u8>>,
    /// All of it as the firmware reads it.
    lines: Vec<Vec<u8>>,
    /// How its lines end.
    ending: &'static [u8],
    /// The last line of its own has an end.
    ends: bool,
}

/// What a line says to the firmware.
enum Line<'a> {
    /// Whether it lets all boards through.
    Filter(bool),
    Setting(&'a str, &'a str),
    /// A comment, an included file, nothing.
    Other,
}

impl ConfigTxt {
    pub(crate) fn parse(text: &[u8]) -> ConfigTxt {
        let mut lines: Vec<Vec<u8>> = text
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        // What follows the last end is no line, unless there is something.
        let ends = lines.last().is_none_or(Vec::is_empty);
        if ends {
            lines.pop();
        }
        let mut own = Vec::new();
        let mut in_block = false;
        let mut had_block = false;
        let mut filtered = false;
        let mut filtered_before_block = false;
        for line in &lines {
            let text = printable(line);
            if in_block {
                in_block = match read(&text) {
                    _ if text == END => false,
                    // Its last line is gone, and here is the next one.
                    _ if text == BEGIN => true,
                    // Its last line is gone: what cannot be ours is not.
                    Line::Other => {
                        own.push(without_mark(line));
                        false
                    }
                    _ => true,
                };
                continue;
            }
            if text == BEGIN {
                in_block = true;
                had_block = true;
                filtered_before_block = filtered;
                continue;
            }
            if let Line::Filter(all) = read(&text) {
                filtered = !all;
            }
            if had_block && filtered_before_block {
                // What was added below the block stands after its `[all]`.
                own.push(with_end_of(line, ALL));
                filtered = false;
            }
            had_block = false;
            own.push(without_mark(line));
        }
        // As the first line that stays, so that the next look at what is written here finds the same.
        let first = own.first().or(lines.first());
        let ending: &[u8] = if first.is_some_and(|line| line.ends_with(b"\r")) {
            b"\r\n"
        } else {
            b"\n"
        };
        ConfigTxt {
            own,
            lines,
            ending,
            ends,
        }
    }

    /// What holds for all boards.
    pub(crate) fn settings(&self) -> Settings {
        settings(self.lines.iter().map(Vec::as_slice))
    }

    /// The text of the file that has `target`, and nothing that was written here before.
    pub(crate) fn with(&self, target: &Settings) -> Vec<u8> {
        let stock = settings(self.own.iter().map(Vec::as_slice));
        let none = Vec::new();
        let missing: Settings = target
            .iter()
            .filter(|(key, values)| stock.get(*key).unwrap_or(&none) != *values)
            .map(|(key, values)| (key.clone(), values.clone()))
            .collect();
        let mut text = Vec::new();
        let mut filtered = false;
        let mut overlays = false;
        for (at, line) in self.own.iter().enumerate() {
            let readable = printable(line);
            match read(&readable) {
                Line::Filter(all) => filtered = !all,
                Line::Setting(key, _) if !filtered && missing.contains_key(key) => {
                    text.extend_from_slice(SET_ASIDE.as_bytes());
                }
                Line::Setting("dtoverlay" | "device_tree_overlay", _) => overlays = true,
                Line::Setting(..) | Line::Other => {}
            }
            text.extend_from_slice(line);
            let is_last = at + 1 == self.own.len();
            if !is_last || self.ends {
                text.push(b'\n');
            } else if !missing.is_empty() {
                text.extend_from_slice(self.ending);
            }
        }
        if !missing.is_empty() {
            for line in block(&missing, overlays) {
                text.extend_from_slice(line.as_bytes());
                text.extend_from_slice(self.ending);
            }
        }
        text
    }
}

/// The lines of the block. Parameters come before overlays, since after one they would be the overlay's own.
fn block(missing: &Settings, overlays_above: bool) -> Vec<String> {
    let rank = |key: &str| match key {
        "dtparam" | "device_tree_param" => 0,
        "dtoverlay" | "device_tree_overlay" => 2,
        _ => 1,
    };
    let mut keys: Vec<&String> = missing.keys().collect();
    keys.sort_by_key(|key| (rank(key), key.as_str()));
    let mut lines = vec![BEGIN.to_owned(), ALL.to_owned()];
    let has_parameters = keys
        .iter()
        .any(|key| rank(key) == 0 && missing.get(*key).is_some_and(|values| !values.is_empty()));
    if overlays_above && has_parameters {
        // Ends the overlay above.
        lines.push("dtoverlay=".to_owned());
    }
    for key in keys {
        let values = missing.get(key).into_iter().flatten();
        lines.extend(values.map(|value| format!("{key}={value}")));
    }
    lines.push(END.to_owned());
    lines
}

fn settings<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Settings {
    let mut settings = Settings::new();
    let mut filtered = false;
    for line in lines {
        let text = printable(line);
        match read(&text) {
            Line::Filter(all) => filtered = !all,
            // An empty one ends an overlay, and asks for nothing.
            Line::Setting(key, "") if is_repeated(key) => {}
            Line::Setting(key, value) if !filtered => {
                let values = settings.entry(key.to_owned()).or_default();
                if !is_repeated(key) {
                    values.clear();
                }
                values.push(value.to_owned());
            }
            Line::Setting(..) | Line::Other => {}
        }
    }
    settings
}

/// The line as it was before it was set aside, if it was: nothing but settings ever is.
fn without_mark(line: &[u8]) -> Vec<u8> {
    match line.strip_prefix(SET_ASIDE.as_bytes()) {
        Some(aside) if matches!(read(&printable(aside)), Line::Setting(..)) => aside.to_vec(),
        _ => line.to_vec(),
    }
}

/// What is no UTF-8 in a line is replaced, for reading alone.
fn printable(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim().to_owned()
}

fn read(line: &str) -> Line<'_> {
    if let Some(filter) = line.strip_prefix('[') {
        let name = filter.split(']').next().unwrap_or(filter);
        return Line::Filter(name.trim().eq_ignore_ascii_case("all"));
    }
    if line.starts_with('#') {
        return Line::Other;
    }
    if let Some(value) = line.strip_prefix("initramfs ") {
        return Line::Setting("initramfs", value.trim());
    }
    match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Line::Setting(key.trim(), value.trim()),
        _ => Line::Other,
    }
}

/// `text` with the carriage return that `line` has.
fn with_end_of(line: &[u8], text: &str) -> Vec<u8> {
    let mut line_of_text = text.as_bytes().to_vec();
    if line.ends_with(b"\r") {
        line_of_text.push(b'\r');
    }
    line_of_text
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests;
