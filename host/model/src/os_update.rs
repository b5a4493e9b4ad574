//! The host's operating system in a target: a version and its location, in two variables
//! (docs/spec/device.md#os-update-variables).

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::{IdError, OsVersion};

/// The variable for the version.
pub const OS_VERSION: &str = "SUPERVISOR_OS_VERSION";
/// The variable for its location.
pub const OS_BUNDLE: &str = "SUPERVISOR_OS_BUNDLE";

/// The longest location of a version, in bytes.
const MAX_BUNDLE: usize = 2048;

/// The version of the operating system that a target requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredOs {
    /// The version, as its maker calls it.
    pub version: OsVersion,
    /// Its location.
    pub bundle: OsBundle,
}

/// The location of a version of the operating system: an `https://` or `http://` address, or an
/// absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, derive_more::Display)]
pub struct OsBundle(String);

impl OsBundle {
    /// Returns the text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it is downloaded without TLS.
    #[must_use]
    pub fn is_plain_http(&self) -> bool {
        self.0.starts_with("http://")
    }
}

impl FromStr for OsBundle {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        if is_bundle(text) {
            Ok(OsBundle(text.to_owned()))
        } else {
            Err(IdError {
                value: text.to_owned(),
                expected: EXPECTED_BUNDLE,
            })
        }
    }
}

/// The expected form of a bundle, with its article.
pub(crate) const EXPECTED_BUNDLE: &str = "an `https://` address or an absolute path, of up to 2048 visible ASCII characters without quotes";

fn is_bundle(text: &str) -> bool {
    // Neither a line of a log nor a program that receives it mistakes one of these for something
    // else.
    let is_plain =
        |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '\\' | '<' | '>');
    if text.len() > MAX_BUNDLE || !text.chars().all(is_plain) {
        return false;
    }
    let address = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    match address {
        Some(address) => {
            let end = address.find(['/', '?', '#']).unwrap_or(address.len());
            let (authority, path) = address.split_at(end);
            let host = authority.rsplit('@').next().unwrap_or_default();
            host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && path.len() > 1
        }
        None => {
            text.starts_with('/') && text.len() > 1 && !text.split('/').any(|part| part == "..")
        }
    }
}

impl DesiredOs {
    /// Reads the requested version from these variables; `None` unless both are present and
    /// readable.
    #[must_use]
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Option<Self> {
        Some(DesiredOs {
            version: variables.get(OS_VERSION)?.parse().ok()?,
            bundle: variables.get(OS_BUNDLE)?.parse().ok()?,
        })
    }

    /// Returns a problem with the combination of these variables.
    pub(crate) fn problem(variables: &BTreeMap<String, String>) -> Option<String> {
        let is_set = |key: &str| variables.get(key).is_some_and(|value| !value.is_empty());
        let (set, missing) = match (is_set(OS_VERSION), is_set(OS_BUNDLE)) {
            (true, false) => (OS_VERSION, OS_BUNDLE),
            (false, true) => (OS_BUNDLE, OS_VERSION),
            _ => return None,
        };
        Some(format!(
            "`{set}` is set without `{missing}`: the operating system is not updated before both are set"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_variables::problems;

    fn variables(version: &str, bundle: &str) -> BTreeMap<String, String> {
        let pairs = [(OS_VERSION, version), (OS_BUNDLE, bundle)];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        pairs
            .into_iter()
            .filter(|(_, value)| value != "-")
            .collect()
    }

    #[test]
    fn a_version_and_its_bundle_are_required_together() {
        let both = variables("2026.3.1", "https://os.acme.example/2026.3.1.raucb");
        let desired = DesiredOs::from_variables(&both).unwrap();
        assert_eq!(desired.version.as_str(), "2026.3.1");
        assert!(!desired.bundle.is_plain_http());
        assert_eq!(problems(&both), [""; 0]);
        for (version, bundle, expected) in [
            (
                "2026.3.1",
                "-",
                "`SUPERVISOR_OS_VERSION` is set without `SUPERVISOR_OS_BUNDLE`: the operating system is not updated before both are set",
            ),
            (
                "-",
                "/data/2026.3.1.raucb",
                "`SUPERVISOR_OS_BUNDLE` is set without `SUPERVISOR_OS_VERSION`: the operating system is not updated before both are set",
            ),
        ] {
            let one = variables(version, bundle);
            assert_eq!(DesiredOs::from_variables(&one), None);
            assert_eq!(problems(&one), [expected]);
        }
        assert_eq!(DesiredOs::from_variables(&variables("", "")), None);
        assert_eq!(problems(&variables("", "")), [""; 0]);
    }

    #[test]
    fn invalid_sources_and_versions_are_refused() {
        for bundle in [
            "https://os.acme.example/a.raucb",
            "https://user:word@os.acme.example:8443/a.raucb?token=x%20y",
            "https://[2001:db8::1]/a",
            "http://10.0.0.1/a.raucb",
            "/data/a.raucb",
        ] {
            let desired = DesiredOs::from_variables(&variables("1", bundle)).unwrap();
            assert_eq!(desired.bundle.as_str(), bundle);
            assert_eq!(desired.bundle.is_plain_http(), bundle.starts_with("http:"));
        }
        let long = format!("https://os.acme.example/{}", "a".repeat(10 << 10));
        for bundle in [
            "file:///etc/shadow",
            "FILE:///etc/shadow",
            "ftp://os.acme.example/a",
            "HTTPS://os.acme.example/a",
            "os.acme.example/a",
            "https://",
            "https:///a",
            "https://os.acme.example",
            "https://user@/a",
            "https://-x/a",
            "https://os.acme.example/a b",
            "https://os.acme.example/a\nb",
            "https://os.acme.example/\u{7f}",
            "https://os.acme.example/\u{202e}",
            "https://os.acme.example/'a",
            "/",
            "/data/../etc/shadow",
            "relative",
            "--option",
            &long,
        ] {
            let pair = variables("1", bundle);
            assert_eq!(DesiredOs::from_variables(&pair), None, "{bundle:?}");
            let problems = problems(&pair).join(" ");
            assert!(
                problems.contains("`SUPERVISOR_OS_BUNDLE` is `"),
                "{problems}"
            );
            assert!(problems.len() < 600, "{problems}");
            assert!(!problems.contains('\n'), "{problems}");
        }
        for version in [" ", "1 2", "-1", "1\n", "\u{ff11}", &"1".repeat(129)] {
            let pair = variables(version, "/data/a");
            assert_eq!(DesiredOs::from_variables(&pair), None, "{version:?}");
            let problems = problems(&pair).join(" ");
            assert!(
                problems.contains("`SUPERVISOR_OS_VERSION` is `"),
                "{problems}"
            );
        }
    }
}
