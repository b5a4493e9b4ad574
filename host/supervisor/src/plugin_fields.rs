//! Fields that plugins add to the device's report to its cloud (docs/spec/device.md#report-plugin-fields).

use device_types::PluginField;
use serde_json::{Map, Value, json};

use crate::plugins_slot::PluginsSlot;

/// The plugins that add fields, once they are attached. Clones share them.
#[derive(Clone)]
pub(crate) struct PluginFields(pub(crate) PluginsSlot);

impl PluginFields {
    /// Returns `{PLUGIN: {FIELD: {"value": …, "unit": …}}}`; `None` as long as plugins are being loaded or started: the
    /// cloud keeps the fields from before the restart of the supervisor until the new ones are known.
    pub(crate) fn report(&self) -> Option<Value> {
        let by_plugin = self.0.get()?.fields()?.into_iter();
        let by_plugin = by_plugin.map(|(plugin, fields)| (plugin, reported(fields)));
        Some(Value::Object(by_plugin.collect()))
    }
}

fn reported(fields: Vec<PluginField>) -> Value {
    let fields = fields.into_iter().map(|field| {
        let mut report = Map::from_iter([("value".to_owned(), json!(field.value))]);
        if let Some(unit) = field.unit {
            report.insert("unit".to_owned(), unit.into());
        }
        (field.name, Value::Object(report))
    });
    Value::Object(fields.collect())
}

#[cfg(test)]
mod tests {
    use device_types::PluginFieldValue;

    use super::*;

    #[test]
    fn a_field_has_its_value_and_its_unit_if_it_has_one() {
        let field = |name: &str, value: PluginFieldValue, unit: Option<&str>| PluginField {
            name: name.to_owned(),
            value,
            unit: unit.map(str::to_owned),
        };
        let fields = vec![
            field("level", PluginFieldValue::Number(40.into()), Some("%")),
            field("open", PluginFieldValue::Boolean(true), None),
            field("tank", PluginFieldValue::Text("north".to_owned()), None),
        ];
        let expected = json!({
            "level": { "value": 40, "unit": "%" }, "open": { "value": true }, "tank": { "value": "north" },
        });
        assert_eq!(reported(fields), expected);
    }
}
