//! The file `config.txt`, line by line.
//!
//! Most of it is not ours: comments, lines below filters (`[pi4]`, `[EDID=...]`, `[none]`), included files,
//! settings that are not in the target. All of this stays unchanged, byte for byte. The target's settings are
//! in a separate block at the end, after `[all]`, so they apply to every board and override the lines above. A
//! line above the block that would add to it or contradict it is set aside as a comment. So the file alone
//! shows what was written here, and once the target is empty, the file is as it was before (except for the end
//! of its last line, which is added if it was missing).
//!
//! A setting that the file already has with the target's value is not written a second time.

use std::collections::BTreeMap;

use crate::settings::is_repeated;

/// The first and the last line of the block.
const BEGIN: &str =
    "# Set by the device supervisor (HOST_CONFIG_...), which undoes changes made here:";
const END: &str = "# End of what the device supervisor has set.";
/// The mark of a line that is replaced by the block.
const SET_ASIDE: &str = "# Set aside by the device supervisor: ";

/// The filter that lets everything through.
const ALL: &str = "[all]";

/// Values by key; a key that is not repeated has one value.
pub(crate) type Settings = BTreeMap<String, Vec<String>>;

/// A parsed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigTxt {
    /// The lines that are not ours, with those that were set aside in their original places.
    own: Vec<Vec<u8>>,
    /// All lines, as the firmware reads them.
    lines: Vec<Vec<u8>>,
    /// The ending of its lines.
    ending: &'static [u8],
    /// Whether the last of its own lines has an ending.
    ends: bool,
}

/// The meaning of a line for the firmware.
enum Line<'a> {
    /// Whether it lets all boards through.
    Filter(bool),
    Setting(&'a str, &'a str),
    /// A comment, an included file, or nothing.
    Other,
}

impl ConfigTxt {
    pub(crate) fn parse(text: &[u8]) -> ConfigTxt {
        let mut lines: Vec<Vec<u8>> = text
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        // The text after the last line ending is a line only if it is not empty.
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
                    // The block's last line is missing, and another block begins.
                    _ if text == BEGIN => true,
                    // The block's last line is missing: a line that cannot be ours ends the block.
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
                // Lines that were added below the block apply after its `[all]`.
                own.push(with_end_of(line, ALL));
                filtered = false;
            }
            had_block = false;
            own.push(without_mark(line));
        }
        // Like the first line that stays, so that parsing the written file gives the same result.
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

    /// Returns the settings that apply to all boards.
    pub(crate) fn settings(&self) -> Settings {
        settings(self.lines.iter().map(Vec::as_slice))
    }

    /// Returns the text of the file with `target`, and without anything that was written here before.
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

/// Returns the lines of the block. Parameters come before overlays, since after an overlay they would belong
/// to it.
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
            // An empty one ends an overlay, and sets nothing.
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

/// Returns the line without the mark, if it was set aside: only settings ever are.
fn without_mark(line: &[u8]) -> Vec<u8> {
    match line.strip_prefix(SET_ASIDE.as_bytes()) {
        Some(aside) if matches!(read(&printable(aside)), Line::Setting(..)) => aside.to_vec(),
        _ => line.to_vec(),
    }
}

/// Returns the line for reading only: invalid UTF-8 is replaced.
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

/// Returns `text` with the carriage return of `line`, if it has one.
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
