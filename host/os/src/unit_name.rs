//! Names of systemd's units.

use std::str::FromStr;

/// The name of one unit, such as `openvpn.service`.
// invariant: `LONGEST` bytes at most, of the characters that systemd allows, with a type at the end and
// something before it; never a pattern, a path or an option
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub struct UnitName(String);

/// The error for a text that is not the name of a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of a unit, such as `openvpn.service`")]
pub struct InvalidUnitName(pub String);

/// systemd's own limit, in bytes.
const LONGEST: usize = 255;

/// The types that units have (systemd.unit(5)).
const TYPES: [&str; 11] = [
    "service",
    "socket",
    "device",
    "mount",
    "automount",
    "swap",
    "target",
    "path",
    "timer",
    "slice",
    "scope",
];

impl UnitName {
    /// Returns the name with its type at the end, as systemd expects it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for UnitName {
    type Err = InvalidUnitName;

    fn from_str(text: &str) -> Result<Self, InvalidUnitName> {
        let is_valid = text.len() <= LONGEST
            && !text.starts_with(['-', '.', '@'])
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b))
            && text
                .rsplit_once('.')
                .is_some_and(|(_, kind)| TYPES.contains(&kind));
        if is_valid {
            Ok(UnitName(text.to_owned()))
        } else {
            Err(InvalidUnitName(text.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_systemd_units_are_accepted() {
        for name in [
            "openvpn.service",
            "openvpn@office.service",
            "dev-disk-by\\x2duuid-1.swap",
            "a.b.c.timer",
            "user-1000.slice",
        ] {
            assert_eq!(name.parse::<UnitName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn patterns_paths_options_and_other_text_are_refused() {
        let long = format!("{}.service", "a".repeat(248));
        for text in [
            "",
            ".service",
            "@.service",
            "openvpn",
            "openvpn.conf",
            "*.service",
            "a?.service",
            "[a].service",
            "-x.service",
            "--root=/.service",
            "../a.service",
            "a/b.service",
            "a b.service",
            "a\n.service",
            "a\0.service",
            "ä.service",
            &long,
        ] {
            assert_eq!(
                text.parse::<UnitName>(),
                Err(InvalidUnitName(text.to_owned()))
            );
        }
    }
}
