//! Checks of texts in addition to their length (docs/spec/cloud.md#rule-tag-keys,
//! docs/spec/cloud.md#rule-variable-names).

use std::borrow::Cow;
use std::str::FromStr as _;

use crate::branding::Branding;
use crate::release_version::ReleaseVersion;

/// A requirement on a text in addition to its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Check {
    /// No line breaks.
    OneLine,
    /// No white space, and outside the platform's namespaces.
    TagKey,
    /// The name of a variable of a service that is not reserved by the platform.
    EnvironmentName,
    /// The name of a setting of a device: begins with the platform's prefix.
    ConfigName,
    /// A name that devices accept as a service of a compose file.
    ServiceName,
    /// Letters, digits, `_` and `-`.
    FleetName,
    /// 32 digits of a UUID of version 4.
    FleetUuid,
    /// 32 or 62 hexadecimal digits.
    DeviceUuid,
    /// Lower-case word characters, and not a word that the platform reserves.
    Handle,
    /// Converted to lower-case word characters; neither `root` nor a word that the platform reserves.
    Username,
    /// An email address; converted to lower case.
    Email,
    /// A semantic version.
    Version,
    /// Printable ASCII; converted to lower case.
    CpuId,
    /// Values separated by spaces; if there are too many, the last ones are dropped.
    SpaceSeparated,
}

impl Check {
    /// Returns the text as it is stored; `None` if it does not meet the requirement.
    #[must_use]
    pub fn apply<'a>(self, text: &'a str, branding: &Branding) -> Option<Cow<'a, str>> {
        match self {
            Check::Username => {
                return username(text).filter(|name| !branding.is_reserved_handle(name));
            }
            Check::Email => return email(text),
            Check::CpuId => return cpu_id(text),
            _ => {}
        }
        let holds = match self {
            Check::OneLine => !text.contains(['\r', '\n']),
            Check::TagKey => is_tag_key(text, branding),
            Check::EnvironmentName => is_environment_name(text, branding),
            Check::ConfigName => is_config_name(text, branding),
            Check::ServiceName => {
                text.starts_with(|first: char| first.is_ascii_alphanumeric())
                    && only(text, |it| it.is_ascii_alphanumeric() || "_.-".contains(it))
            }
            Check::FleetName => only(text, |it| it.is_ascii_alphanumeric() || "_-".contains(it)),
            Check::FleetUuid => is_uuid(text),
            Check::DeviceUuid => matches!(text.len(), 32 | 62) && only(text, is_hexadecimal),
            Check::Handle => {
                !text.is_empty()
                    && only(text, |it| {
                        it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_'
                    })
                    && !branding.is_reserved_handle(text)
            }
            Check::Version => ReleaseVersion::from_str(text).is_ok(),
            Check::SpaceSeparated => true,
            Check::Username | Check::Email | Check::CpuId => false,
        };
        holds.then_some(Cow::Borrowed(text))
    }

    /// Returns a regular expression, in the syntax of browsers, that finds invalid characters in a name, not reserved
    /// prefixes or words. User interfaces use it for the check that [`Check::apply`] repeats.
    #[must_use]
    pub const fn wrong_pattern(self) -> Option<&'static str> {
        match self {
            Check::EnvironmentName => Some(r"^\d|\W"),
            Check::ConfigName => Some(r"^\d|[^A-Za-z0-9_:]|^:"),
            _ => None,
        }
    }

    /// Describes the requirement in words: "… with …".
    #[must_use]
    pub fn requirement(self, branding: &Branding) -> String {
        let prefixes = || or(branding.env_prefixes().map(|it| format!("`{it}`")));
        match self {
            Check::OneLine => "text without line ends".into(),
            Check::TagKey => format!(
                "a key without white space that does not begin with {}",
                or(branding.label_namespaces().map(|it| format!("`{it}.`")))
            ),
            Check::EnvironmentName => format!(
                "a name of letters, digits and `_` that begins with neither a digit nor {}, and is not {}",
                prefixes(),
                or(branding.reserved_variables().map(|it| format!("`{it}`")))
            ),
            Check::ConfigName => format!(
                "a name of letters, digits, `_` and `:` that begins with {}",
                prefixes()
            ),
            Check::ServiceName => {
                "a name of letters, digits, `_`, `.` and `-` that begins with a letter or digit"
                    .into()
            }
            Check::FleetName => "a name of letters, digits, `_` and `-`".into(),
            Check::FleetUuid => {
                "the 32 lower-case hexadecimal digits of a UUID of version 4".into()
            }
            Check::DeviceUuid => "32 or 62 lower-case hexadecimal digits".into(),
            Check::Handle => format!(
                "a handle of lower-case letters, digits and `_`, and not {}",
                or(branding.reserved_handles().map(|it| format!("`{it}`")))
            ),
            Check::Username => format!(
                "a name with a letter or digit in it, and not {}",
                or(std::iter::once("root".to_owned())
                    .chain(branding.reserved_handles())
                    .map(|it| format!("`{it}`")))
            ),
            Check::Email => "an address such as `name@example.com`".into(),
            Check::Version => "a semantic version such as `1.2.3-beta`".into(),
            Check::CpuId => "printable ASCII characters".into(),
            Check::SpaceSeparated => "values with spaces between them".into(),
        }
    }
}

fn only(text: &str, allowed: impl Fn(char) -> bool) -> bool {
    text.chars().all(allowed)
}

fn is_hexadecimal(one: char) -> bool {
    matches!(one, '0'..='9' | 'a'..='f')
}

fn is_uuid(text: &str) -> bool {
    text.len() == 32
        && only(text, is_hexadecimal)
        && text.as_bytes().get(12) == Some(&b'4')
        && matches!(text.as_bytes().get(16), Some(b'8' | b'9' | b'a' | b'b'))
}

fn is_tag_key(text: &str, branding: &Branding) -> bool {
    let is_ours = |namespace: &str| {
        text.strip_prefix(namespace)
            .is_some_and(|rest| rest.starts_with('.'))
    };
    !text.is_empty()
        && !text.contains(char::is_whitespace)
        && !branding.label_namespaces().any(is_ours)
}

fn is_environment_name(text: &str, branding: &Branding) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && only(text, |it| it.is_ascii_alphanumeric() || it == '_')
        && !branding.env_prefixes().any(|it| text.starts_with(it))
        && !branding.reserved_variables().any(|it| it == text)
}

fn is_config_name(text: &str, branding: &Branding) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && only(text, |it| it.is_ascii_alphanumeric() || "_:".contains(it))
        && branding.env_prefixes().any(|it| text.starts_with(it))
}

/// Replaces runs of characters that are not word characters with one `_`, and lower-cases letters
/// (docs/spec/cloud.md#model-people).
fn username(text: &str) -> Option<Cow<'_, str>> {
    let mut name = String::with_capacity(text.len());
    let mut replaced = false;
    for one in text.chars() {
        if one.is_ascii_alphanumeric() || one == '_' {
            name.push(one.to_ascii_lowercase());
            replaced = false;
        } else if !replaced {
            name.push('_');
            replaced = true;
        }
    }
    let says_something = name.contains(|it: char| it.is_ascii_alphanumeric());
    (says_something && name != "root").then_some(Cow::Owned(name))
}

fn email(text: &str) -> Option<Cow<'_, str>> {
    let (name, domain) = text.rsplit_once('@')?;
    let blank = |it: char| it.is_whitespace() || it.is_control();
    let holds = !name.is_empty()
        && !domain.is_empty()
        && !text.contains(blank)
        && !domain.starts_with('.')
        && !domain.ends_with('.');
    holds.then(|| Cow::Owned(text.to_lowercase()))
}

fn cpu_id(text: &str) -> Option<Cow<'_, str>> {
    let printable = |it: char| matches!(it, ' '..='~');
    only(text, printable).then(|| Cow::Owned(text.to_ascii_lowercase()))
}

/// Joins words: `a`, `b` or `c`.
pub(crate) fn or(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    let last = words.pop().unwrap_or_default();
    if words.is_empty() {
        last
    } else {
        format!("{} or {last}", words.join(", "))
    }
}
