//! The version of a release, as text and in parts (docs/spec/cloud.md#rule-finalize,
//! docs/spec/cloud.md#rule-raw-version).

/// The parts of `1.2.3-beta+linux.rev4`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReleaseVersion {
    /// 1
    pub major: i64,
    /// 2
    pub minor: i64,
    /// 3
    pub patch: i64,
    /// `beta`; empty if there is none.
    pub prerelease: String,
    /// `linux.rev4`; empty if there is none.
    pub build: String,
}

/// A text that is not a semantic version, or contains a number that is too large.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a semantic version, such as `1.2.3-beta+linux`")]
pub struct ReleaseVersionError {
    /// The given text, shortened to fit a message.
    pub given: String,
}

impl std::str::FromStr for ReleaseVersion {
    type Err = ReleaseVersionError;

    fn from_str(text: &str) -> Result<Self, ReleaseVersionError> {
        let invalid = || ReleaseVersionError {
            given: text.chars().take(100).collect(),
        };
        let version = semver::Version::parse(text).map_err(|_| invalid())?;
        let number = |number: u64| i64::try_from(number).map_err(|_| invalid());
        Ok(ReleaseVersion {
            major: number(version.major)?,
            minor: number(version.minor)?,
            patch: number(version.patch)?,
            prerelease: version.pre.as_str().to_owned(),
            build: version.build.as_str().to_owned(),
        })
    }
}

impl std::fmt::Display for ReleaseVersion {
    /// Writes the value of the field `semver`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

impl ReleaseVersion {
    /// Returns the number that `revN` in the build part requests: the release must get exactly this one.
    #[must_use]
    pub fn requested_revision(&self) -> Option<i64> {
        self.build.split('.').find_map(|part| {
            let digits = part.strip_prefix("rev")?;
            digits.parse().ok().filter(|_| !digits.starts_with('+'))
        })
    }
}

/// Splits `2.54.2+rev1 (prod)`, the form in which old devices report their system, into the version and the variant, if
/// it has one (docs/spec/cloud.md#model-device).
#[must_use]
pub fn split_os_version(reported: &str) -> (&str, Option<&'static str>) {
    let Some((version, variant)) = reported
        .trim_end()
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('))
    else {
        return (reported, None);
    };
    let word = ["prod", "dev"].into_iter().find(|word| *word == variant);
    match word {
        Some(variant) => (version.trim_end(), Some(variant)),
        None => (reported, None),
    }
}
