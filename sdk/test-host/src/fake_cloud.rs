//! The cloud of a device on which a plugin is tried, with the records that the description of the device has.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use plugins::{Cloud, CloudRefusal};
use serde_json::{Map, Value};

/// A cloud that has these rows, and stores what plugins set.
pub(crate) struct FakeCloud {
    records: Mutex<BTreeMap<String, Vec<Map<String, Value>>>>,
}

impl FakeCloud {
    /// Creates a cloud with these rows for each kind of record.
    pub(crate) fn new(records: Vec<(String, Vec<Map<String, Value>>)>) -> FakeCloud {
        FakeCloud {
            records: Mutex::new(records.into_iter().collect()),
        }
    }
}

impl Cloud for FakeCloud {
    fn records<'a>(
        &'a self,
        kind: &'a str,
        fields: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Value>, CloudRefusal>> {
        let all = self.records.lock();
        let rows = all.get(kind).into_iter().flatten();
        let selected = rows.map(|row| {
            let fields = fields
                .iter()
                .filter_map(|field| Some((field.clone(), row.get(field)?.clone())));
            Value::Object(fields.collect())
        });
        let selected = selected.collect();
        async { Ok(selected) }.boxed()
    }

    fn queue<'a>(
        &'a self,
        kind: &'a str,
        values: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<(), CloudRefusal>> {
        let row = values
            .into_iter()
            .map(|(name, value)| (name, Value::String(value)))
            .collect();
        self.records
            .lock()
            .entry(kind.to_owned())
            .or_default()
            .push(row);
        async { Ok(()) }.boxed()
    }
}
