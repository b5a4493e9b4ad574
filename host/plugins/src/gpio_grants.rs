//! The GPIO lines that the policy lets a plugin use, under names defined in the policy.
//!
//! ```toml
//! gpio = [
//!     { name = "relay", chip = "gpiochip0", line = 17, direction = "out" },
//!     { name = "door", chip = "pinctrl-bcm2711", line = "GPIO27", direction = "in", bias = "pull-up", active_low = true },
//! ]
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use os::{Bias, Drive, LineAddress, LineId, LineMode};
use serde::Deserialize;

use crate::hardware_names::{check_kernel_name, check_name};

/// The most lines for one plugin.
const LINES: usize = 64;
/// The longest time for which a line must stay at a level, in milliseconds.
const DEBOUNCE: u32 = 1000;

/// Lines with their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct GpioGrants(Vec<GpioGrant>);

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GpioGrant {
    /// The plugin's name for it.
    pub(crate) name: String,
    /// The chip's name or its label.
    chip: String,
    /// The line's number on the chip, or its name.
    line: LineId,
    pub(crate) direction: Direction,
    /// Whether the line is on when its voltage is low.
    #[serde(default)]
    pub(crate) active_low: bool,
    /// For an input: its pull resistor; without this, the board's own setting stays.
    bias: Option<Bias>,
    /// For an input: how long it must stay at a level before that counts.
    debounce_ms: Option<u32>,
    /// For an output; push-pull without this.
    drive: Option<Drive>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Direction {
    In,
    Out,
}

impl GpioGrant {
    pub(crate) fn address(&self) -> LineAddress {
        LineAddress {
            chip: self.chip.clone(),
            line: self.line.clone(),
        }
    }

    /// Returns the mode for requesting an input.
    pub(crate) fn as_input(&self) -> LineMode {
        LineMode::Input {
            bias: self.bias,
            debounce: self
                .debounce_ms
                .map(|period| Duration::from_millis(period.into())),
        }
    }

    /// Returns the mode for requesting an output that starts in this state.
    pub(crate) fn as_output(&self, on: bool) -> LineMode {
        LineMode::Output {
            drive: self.drive.unwrap_or_default(),
            on,
        }
    }

    fn check(&self) -> Result<(), String> {
        check_name("gpio", "line", &self.name)?;
        let name = &self.name;
        check_kernel_name("gpio", "chip", &self.chip)?;
        if self.chip.starts_with("/dev/") {
            return Err(format!(
                "`gpio` has the chip `{}`: write its name, such as `gpiochip0`, or its label, such as `pinctrl-bcm2711`",
                self.chip
            ));
        }
        if let LineId::Name(line) = &self.line {
            check_kernel_name("gpio", "line", line)?;
        }
        if let Some(period) = self.debounce_ms
            && !(1..=DEBOUNCE).contains(&period)
        {
            return Err(format!(
                "`gpio` has `debounce_ms` {period} for `{name}`: write 1 to {DEBOUNCE}"
            ));
        }
        match self.direction {
            Direction::In if self.drive.is_some() => Err(format!(
                "`gpio` has a `drive` for the input `{name}`: only an output is driven"
            )),
            Direction::Out if self.bias.is_some() || self.debounce_ms.is_some() => Err(format!(
                "`gpio` has a `bias` or a `debounce_ms` for the output `{name}`: only an input has them"
            )),
            _ => Ok(()),
        }
    }
}

impl GpioGrants {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the line with the plugin's name for it.
    pub(crate) fn line(&self, name: &str) -> Option<&GpioGrant> {
        self.0.iter().find(|grant| grant.name == name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &GpioGrant> {
        self.0.iter()
    }

    /// Checks the grants as written in the policy.
    ///
    /// # Errors
    /// What cannot be granted, and what to write instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.0.len() > LINES {
            let number = self.0.len();
            return Err(format!(
                "`gpio` has {number} lines, but at most {LINES} are allowed"
            ));
        }
        let mut names = BTreeSet::new();
        for grant in &self.0 {
            grant.check()?;
            if !names.insert(&grant.name) {
                return Err(format!(
                    "`gpio` has two lines with the name `{}`",
                    grant.name
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(grants: &str) -> Result<(), String> {
        let table: toml::Table = format!("gpio = [{grants}]").parse().unwrap();
        let grants: Result<GpioGrants, _> = table["gpio"].clone().try_into();
        grants.map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn valid_grants_are_accepted() {
        for grants in [
            "",
            r#"{ name = "relay", chip = "gpiochip0", line = 17, direction = "out" }"#,
            r#"{ name = "relay", chip = "gpiochip0", line = 17, direction = "out", drive = "open-drain", active_low = true }"#,
            r#"{ name = "a", chip = "/soc/gpio@7e200000", line = "GPIO27", direction = "in", bias = "pull-up", debounce_ms = 20 }"#,
            r#"{ name = "a", chip = "c", line = 0, direction = "in" }, { name = "b", chip = "c", line = 0, direction = "in" }"#,
        ] {
            assert_eq!(check(grants), Ok(()), "{grants}");
        }
    }

    #[test]
    fn invalid_grants_are_named() {
        for (grants, expected) in [
            (
                r#"{ name = "", chip = "c", line = 0, direction = "in" }"#,
                "`gpio` has a line with the name \"\"",
            ),
            (
                r#"{ name = "a\u0007", chip = "c", line = 0, direction = "in" }"#,
                "`gpio` has a line with the name \"a\\u{7}\"",
            ),
            (
                r#"{ name = "a", chip = "/dev/mem", line = 0, direction = "in" }"#,
                "the chip `/dev/mem`: write its name, such as `gpiochip0`",
            ),
            (
                r#"{ name = "a", chip = "/dev/gpiochip0", line = 0, direction = "in" }"#,
                "the chip `/dev/gpiochip0`: write its name, such as `gpiochip0`",
            ),
            (
                r#"{ name = "a", chip = "c\n", line = 0, direction = "in" }"#,
                "the chip \"c\\n\"",
            ),
            (
                r#"{ name = "a", chip = "c", line = "", direction = "in" }"#,
                "the line \"\"",
            ),
            (
                r#"{ name = "a", chip = "c", line = -1, direction = "in" }"#,
                "did not match",
            ),
            (
                r#"{ name = "a", chip = "c", line = 0 }"#,
                "missing field `direction`",
            ),
            (
                r#"{ name = "a", chip = "c", line = 0, direction = "in", drive = "open-drain" }"#,
                "a `drive` for the input `a`",
            ),
            (
                r#"{ name = "a", chip = "c", line = 0, direction = "out", bias = "pull-up" }"#,
                "for the output `a`",
            ),
            (
                r#"{ name = "a", chip = "c", line = 0, direction = "in", debounce_ms = 1001 }"#,
                "`debounce_ms` 1001 for `a`: write 1 to 1000",
            ),
            (
                r#"{ name = "a", chip = "c", line = 0, direction = "in" }, { name = "a", chip = "c", line = 1, direction = "in" }"#,
                "two lines with the name `a`",
            ),
        ] {
            let error = check(grants).unwrap_err();
            assert!(error.contains(expected), "{grants}: {error}");
        }
        let line = r#"{ name = "a", chip = "c", line = 0, direction = "in" },"#;
        let error = check(&line.repeat(LINES + 1)).unwrap_err();
        assert!(
            error.contains("65 lines, but at most 64 are allowed"),
            "{error}"
        );
    }
}
