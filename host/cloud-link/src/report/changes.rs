//! The differences between two reports. Pure.

use serde_json::{Map, Value};

/// Measures of the hardware: fields that change all the time and are not urgent.
pub const METRICS: [&str; 9] = [
    "cpu_usage",
    "memory_usage",
    "memory_total",
    "storage_usage",
    "storage_total",
    "storage_block_device",
    "cpu_temp",
    "cpu_id",
    "is_undervolted",
];

/// Fields of plugins: `{PLUGIN: {FIELD: …}}`. They are reported even if empty, since the cloud may have fields from
/// before a reboot.
pub const PLUGIN_FIELDS: &str = "plugin_fields";

/// Measures whose small changes are ignored, and the width of a step.
const STEPS: [(&str, f64); 3] = [
    ("cpu_usage", 20.0),
    ("cpu_temp", 5.0),
    ("memory_usage", 10.0),
];

/// Returns the fields of `now` that the cloud does not have; a field with any change is returned whole. Removed fields
/// are not reported, nor are new fields that are empty objects, except [`PLUGIN_FIELDS`].
pub(super) fn between(
    accepted: &Map<String, Value>,
    now: &Map<String, Value>,
) -> Map<String, Value> {
    let changed = now
        .iter()
        .filter(|(name, value)| match accepted.get(*name) {
            Some(before) => differ(name, before, value),
            None => {
                *name == PLUGIN_FIELDS || value.as_object().is_none_or(|fields| !fields.is_empty())
            }
        });
    changed
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn differ(name: &str, before: &Value, now: &Value) -> bool {
    let step = STEPS.iter().find(|(metric, _)| *metric == name);
    match (step, before.as_f64(), now.as_f64()) {
        (Some((_, step)), Some(before), Some(now)) => {
            (before / step).floor() != (now / step).floor()
        }
        _ => before != now,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn changes(before: Value, now: Value) -> Value {
        let fields = |of: Value| of.as_object().unwrap().clone();
        Value::Object(between(&fields(before), &fields(now)))
    }

    #[test]
    fn only_differences_are_reported() {
        for (before, now, expected) in [
            (json!({}), json!({}), json!({})),
            (
                json!({}),
                json!({"a": null, "b": ""}),
                json!({"a": null, "b": ""}),
            ),
            (
                json!({"a": 1, "b": 2}),
                json!({"a": 1, "b": 3}),
                json!({"b": 3}),
            ),
            // Removed fields are not reported.
            (json!({"a": 1, "apps": {"x": {}}}), json!({}), json!({})),
            // A new empty object is not reported; one that has become empty is.
            (json!({}), json!({"apps": {}}), json!({})),
            (
                json!({"apps": {"x": 1}}),
                json!({"apps": {}}),
                json!({"apps": {}}),
            ),
            // The cloud may have fields of removed plugins.
            (
                json!({}),
                json!({"plugin_fields": {}}),
                json!({"plugin_fields": {}}),
            ),
            (
                json!({"plugin_fields": {}}),
                json!({"plugin_fields": {}}),
                json!({}),
            ),
            (
                json!({"plugin_fields": {"a": {"f": {"value": 1}}, "b": {"g": {"value": 1}}}}),
                json!({"plugin_fields": {"a": {"f": {"value": 1}}}}),
                json!({"plugin_fields": {"a": {"f": {"value": 1}}}}),
            ),
            // Apps are sent whole.
            (
                json!({"apps": {"x": {"p": 1}, "y": 2}}),
                json!({"apps": {"x": {"p": 2}, "y": 2}}),
                json!({"apps": {"x": {"p": 2}, "y": 2}}),
            ),
            // Measures by steps.
            (
                json!({"cpu_usage": 1, "cpu_temp": 44, "memory_usage": 119, "storage_usage": 7}),
                json!({"cpu_usage": 19, "cpu_temp": 40, "memory_usage": 110, "storage_usage": 8}),
                json!({"storage_usage": 8}),
            ),
            (
                json!({"cpu_usage": 19, "cpu_temp": 44, "memory_usage": 119}),
                json!({"cpu_usage": 20, "cpu_temp": 45, "memory_usage": 120}),
                json!({"cpu_usage": 20, "cpu_temp": 45, "memory_usage": 120}),
            ),
            (
                json!({"cpu_usage": 19}),
                json!({"cpu_usage": null}),
                json!({"cpu_usage": null}),
            ),
            (
                json!({"cpu_usage": null}),
                json!({"cpu_usage": null}),
                json!({}),
            ),
        ] {
            assert_eq!(
                changes(before.clone(), now.clone()),
                expected,
                "{before} {now}"
            );
        }
    }

    fn reports() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..200_i64).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            prop::collection::vec(("[a-c]", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect()))
        });
        let name = prop::sample::select(vec![
            "status",
            "apps",
            "cpu_usage",
            "cpu_temp",
            "ip_address",
        ]);
        prop::collection::vec((name, value), 0..5).prop_map(|fields| {
            let fields = fields.into_iter();
            fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        })
    }

    proptest! {
        /// The cloud merges the changes into its state and then has the device's state, except for small changes of
        /// measures; nothing is left to report.
        #[test]
        fn earlier_reports_and_the_changes_add_up_to_the_current_state(before in reports(), now in reports()) {
            let changes = between(&before, &now);
            let mut cloud = before.clone();
            cloud.extend(changes.clone());
            for (name, value) in &now {
                let has = cloud.get(name).cloned().unwrap_or(Value::Object(Map::new()));
                prop_assert!(!differ(name, &has, value), "{name}: {has} {value}");
            }
            prop_assert!(between(&cloud, &now).is_empty());
            for (name, value) in &changes {
                prop_assert_ne!(before.get(name), Some(value));
            }
        }
    }
}
