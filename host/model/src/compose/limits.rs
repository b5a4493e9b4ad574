//! Limits on the resources of a service.

use std::collections::BTreeMap;

use serde_json::Value;

use super::quantities;
use super::reader::{DEFAULT, IGNORED, Reader};
use crate::Ulimit;

/// Reads a number for both limits, or `{ soft, hard }`.
pub(super) fn ulimits(reader: &mut Reader<'_>) -> BTreeMap<String, Ulimit> {
    let mut limits = BTreeMap::new();
    for (name, value) in reader.record("ulimits").into_iter().flatten() {
        let limit = match value {
            Value::Object(pair) => {
                let soft = pair.get("soft").and_then(quantities::integer);
                let hard = pair.get("hard").and_then(quantities::integer);
                soft.zip(hard).map(|(soft, hard)| Ulimit { soft, hard })
            }
            other => quantities::integer(other).map(|both| Ulimit {
                soft: both,
                hard: both,
            }),
        };
        match limit {
            Some(limit) => drop(limits.insert(name.clone(), limit)),
            None => reader.ignored("ulimits", value),
        }
    }
    limits
}

pub(super) fn cpus(reader: &mut Reader<'_>) -> i64 {
    let cpus = reader.read("cpus", quantities::nano_cpus, IGNORED);
    cpus.unwrap_or_default()
}

/// Reads the score; the kernel accepts -1000 to 1000.
pub(super) fn oom_score_adj(reader: &mut Reader<'_>) -> i64 {
    let read = |value| quantities::integer(value).filter(|score| (-1000..=1000).contains(score));
    let score = reader.read("oom_score_adj", read, DEFAULT);
    score.unwrap_or_default()
}
