//! The limits that a manifest and a policy can set, in their written units.

use serde::{Deserialize, Serialize};

/// The range of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitRange {
    /// Its name in manifests and policies; the unit is part of it.
    pub key: &'static str,
    /// The unit and what is limited, in words.
    pub what: &'static str,
    /// The value for a plugin that does not set it.
    pub default: u32,
    /// The highest value that a manifest or a policy can set. The lowest is 1.
    pub most: u32,
}

/// A limit that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenLimit {
    /// Which limit.
    pub range: LimitRange,
    /// Its value.
    pub value: u32,
}

/// The reason why a limit cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// The value is outside its range.
    #[error("`{key}` is {value}, but must be 1 to {most}")]
    Range {
        /// Which limit.
        key: &'static str,
        /// The written value.
        value: u32,
        /// The largest possible value.
        most: u32,
    },
    /// There is no such limit.
    #[error("there is no limit `{key}`; the limits are {}", limit_names())]
    Unknown {
        /// The written key.
        key: String,
    },
}

macro_rules! limits {
    ($($(#[$doc:meta])* $key:ident: $what:literal, default $default:literal, most $most:literal;)*) => {
        /// The limits that a manifest or a policy sets.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct WrittenLimits {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<u32>,
            )*
        }

        /// All limits, in the order in which people see them.
        pub const LIMITS: &[LimitRange] = &[$(LimitRange {
            key: stringify!($key),
            what: $what,
            default: $default,
            most: $most,
        },)*];

        impl WrittenLimits {
            /// The limits of a plugin if neither its manifest nor the policy sets any.
            pub const DEFAULTS: WrittenLimits = WrittenLimits { $($key: Some($default),)* };

            fn values(&self) -> impl Iterator<Item = Option<u32>> {
                [$(self.$key,)*].into_iter()
            }

            fn values_mut(&mut self) -> impl Iterator<Item = &mut Option<u32>> {
                [$(&mut self.$key,)*].into_iter()
            }
        }
    };
}

limits! {
    /// The linear memory of a call.
    memory_mib: "MiB of memory per call", default 16, most 32;
    /// The CPU time of a call; time spent waiting does not count.
    cpu_ms: "ms of CPU time per call", default 1_000, most 60_000;
    /// The wall time until the answer begins.
    wall_ms: "ms until an answer begins", default 10_000, most 900_000;
    /// A request's body, and an answer's unless it is a stream.
    body_kib: "KiB per body", default 1_024, most 16_384;
    /// The number of simultaneous calls.
    concurrency: "calls at a time", default 8, most 16;
}

impl WrittenLimits {
    /// Returns the limits that are set.
    pub fn written(&self) -> impl Iterator<Item = WrittenLimit> {
        LIMITS
            .iter()
            .zip(self.values())
            .filter_map(|(range, value)| {
                Some(WrittenLimit {
                    range: *range,
                    value: value?,
                })
            })
    }

    /// Checks that each is within its range.
    ///
    /// # Errors
    /// [`LimitError::Range`] for the first that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        self.written().try_for_each(|limit| limit.check())
    }

    /// Sets the limit `key`.
    ///
    /// # Errors
    /// If there is no such limit, or the value is outside its range.
    pub fn set(&mut self, key: &str, value: u32) -> Result<(), LimitError> {
        let mut places = LIMITS.iter().zip(self.values_mut());
        let Some((range, place)) = places.find(|(range, _)| range.key == key) else {
            return Err(LimitError::Unknown {
                key: key.chars().take(40).collect(),
            });
        };
        WrittenLimit {
            range: *range,
            value,
        }
        .check()?;
        *place = Some(value);
        Ok(())
    }

    /// Returns the limits that exceed the defaults.
    pub fn beyond_defaults(&self) -> impl Iterator<Item = WrittenLimit> {
        self.written()
            .filter(|limit| limit.value > limit.range.default)
    }

    /// Returns these limits, lowered to the defaults if they exceed them.
    #[must_use]
    pub fn within_defaults(&self) -> WrittenLimits {
        let mut limits = self.clone();
        for (range, value) in LIMITS.iter().zip(limits.values_mut()) {
            *value = value.map(|value| value.min(range.default));
        }
        limits
    }

    /// Returns the limits in force for a plugin whose manifest sets these and whose policy sets none. A manifest by itself
    /// can only lower the defaults, except for plugins that the layout ships with.
    #[must_use]
    pub fn without_policy(&self) -> WrittenLimits {
        self.within_defaults().over(&WrittenLimits::DEFAULTS)
    }

    /// Returns these limits, and those of `others` for limits that are not set here.
    #[must_use]
    pub fn over(&self, others: &WrittenLimits) -> WrittenLimits {
        let mut limits = self.clone();
        for (value, other) in limits.values_mut().zip(others.values()) {
            *value = value.or(other);
        }
        limits
    }
}

impl WrittenLimit {
    fn check(self) -> Result<(), LimitError> {
        let LimitRange { key, most, .. } = self.range;
        if (1..=most).contains(&self.value) {
            return Ok(());
        }
        let value = self.value;
        Err(LimitError::Range { key, value, most })
    }
}

/// Lists the names of all limits, for messages.
#[must_use]
pub fn limit_names() -> String {
    let keys: Vec<String> = LIMITS
        .iter()
        .map(|range| format!("`{}`", range.key))
        .collect();
    keys.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> WrittenLimits {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn set_limits_replace_earlier_ones() {
        let limits = written("memory_mib = 8").over(&written("memory_mib = 4\ncpu_ms = 5"));
        assert_eq!(limits, written("memory_mib = 8\ncpu_ms = 5"));
    }

    #[test]
    fn an_unpinned_file_asks_for_less_than_the_defaults_or_for_them() {
        let limits = written("memory_mib = 32\ncpu_ms = 5\nconcurrency = 16").within_defaults();
        assert_eq!(
            limits,
            written("memory_mib = 16\ncpu_ms = 5\nconcurrency = 8")
        );
    }

    #[test]
    fn without_a_policy_each_limit_is_in_force_and_no_higher_than_its_default() {
        assert_eq!(
            WrittenLimits::default().without_policy(),
            WrittenLimits::DEFAULTS
        );
        let limits = written("memory_mib = 32\ncpu_ms = 5").without_policy();
        let expected = WrittenLimits {
            cpu_ms: Some(5),
            ..WrittenLimits::DEFAULTS
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_limit_that_nobody_can_have_is_refused() {
        assert!(written("").check().is_ok());
        for (key, value, expected) in [
            ("memory_mib", 33, "`memory_mib` is 33, but must be 1 to 32"),
            ("cpu_ms", 0, "`cpu_ms` is 0, but must be 1 to 60000"),
            (
                "body_kib",
                4_294_967_295,
                "`body_kib` is 4294967295, but must be 1 to 16384",
            ),
            (
                "memory",
                1,
                "there is no limit `memory`; the limits are `memory_mib`, `cpu_ms`, `wall_ms`, `body_kib`, `concurrency`",
            ),
        ] {
            let mut limits = WrittenLimits::default();
            let error = limits.set(key, value).unwrap_err().to_string();
            assert_eq!(error, expected);
            if let Ok(limits) = toml::from_str::<WrittenLimits>(&format!("{key} = {value}")) {
                assert_eq!(limits.check().unwrap_err().to_string(), expected);
            }
        }
    }
}
