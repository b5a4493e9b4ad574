//! Names and numbers, each with its own type: the API has an app's number and its uuid, an image's
//! number, its reference and its engine id, and code that mixes two of them up does not compile.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error: a text is not a valid name or number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not {expected}")]
pub struct IdError {
    /// The invalid text.
    pub value: String,
    /// What was expected, with its article.
    pub expected: &'static str,
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(derive_more::Display, JsonSchema)]
        #[schemars(inline)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                // `parse` would also accept a leading plus sign.
                if !text.starts_with('+') && let Ok(number) = text.parse() {
                    return Ok($name(number));
                }
                Err(IdError { value: text.to_owned(), expected: $expected })
            }
        }
    };
}

number!(/** A fleet's number (`PLATFORM_APP_ID`). */ AppId, "an app id");
number!(/** A service's number in its fleet. */ ServiceId, "a service id");
number!(/** A release's number. */ ReleaseId, "a release id");
number!(/** The number that the cloud gave one build of a service's image. */ ImageId, "an image id");

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[derive(derive_more::Display, derive_more::Into, JsonSchema)]
        #[schemars(inline)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                let valid: fn(&str) -> bool = $valid;
                if valid(&text) {
                    Ok($name(text))
                } else {
                    Err(IdError { value: text, expected: $expected })
                }
            }
        }
    };
}

fn is_short(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && !text.contains(['\n', '\0'])
}

/// Returns whether a text is `[a-zA-Z0-9][a-zA-Z0-9_.-]*`, at most 255 characters
/// (docs/spec/device.md#target-cloud).
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 255
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// Returns whether a text fits into a log line and a file's name.
fn is_os_version(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_' | '~'))
}

text!(
    /// A fleet's uuid; in local mode the app's number in digits (docs/spec/device.md#target-local). It becomes part
    /// of engine names, so it is held to the characters of a name.
    AppUuid, "an app uuid", is_name
);
text!(
    /// A service's name within its app.
    ServiceName, "a service name (letters, digits, `_`, `.` and `-`, beginning with a letter or digit)",
    is_name
);
text!(
    /// The hash that names a release. It becomes part of container names.
    Commit, "a commit (letters, digits, `_`, `.` and `-`)", is_name
);
text!(
    /// The device's own uuid: 32 lower-case hexadecimal digits.
    DeviceUuid, "a device uuid (32 lower-case hexadecimal digits)",
    |text| text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
);
text!(
    /// A version of the host's operating system, as its maker calls it.
    OsVersion,
    "a version of an operating system (1 to 128 letters, digits and `.`, `-`, `+`, `_` or `~`, beginning with a letter or digit)",
    is_os_version
);
text!(
    /// What the kernel calls the time from one boot to the next. Clocks may jump, this does not come twice.
    BootId, "the id of a boot", is_short
);
text!(
    /// A container's id, as its engine gives it.
    ContainerId, "a container id", is_short
);
text!(
    /// An image's id in its engine, `sha256:` and hexadecimal digits.
    EngineImageId, "an engine's image id", is_short
);
text!(
    /// An image reference, normalized: `repository:tag` (tag `latest` if none was given),
    /// `repository@digest` (a tag beside the digest is dropped), or `file:PATH` for a WebAssembly
    /// component on the device itself.
    ImageRef, "an image reference", |text| is_short(text) && !text.contains(char::is_whitespace)
);

impl DeviceUuid {
    /// Returns the first 7 digits, the default hostname (docs/spec/device.md#host-config-patch).
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..7]
    }
}

impl ImageRef {
    /// Parses and normalizes a reference from a target state (docs/spec/device.md#target-image).
    ///
    /// # Errors
    /// [`IdError`] if the text is empty, longer than 255 characters or contains white space.
    pub fn normalized(text: &str) -> Result<Self, IdError> {
        let reference = ImageRef::from_str(text)?;
        if reference.is_file() {
            return Ok(reference);
        }
        if let Some((name, digest)) = text.split_once('@') {
            return Ok(ImageRef(format!("{}@{digest}", without_tag(name))));
        }
        if without_tag(text).len() == text.len() {
            return Ok(ImageRef(format!("{text}:latest")));
        }
        Ok(reference)
    }

    /// Returns whether this names a component file on the device rather than an image in a
    /// registry.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.0.starts_with("file:")
    }
}

/// Returns the part before the tag. Only a colon after the last slash belongs to a tag; before it,
/// it belongs to a registry's port.
fn without_tag(name: &str) -> &str {
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    name[last..]
        .find(':')
        .map_or(name, |colon| &name[..last + colon])
}

/// A service of an app: the key for steps, locks and back-offs.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, derive_more::Display,
)]
#[display("{app}/{service}")]
pub struct ServiceKey {
    /// The app, by its uuid: the cloud may assign numbers again.
    pub app: AppUuid,
    /// The service's name, unique in the app.
    pub service: ServiceName,
}

/// A key to the device's API: 32 lower-case hexadecimal digits. It cannot be shown by accident:
/// `Debug` hides it, there is no `Display`, and only the API's constant-time check compares keys.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key that was stored or received; any text may be offered as a key.
    #[must_use]
    pub fn from_text(text: impl Into<String>) -> Self {
        ApiKey(text.into())
    }

    /// Returns the key in clear, for the one place that must hand it out.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_references_are_normalised() {
        for (given, stored) in [
            ("busybox", "busybox:latest"),
            ("busybox:1.35", "busybox:1.35"),
            ("127.0.0.1:5000/shop/web", "127.0.0.1:5000/shop/web:latest"),
            ("127.0.0.1:5000/shop/web:2", "127.0.0.1:5000/shop/web:2"),
            ("r.io/web:2@sha256:ab", "r.io/web@sha256:ab"),
            ("r.io:443/web@sha256:ab", "r.io:443/web@sha256:ab"),
            ("file:/srv/web.wasm", "file:/srv/web.wasm"),
        ] {
            assert_eq!(ImageRef::normalized(given).unwrap().as_str(), stored);
        }
        for refused in ["", "two words", "line\nbreak"] {
            assert!(ImageRef::normalized(refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn numbers_take_digits_alone() {
        assert_eq!("12".parse(), Ok(AppId(12)));
        for refused in ["", "+1", "-1", "1.0", "0x1", " 1"] {
            assert!(refused.parse::<AppId>().is_err(), "{refused:?}");
        }
    }

    #[test]
    fn keys_do_not_print_themselves() {
        assert_eq!(format!("{:?}", ApiKey::from_text("secret")), "ApiKey(…)");
    }
}
