//! What the plugin of a test has done on the device besides answering.
//!
//! ```toml
//! [[log]]                         # the lines since the [[log]] before, each with its level
//! lines = ["info: the door is open"]          # all of them; or texts that they contain
//! contains = ["door"]
//!
//! [[cloud]]                       # all values that were queued since the [[cloud]] before, in their order
//! queue = [{ kind = "device_tag", values = { tag_key = "site", value = "north" } }]
//!
//! [[units]]                       # all units that were restarted since the [[units]] before, in their order
//! restart = ["openvpn.service"]
//!
//! [[leds]]                        # all brightnesses since the [[leds]] before: of each LED in their order
//! set = { ACT = [255, 0] }
//! ```
//!
//! A plugin gives back an LED at the end of each call, and the device restores what it showed; so its brightnesses are
//! compared, and not its state afterwards.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::expectation::block;
use super::line_difference::{difference, listing};
use crate::device_file::{EffectList, Effects, LedBrightness, log_line, queue_line, unit_line};

/// The levels of lines of the log.
const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

/// The effects that the plugin must have had by this point.
#[derive(derive_more::Display)]
#[display("{}", match expected {
    ExpectedEffects::Log { .. } => "log",
    ExpectedEffects::Queue(_) => "cloud",
    ExpectedEffects::Restarts(_) => "units",
    ExpectedEffects::Brightnesses(_) => "leds",
})]
pub(crate) struct TestEffects {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    expected: ExpectedEffects,
}

enum ExpectedEffects {
    Log {
        lines: Option<Vec<String>>,
        contains: Vec<String>,
    },
    Queue(Vec<String>),
    Restarts(Vec<String>),
    Brightnesses(BTreeMap<String, Vec<u32>>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogToml {
    lines: Option<Vec<String>>,
    #[serde(default)]
    contains: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CloudToml {
    queue: Vec<RowToml>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowToml {
    kind: String,
    values: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitsToml {
    restart: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedsToml {
    set: BTreeMap<String, Vec<u32>>,
}

impl TestEffects {
    pub(super) fn of_log(written: LogToml, line: usize) -> Result<TestEffects> {
        ensure!(
            written.lines.is_some() || !written.contains.is_empty(),
            "it must have `lines` or `contains`"
        );
        let lines = written.lines.map(|lines| {
            let lines = lines.iter().map(|line| expected_log_line(line));
            lines.collect::<Result<Vec<String>>>()
        });
        let expected = ExpectedEffects::Log {
            lines: lines.transpose()?,
            contains: written.contains,
        };
        Ok(TestEffects { line, expected })
    }

    pub(super) fn of_cloud(written: CloudToml, line: usize) -> TestEffects {
        let rows = written.queue.into_iter();
        let rows = rows.map(|row| queue_line(&row.kind, row.values.into_iter().collect()));
        TestEffects {
            line,
            expected: ExpectedEffects::Queue(rows.collect()),
        }
    }

    pub(super) fn of_units(written: UnitsToml, line: usize) -> TestEffects {
        let units = written.restart.iter().map(|unit| unit_line(unit));
        TestEffects {
            line,
            expected: ExpectedEffects::Restarts(units.collect()),
        }
    }

    pub(super) fn of_leds(written: LedsToml, line: usize) -> TestEffects {
        TestEffects {
            line,
            expected: ExpectedEffects::Brightnesses(written.set),
        }
    }

    /// Describes how the effects differ from those that the plugin has had.
    pub(crate) fn differences(&self, effects: &Effects) -> Vec<String> {
        match &self.expected {
            ExpectedEffects::Log { lines, contains } => {
                let EffectList {
                    entries, missing, ..
                } = effects.take_log();
                let mut differences = match lines {
                    Some(lines) => compare("lines of the log", lines, &entries, missing),
                    None => Vec::new(),
                };
                differences.extend(absent(contains, &entries, missing));
                differences
            }
            ExpectedEffects::Queue(expected) => {
                let EffectList {
                    entries, missing, ..
                } = effects.take_queue();
                compare("values for the cloud", expected, &entries, missing)
            }
            ExpectedEffects::Restarts(expected) => {
                let EffectList {
                    entries, missing, ..
                } = effects.take_restarts();
                compare("restarted units", expected, &entries, missing)
            }
            ExpectedEffects::Brightnesses(expected) => {
                let EffectList {
                    entries, missing, ..
                } = effects.take_brightnesses();
                let lines = [led_lines(expected), led_lines(&by_led(entries))];
                compare("brightnesses of LEDs", &lines[0], &lines[1], missing)
            }
        }
    }
}

/// Returns a line of the log as it is compared.
fn expected_log_line(line: &str) -> Result<String> {
    let written = line.split_once(": ");
    let written = written.filter(|(level, _)| LEVELS.contains(level));
    let Some((level, text)) = written else {
        anyhow::bail!(
            "its line {line:?} has no level: write for example {:?}, with one of the levels {}",
            format!("info: {line}"),
            LEVELS.join(", ")
        );
    };
    Ok(log_line(level, text))
}

/// Describes how lists differ, and how many entries the tool has not recorded.
fn compare(what: &str, expected: &[String], entries: &[String], missing: usize) -> Vec<String> {
    let lines = difference(expected, entries);
    let mut differences = Vec::new();
    if !lines.is_empty() {
        let heading = format!("expected the {what} with `-`, got those with `+`");
        differences.push(block(&heading, &lines));
    }
    if missing > 0 {
        differences.push(not_recorded(missing));
    }
    differences
}

/// Names the texts that no line of the log contains.
fn absent(texts: &[String], lines: &[String], missing: usize) -> Vec<String> {
    let is_absent = |text: &&String| !lines.iter().any(|line| line.contains(text.as_str()));
    let absent = texts.iter().filter(is_absent);
    let mut differences: Vec<String> = absent
        .map(|text| format!("expected a line of the log that contains {text:?}"))
        .collect();
    if differences.is_empty() {
        return differences;
    }
    differences.push(if lines.is_empty() {
        "the plugin has logged nothing".to_owned()
    } else {
        block("the log", &listing(lines))
    });
    if missing > 0 {
        differences.push(not_recorded(missing));
    }
    differences
}

fn not_recorded(missing: usize) -> String {
    format!("there are {missing} more than this tool records: compare them after fewer steps")
}

fn by_led(entries: Vec<LedBrightness>) -> BTreeMap<String, Vec<u32>> {
    let mut leds: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (name, brightness) in entries {
        leds.entry(name).or_default().push(brightness);
    }
    leds
}

/// Returns a line for each LED that was given a brightness.
fn led_lines(leds: &BTreeMap<String, Vec<u32>>) -> Vec<String> {
    let leds = leds.iter().filter(|(_, values)| !values.is_empty());
    let lines = leds.map(|(name, values)| {
        let values: Vec<String> = values.iter().map(u32::to_string).collect();
        format!("{name}: {}", values.join(", "))
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
