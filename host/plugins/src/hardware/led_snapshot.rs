//! What an LED shows: its brightness, or the kernel's trigger that drives it.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The most that is read of a file; the list of triggers is the longest.
const FILE: u64 = 64 << 10;
/// Files that only exist with some triggers and would be lost with them.
const TIMING: [&str; 2] = ["delay_on", "delay_off"];

/// The state of an LED before a plugin took it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LedSnapshot {
    brightness: u32,
    /// The kernel's trigger, or `none`; `None` if the LED has no such file.
    trigger: Option<String>,
    /// The trigger's own settings.
    timing: Vec<(String, String)>,
}

impl LedSnapshot {
    pub(crate) fn read(folder: &Path) -> io::Result<LedSnapshot> {
        let trigger = match text(&folder.join("trigger")) {
            Ok(list) => Some(chosen(&list).to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let timing = TIMING
            .iter()
            .filter_map(|name| {
                Some((
                    (*name).to_owned(),
                    text(&folder.join(name)).ok()?.trim().to_owned(),
                ))
            })
            .collect();
        Ok(LedSnapshot {
            brightness: number(&folder.join("brightness"))?,
            trigger,
            timing,
        })
    }

    /// Returns whether both states, once restored, show the same. A trigger of the kernel changes the brightness all the
    /// time, so it does not matter what it was at the moment.
    pub(crate) fn shows_the_same_as(&self, other: &LedSnapshot) -> bool {
        let has_trigger = self.trigger.as_deref().is_some_and(|name| name != "none");
        self.trigger == other.trigger
            && self.timing == other.timing
            && (has_trigger || self.brightness == other.brightness)
    }

    /// Restores the state. The trigger comes last, since it drives the brightness from then on.
    pub(crate) fn restore(&self, folder: &Path) -> io::Result<()> {
        fs::write(folder.join("brightness"), self.brightness.to_string())?;
        if let Some(trigger) = &self.trigger {
            fs::write(folder.join("trigger"), trigger)?;
            for (name, value) in &self.timing {
                fs::write(folder.join(name), value)?;
            }
        }
        Ok(())
    }
}

/// Returns the word in brackets, as in `none [mmc0] timer`. The kernel always has one; elsewhere the word may be the
/// only one.
fn chosen(list: &str) -> &str {
    let mut words = list.split_whitespace();
    let bracketed = words
        .clone()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed.or_else(|| words.next()).unwrap_or("none")
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(FILE).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the number in a file of an LED.
pub(crate) fn number(path: &Path) -> io::Result<u32> {
    text(path)?
        .trim()
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_and_not_the_brightness_of_the_moment_is_what_an_led_shows() {
        let snapshot = |brightness, trigger: Option<&str>, delay_on: &str| LedSnapshot {
            brightness,
            trigger: trigger.map(str::to_owned),
            timing: vec![("delay_on".to_owned(), delay_on.to_owned())],
        };
        for (one, other, expected) in [
            ((7, None, "1"), (7, None, "1"), true),
            ((7, None, "1"), (8, None, "1"), false),
            ((7, Some("none"), "1"), (7, Some("none"), "1"), true),
            ((7, Some("none"), "1"), (8, Some("none"), "1"), false),
            ((7, Some("mmc0"), "1"), (8, Some("mmc0"), "1"), true),
            ((7, Some("mmc0"), "1"), (7, Some("none"), "1"), false),
            ((7, Some("none"), "1"), (7, Some("mmc0"), "1"), false),
            ((7, Some("timer"), "1"), (7, Some("timer"), "2"), false),
        ] {
            let same = snapshot(one.0, one.1, one.2)
                .shows_the_same_as(&snapshot(other.0, other.1, other.2));
            assert_eq!(same, expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_trigger_in_brackets_is_the_chosen_one() {
        for (list, expected) in [
            ("none [mmc0] timer\n", "mmc0"),
            ("mmc0\n", "mmc0"),
            ("[none]", "none"),
            ("", "none"),
        ] {
            assert_eq!(chosen(list), expected);
        }
    }
}
