//! The fields that the plugin of a test adds to the device's report to its cloud.
//!
//! ```toml
//! [[report]]
//! fields = { level = { value = 40, unit = "%" }, door = { value = "open" } }   # all of them
//! ```

use std::collections::BTreeMap;

use plugin_test_host::RunningHost;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The fields that the plugin must have reported at this point, exactly.
#[derive(derive_more::Display)]
#[display("report")]
pub(crate) struct TestReport {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    fields: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportToml {
    fields: BTreeMap<String, FieldToml>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldToml {
    value: Value,
    unit: Option<String>,
}

impl TestReport {
    pub(super) fn new(written: ReportToml, line: usize) -> TestReport {
        let fields = written.fields.into_iter();
        let fields = fields.map(|(name, field)| (name, shown(&field.value, field.unit.as_deref())));
        TestReport {
            line,
            fields: Value::Object(fields.collect()),
        }
    }

    /// Describes how the plugin's report differs.
    pub(crate) fn differences(&self, host: &RunningHost) -> Vec<String> {
        let report = host.report();
        let fields = report[0]["fields"].as_array().into_iter().flatten();
        let fields: Map<String, Value> = fields
            .map(|field| {
                let name = field["name"].as_str().unwrap_or_default().to_owned();
                (name, shown(&field["value"], field["unit"].as_str()))
            })
            .collect();
        let fields = Value::Object(fields);
        if fields == self.fields {
            Vec::new()
        } else {
            vec![format!("expected the fields {}, got {fields}", self.fields)]
        }
    }
}

/// Returns a field in the form that is compared: whole numbers are equal however they are written.
fn shown(value: &Value, unit: Option<&str>) -> Value {
    let number = value.as_f64().map(Value::from);
    let value = number.unwrap_or_else(|| value.clone());
    match unit {
        Some(unit) => json!({ "value": value, "unit": unit }),
        None => json!({ "value": value }),
    }
}
