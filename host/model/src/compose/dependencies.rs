//! The services that must have been started before another one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::reader::{Reader, scalar};
use crate::ServiceName;

/// Reads a list of names, or a map from names to conditions; of the conditions only the start order
/// is kept.
pub(super) fn depends_on(reader: &mut Reader<'_>) -> BTreeSet<ServiceName> {
    const EXPECTED: &str = "the name of a service";
    let mut names = BTreeSet::new();
    let mut add = |reader: &mut Reader<'_>, value: &Value| match scalar(value)
        .and_then(|text| text.parse().ok())
    {
        Some(name) => {
            names.insert(name);
        }
        None => reader.problem("depends_on", value, EXPECTED),
    };
    match reader.take("depends_on") {
        None => {}
        Some(Value::Array(items)) => {
            items.iter().for_each(|item| add(reader, item));
        }
        Some(Value::Object(entries)) => {
            for (name, options) in entries {
                add(reader, &Value::String(name.clone()));
                let condition = options
                    .get("condition")
                    .and_then(Value::as_str)
                    .unwrap_or("service_started");
                if condition != "service_started" {
                    let condition = crate::excerpt::cut(condition);
                    reader.warn(
                            "depends_on",
                            &format!(
                                "requests `{condition}`, which is not supported: only the start order is kept"
                            ),
                        );
                }
            }
        }
        Some(one @ Value::String(_)) => add(reader, one),
        Some(other) => reader.problem("depends_on", other, "a list or a map of services"),
    }
    names
}

/// Returns a service that could never be started, if there is one: it is in a circle of
/// dependencies, or waits for one.
pub(super) fn circle<'a>(
    dependencies: &'a BTreeMap<ServiceName, Vec<ServiceName>>,
) -> Option<&'a ServiceName> {
    // Removes the services that can be started in some order until no more can.
    let mut left: BTreeSet<&'a ServiceName> = dependencies.keys().collect();
    loop {
        let startable: Vec<&ServiceName> = left
            .iter()
            .copied()
            .filter(|name| dependencies[*name].iter().all(|on| !left.contains(on)))
            .collect();
        if startable.is_empty() {
            return left.first().copied();
        }
        for name in startable {
            left.remove(name);
        }
    }
}
