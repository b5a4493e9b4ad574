//! What one call of a plugin may use, and what it gets where nobody says.
//!
//! A manifest asks, the policy decides: a limit in the policy takes the place of the manifest's. A manifest by itself
//! gets less than the [`DEFAULTS`] or as much; more is for the policy to give, and for what the layout ships with. All are
//! held to the [`most`](MOST) that the host gives anyone.

use std::time::Duration;

pub use plugin_protocol::Limits;
use serde::Deserialize;

/// What a plugin has where neither its manifest nor the policy says otherwise.
pub const DEFAULTS: Limits = Limits {
    memory: 16 << 20,
    cpu: Duration::from_secs(1),
    wall: Duration::from_secs(10),
    body: 1 << 20,
    concurrency: 8,
};

/// The most that a manifest or a policy can give.
pub const MOST: Limits = Limits {
    memory: compiled_code::PLUGIN_MEMORY,
    cpu: Duration::from_secs(60),
    wall: Duration::from_secs(15 * 60),
    body: 16 << 20,
    // What `LoadContext::load` gives where there are as many slots as a device has: half of them.
    concurrency: crate::DEFAULT_SLOTS / 2,
};

/// Limits as the manifest and the policy write them: only those that they set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenLimits {
    memory_mib: Option<u32>,
    cpu_ms: Option<u32>,
    wall_ms: Option<u32>,
    body_kib: Option<u32>,
    concurrency: Option<u32>,
}

/// A limit that is set, with what it is measured by, all in the unit of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenLimit {
    /// Its name in manifests and policies.
    pub(crate) key: &'static str,
    pub(crate) value: u32,
    /// Of what, in words.
    pub(crate) what: &'static str,
    /// What others have.
    pub(crate) default: u128,
    /// What the host gives at most.
    most: u128,
}

/// The limits in the units and the order of [`WrittenLimits`].
fn in_written_units(limits: &Limits) -> [u128; 5] {
    [
        (limits.memory >> 20) as u128,
        limits.cpu.as_millis(),
        limits.wall.as_millis(),
        (limits.body >> 10) as u128,
        limits.concurrency as u128,
    ]
}

impl WrittenLimits {
    /// Those that are set.
    fn written(&self) -> impl Iterator<Item = WrittenLimit> {
        let rows = [
            ("memory_mib", self.memory_mib, "MiB of memory"),
            ("cpu_ms", self.cpu_ms, "ms of CPU time"),
            ("wall_ms", self.wall_ms, "ms until its answer begins"),
            ("body_kib", self.body_kib, "KiB of a body"),
            ("concurrency", self.concurrency, "places at a time"),
        ];
        let bounds = in_written_units(&DEFAULTS)
            .into_iter()
            .zip(in_written_units(&MOST));
        let rows = rows.into_iter().zip(bounds);
        rows.filter_map(|((key, value, what), (default, most))| {
            Some(WrittenLimit {
                key,
                value: value?,
                what,
                default,
                most,
            })
        })
    }

    /// Checks that each is within what the host gives.
    ///
    /// # Errors
    /// What cannot be had.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_refused = |limit: &WrittenLimit| !(1..=limit.most).contains(&limit.value.into());
        match self.written().find(is_refused) {
            Some(WrittenLimit {
                key, value, most, ..
            }) => Err(format!("`{key}` is {value}, and must be 1 to {most}")),
            None => Ok(()),
        }
    }

    /// Those that are more than a plugin has that asks for none.
    pub(crate) fn beyond_defaults(&self) -> impl Iterator<Item = WrittenLimit> {
        self.written()
            .filter(|limit| u128::from(limit.value) > limit.default)
    }

    /// These, none of them more than a plugin has that asks for none.
    pub(crate) fn within_defaults(&self) -> WrittenLimits {
        let least = |value: Option<u32>, default: u128| {
            value.map(|value| u32::try_from(default).map_or(value, |default| value.min(default)))
        };
        let [memory_mib, cpu_ms, wall_ms, body_kib, concurrency] = in_written_units(&DEFAULTS);
        WrittenLimits {
            memory_mib: least(self.memory_mib, memory_mib),
            cpu_ms: least(self.cpu_ms, cpu_ms),
            wall_ms: least(self.wall_ms, wall_ms),
            body_kib: least(self.body_kib, body_kib),
            concurrency: least(self.concurrency, concurrency),
        }
    }

    /// These where they are set, else `others`.
    fn over(&self, others: Limits) -> Limits {
        let milliseconds = |value: u32| Duration::from_millis(value.into());
        Limits {
            memory: self
                .memory_mib
                .map_or(others.memory, |mib| (mib as usize) << 20),
            cpu: self.cpu_ms.map_or(others.cpu, milliseconds),
            wall: self.wall_ms.map_or(others.wall, milliseconds),
            body: self
                .body_kib
                .map_or(others.body, |kib| (kib as usize) << 10),
            concurrency: self
                .concurrency
                .map_or(others.concurrency, |count| count as usize),
        }
    }
}

/// What a plugin gets.
pub(crate) fn of(manifest: &WrittenLimits, policy: &WrittenLimits) -> Limits {
    policy.over(manifest.over(DEFAULTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> WrittenLimits {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_policy_decides_over_the_manifest_and_the_manifest_over_the_defaults() {
        let limits = of(
            &asked("memory_mib = 4\ncpu_ms = 5"),
            &asked("memory_mib = 8"),
        );
        let expected = Limits {
            memory: 8 << 20,
            cpu: Duration::from_millis(5),
            ..DEFAULTS
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn an_unpinned_file_asks_for_less_than_the_defaults_or_for_them() {
        let limits = asked("memory_mib = 32\ncpu_ms = 5\nconcurrency = 16").within_defaults();
        assert_eq!(
            limits,
            asked("memory_mib = 16\ncpu_ms = 5\nconcurrency = 8")
        );
    }

    #[test]
    fn a_limit_that_nobody_can_have_is_refused() {
        assert!(asked("").check().is_ok());
        for (text, expected) in [
            ("memory_mib = 33", "`memory_mib` is 33, and must be 1 to 32"),
            ("cpu_ms = 0", "`cpu_ms` is 0, and must be 1 to 60000"),
            (
                "body_kib = 4294967295",
                "`body_kib` is 4294967295, and must be 1 to 16384",
            ),
        ] {
            assert_eq!(asked(text).check().unwrap_err().to_string(), expected);
        }
    }
}
