//! The limits of one call of a plugin, and the defaults.
//!
//! A manifest asks, and the policy decides: a limit in the policy replaces the manifest's. A manifest by itself can
//! only lower the defaults; raising them requires the policy, except for plugins that the layout ships with. All limits
//! are within the ranges of [`plugin_manifest::LIMITS`].

use std::time::Duration;

use device_types::PluginLimits;
use plugin_manifest::WrittenLimits;
pub use plugin_protocol::Limits;

/// Returns the limits of a plugin.
pub(crate) fn resolve(manifest: &WrittenLimits, policy: &WrittenLimits) -> Limits {
    let written = policy.over(manifest).over(&WrittenLimits::DEFAULTS);
    let value = |limit: Option<u32>| limit.unwrap_or_default();
    Limits {
        memory: (value(written.memory_mib) as usize) << 20,
        cpu: Duration::from_millis(value(written.cpu_ms).into()),
        wall: Duration::from_millis(value(written.wall_ms).into()),
        body: (value(written.body_kib) as usize) << 10,
        concurrency: value(written.concurrency) as usize,
    }
}

/// Returns the limits in the units of manifests, for a plugin that accepts `at_once` concurrent calls on this device.
pub(crate) fn report(limits: &Limits, at_once: usize) -> PluginLimits {
    // All are within ranges of 32 bits.
    let count = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    PluginLimits {
        memory_mib: count(limits.memory >> 20),
        cpu_ms: ms(limits.cpu),
        wall_ms: ms(limits.wall),
        body_kib: count(limits.body >> 10),
        concurrency: count(at_once),
    }
}

#[cfg(test)]
mod tests {
    use plugin_manifest::LIMITS;

    use super::*;

    #[test]
    fn the_policy_decides_over_the_manifest_and_the_manifest_over_the_defaults() {
        let written = |text: &str| toml::from_str::<WrittenLimits>(text).unwrap();
        let limits = resolve(
            &written("memory_mib = 4\ncpu_ms = 5"),
            &written("memory_mib = 8"),
        );
        let expected = Limits {
            memory: 8 << 20,
            cpu: Duration::from_millis(5),
            ..resolve(&WrittenLimits::default(), &WrittenLimits::default())
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn what_tools_say_about_a_plugin_without_a_policy_is_in_force() {
        let manifest: WrittenLimits = toml::from_str("memory_mib = 32\nwall_ms = 5").unwrap();
        let limits = resolve(&manifest.within_defaults(), &WrittenLimits::default());
        let tools = manifest.without_policy();
        let in_force = report(&limits, limits.concurrency);
        let expected = PluginLimits {
            memory_mib: tools.memory_mib.unwrap(),
            cpu_ms: tools.cpu_ms.unwrap(),
            wall_ms: tools.wall_ms.unwrap(),
            body_kib: tools.body_kib.unwrap(),
            concurrency: tools.concurrency.unwrap(),
        };
        assert_eq!(in_force, expected);
    }

    #[test]
    fn the_most_of_a_limit_is_what_the_pools_are_made_for() {
        let most = |key: &str| {
            let range = LIMITS.iter().find(|range| range.key == key).unwrap();
            range.most as usize
        };
        assert_eq!(most("memory_mib") << 20, compiled_code::PLUGIN_MEMORY);
        // What `LoadContext::link` allows with as many places as a device has: half of them.
        assert_eq!(most("concurrency"), crate::DEFAULT_SLOTS / 2);
    }
}
