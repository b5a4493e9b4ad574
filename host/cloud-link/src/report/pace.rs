//! How often values that change all the time are a reason for a report (docs/spec/device.md#report).

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use super::changes::{METRICS, PLUGIN_FIELDS};

/// The pause between two reports of only measures, and between two of only fields of plugins.
const GAP: Duration = Duration::from_secs(300);

/// The times from which measures, and fields of plugins, are again a reason for a report.
pub(super) struct Pace {
    metrics: Instant,
    plugin_fields: Instant,
}

impl Pace {
    /// Both are a reason at once.
    pub(super) fn new(now: Instant) -> Self {
        Pace {
            metrics: now,
            plugin_fields: now,
        }
    }

    /// Whether these changes to the accepted state are a reason for a report now. Then all of them are sent.
    pub(super) fn allows(
        &self,
        accepted: &Map<String, Value>,
        changes: &Map<String, Value>,
        now: Instant,
    ) -> bool {
        changes.iter().any(|(name, value)| match name.as_str() {
            PLUGIN_FIELDS => now >= self.plugin_fields || loses_plugin(accepted, value),
            name if METRICS.contains(&name) => now >= self.metrics,
            _ => true,
        })
    }

    /// Notes that the cloud has accepted these changes.
    pub(super) fn spend(&mut self, changes: &Map<String, Value>, now: Instant) {
        if changes.keys().any(|name| METRICS.contains(&name.as_str())) {
            self.metrics = now + GAP;
        }
        // No fields at all is a change that plugins cannot repeat quickly: the next fields have to be accepted first.
        let fields = changes.get(PLUGIN_FIELDS).and_then(Value::as_object);
        if fields.is_some_and(|fields| !fields.is_empty()) {
            self.plugin_fields = now + GAP;
        }
    }
}

/// Whether a plugin whose fields the cloud has has none now: it was removed, lost its grant, or has removed them
/// itself. To add some again it has to wait.
fn loses_plugin(accepted: &Map<String, Value>, now: &Value) -> bool {
    let before = accepted.get(PLUGIN_FIELDS).and_then(Value::as_object);
    before.is_some_and(|before| before.keys().any(|plugin| now.get(plugin).is_none()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn measures_and_fields_of_plugins_have_a_pace_of_their_own() {
        let of = |value: Value| value.as_object().unwrap().clone();
        let begin = Instant::now();
        let mut pace = Pace::new(begin);
        let none = Map::new();
        let (measure, field) = (
            of(json!({ "cpu_usage": 1 })),
            of(json!({ "plugin_fields": { "a": { "f": { "value": 1 } } } })),
        );
        let all = of(json!({ "cpu_usage": 1, "status": "Idle" }));
        assert!(pace.allows(&none, &measure, begin) && pace.allows(&none, &field, begin));
        pace.spend(&all, begin);
        assert!(!pace.allows(&none, &measure, begin) && pace.allows(&none, &field, begin));
        pace.spend(&field, begin);
        let soon = begin + GAP / 2;
        assert!(!pace.allows(&none, &field, soon));
        assert!(pace.allows(&none, &all, soon));
        assert!(pace.allows(&none, &field, begin + GAP));
        // The cloud has fields of the plugin `b`.
        let accepted = of(json!({ "plugin_fields": { "a": { "f": { "value": 1 } }, "b": {} } }));
        assert!(pace.allows(&accepted, &field, soon));
        pace.spend(&of(json!({ "plugin_fields": {} })), soon);
        assert!(pace.allows(&none, &field, begin + GAP));
    }
}
