//! The hardware on the GPIO lines and I2C buses of a test's device, with the names in its `device.toml`.
//!
//! ```toml
//! [[gpio]]
//! drive = { door = true }                     # what is connected to the lines switches them
//! expect = { relay = false }                  # and then they are so
//!
//! [[i2c]]
//! set = { thermometer = [0xf5, 0x80] }        # the first registers of the chips
//! expect = { expander = [0x00, 0x01] }        # and then these are so
//!
//! [[request]]
//! post = "/v3/door/open"
//! edges = [{ line = "door", on = true }]      # each once the plugin waits for edges of its line
//! answer = { status = 200 }
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use plugin_test_host::RunningHost;
use serde::Deserialize;

use crate::device_file::{I2C_ADDRESS, i2c_bus};

/// Lines to be switched, and the states that lines must have afterwards.
#[derive(derive_more::Display)]
#[display("gpio")]
pub(crate) struct TestLines {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    lines: LinesToml,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinesToml {
    #[serde(default)]
    drive: BTreeMap<String, bool>,
    #[serde(default)]
    expect: BTreeMap<String, bool>,
}

impl TestLines {
    pub(super) fn new(lines: LinesToml, line: usize) -> Result<TestLines> {
        ensure!(
            !lines.drive.is_empty() || !lines.expect.is_empty(),
            "it must have `drive` or `expect`"
        );
        Ok(TestLines { line, lines })
    }

    /// Switches the lines, and reports those that are not as expected.
    pub(crate) fn differences(&self, host: &RunningHost) -> Vec<String> {
        let gpio = host.gpio();
        let drive = self.lines.drive.iter();
        let missing = drive.filter(|(line, on)| !gpio.drive(line, **on));
        let mut differences: Vec<String> = missing.map(|(line, _)| no_line(line)).collect();
        for (line, on) in &self.lines.expect {
            match gpio.is_on(line) {
                Some(is_on) if is_on == *on => {}
                Some(_) => differences.push(format!(
                    "expected the line {line} to be {}, but it is {}",
                    on_or_off(*on),
                    on_or_off(!on)
                )),
                None => differences.push(no_line(line)),
            }
        }
        differences
    }
}

fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn no_line(line: &str) -> String {
    format!("the device has no line {line}: its file has none in [gpio]")
}

/// Registers to be set, and the values that registers must have afterwards.
#[derive(derive_more::Display)]
#[display("i2c")]
pub(crate) struct TestChips {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    chips: ChipsToml,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChipsToml {
    #[serde(default)]
    set: BTreeMap<String, Vec<u8>>,
    #[serde(default)]
    expect: BTreeMap<String, Vec<u8>>,
}

impl TestChips {
    pub(super) fn new(chips: ChipsToml, line: usize) -> Result<TestChips> {
        ensure!(
            !chips.set.is_empty() || !chips.expect.is_empty(),
            "it must have `set` or `expect`"
        );
        Ok(TestChips { line, chips })
    }

    /// Sets the registers, and reports those that are not as expected.
    pub(crate) fn differences(&self, host: &RunningHost) -> Vec<String> {
        let i2c = host.i2c();
        let set = self.chips.set.iter();
        let missing =
            set.filter(|(chip, registers)| !i2c.set(&i2c_bus(chip), I2C_ADDRESS, 0, registers));
        let mut differences: Vec<String> = missing.map(|(chip, _)| no_chip(chip)).collect();
        for (chip, expected) in &self.chips.expect {
            let registers = (0..=u8::MAX).take(expected.len());
            let registers = registers.map(|at| i2c.register(&i2c_bus(chip), I2C_ADDRESS, at));
            match registers.collect::<Option<Vec<u8>>>() {
                Some(registers) if registers == *expected => {}
                Some(registers) => differences.push(format!(
                    "expected the first registers of {chip} to be {}, but they are {}",
                    in_hexadecimal(expected),
                    in_hexadecimal(&registers)
                )),
                None => differences.push(no_chip(chip)),
            }
        }
        differences
    }
}

fn in_hexadecimal(registers: &[u8]) -> String {
    let registers: Vec<String> = registers.iter().map(|it| format!("{it:#04x}")).collect();
    registers.join(", ")
}

fn no_chip(chip: &str) -> String {
    format!("the device has no chip {chip}: its file has none in [i2c]")
}

/// Changes of lines during a call of the plugin, in their order.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Edges(Vec<EdgeToml>);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeToml {
    line: String,
    on: bool,
}

impl Edges {
    /// Waits for a call, and switches each line once the plugin waits for its edges. If it never waits, that is a
    /// difference.
    pub(super) async fn during<T>(
        &self,
        host: &RunningHost,
        call: impl Future<Output = T>,
    ) -> (T, Option<String>) {
        let mut call = std::pin::pin!(call);
        let mut driven = 0;
        let early = tokio::select! {
            biased;
            () = self.drive(host, &mut driven) => None,
            outcome = &mut call => Some(outcome),
        };
        let outcome = match early {
            Some(outcome) => outcome,
            None => call.await,
        };
        let missed = self
            .0
            .get(driven)
            .map(|edge| match host.gpio().is_on(&edge.line) {
                Some(_) => format!(
                    "expected the plugin to wait for an edge of the line {}, but it did not",
                    edge.line
                ),
                None => no_line(&edge.line),
            });
        (outcome, missed)
    }

    /// Switches the lines and counts them in `driven`. Waits forever for a line that does not exist.
    async fn drive(&self, host: &RunningHost, driven: &mut usize) {
        for edge in &self.0 {
            while !host.gpio().is_waited_for(&edge.line) || !host.gpio().drive(&edge.line, edge.on)
            {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            *driven += 1;
        }
    }
}

/// The interval at which the lines that the plugin waits for are checked.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
