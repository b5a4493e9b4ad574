//! The fields that a device reports, and the handling of values that do not fit: long text is cut, large numbers become
//! the largest possible one, and only values of another type are refused.

use cloud_core::answer::Refusal;
use resources::split_os_version;
use serde_json::{Map, Value};

/// The kind of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    /// At most this many characters; the rest is cut off.
    Text(usize),
    /// The same, cut at a space.
    Spaced(usize),
    /// A name on one line.
    Name,
    /// Lower case and plain characters, or nothing.
    CpuId,
    /// `prod` or `dev`; any other value is ignored.
    Variant,
    /// A whole number.
    Number,
    Flag,
}

/// The consequences of writing a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Impact {
    /// None.
    Plain,
    /// A measurement: written separately at most once a minute.
    Metric,
    /// Other fields or rows depend on it, by the rules of the data API.
    Ruled,
}

#[derive(Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: FieldKind,
    pub(super) impact: Impact,
}

const fn field(name: &'static str, kind: FieldKind, impact: Impact) -> Field {
    Field { name, kind, impact }
}

/// Each of them is a column of `device`.
pub(super) const FIELDS: [Field; 24] = [
    field("status", FieldKind::Text(50), Impact::Plain),
    field("os_version", FieldKind::Text(70), Impact::Ruled),
    field("os_variant", FieldKind::Variant, Impact::Ruled),
    field("supervisor_version", FieldKind::Text(20), Impact::Ruled),
    field("provisioning_progress", FieldKind::Number, Impact::Plain),
    field("provisioning_state", FieldKind::Text(255), Impact::Plain),
    field("ip_address", FieldKind::Spaced(2000), Impact::Plain),
    field("mac_address", FieldKind::Spaced(900), Impact::Plain),
    field("api_port", FieldKind::Number, Impact::Plain),
    field("api_secret", FieldKind::Text(64), Impact::Plain),
    field("cpu_id", FieldKind::CpuId, Impact::Ruled),
    field("is_undervolted", FieldKind::Flag, Impact::Plain),
    field("download_progress", FieldKind::Number, Impact::Plain),
    field("memory_usage", FieldKind::Number, Impact::Metric),
    field("memory_total", FieldKind::Number, Impact::Metric),
    field("storage_usage", FieldKind::Number, Impact::Metric),
    field("storage_total", FieldKind::Number, Impact::Metric),
    field("storage_block_device", FieldKind::Text(255), Impact::Metric),
    field("cpu_temp", FieldKind::Number, Impact::Metric),
    field("cpu_usage", FieldKind::Number, Impact::Metric),
    // Not in version 3, where only people name devices.
    field("device_name", FieldKind::Name, Impact::Ruled),
    field("note", FieldKind::Text(1_000_000), Impact::Plain),
    // Derived from other reported values.
    field("is_running__release", FieldKind::Number, Impact::Ruled),
    field("update_status", FieldKind::Text(50), Impact::Plain),
];

/// Fields that version 3 does not copy from the body.
const NOT_OF_V3: [&str; 5] = [
    "download_progress",
    "device_name",
    "note",
    "is_running__release",
    "update_status",
];

/// The reported fields of a device; null if the device reports that there is no value.
#[derive(Debug, Default)]
pub(super) struct ReportedFields(pub(super) Vec<(&'static Field, Value)>);

impl ReportedFields {
    /// Reads the fields of version 3.
    pub(super) fn read(body: &Map<String, Value>) -> Result<Self, Refusal> {
        Self::read_those(body, |field| !NOT_OF_V3.contains(&field.name))
    }

    /// Reads the selected fields; everything else in the body is ignored.
    pub(super) fn read_those(
        body: &Map<String, Value>,
        is_reported: impl Fn(&Field) -> bool,
    ) -> Result<Self, Refusal> {
        let mut fields = ReportedFields::default();
        for field in FIELDS.iter().filter(|field| is_reported(field)) {
            if let Some(given) = body.get(field.name)
                && let Some(value) = fit(field, given)?
            {
                fields.0.push((field, value));
            }
        }
        fields.split_os_version();
        Ok(fields)
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        if let Some(field) = FIELDS.iter().find(|field| field.name == name) {
            self.0.retain(|(other, _)| *other != field);
            self.0.push((field, value));
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(field, _)| field.name == name);
        found.map(|(_, value)| value)
    }

    /// Splits `2.0.0 (prod)` as it would be stored, so that it can be compared with the stored value.
    fn split_os_version(&mut self) {
        let Some(Value::String(reported)) = self.get("os_version").cloned() else {
            return;
        };
        let (version, variant) = split_os_version(&reported);
        if let (Some(variant), None) = (variant, self.get("os_variant")) {
            let (version, variant) = (version.to_owned(), variant.to_owned());
            self.set("os_version", version.into());
            self.set("os_variant", variant.into());
        }
    }
}

/// Returns the value in the form of the field; none if it is left out.
fn fit(field: &Field, value: &Value) -> Result<Option<Value>, Refusal> {
    let wrong = |what: &str| Err(Refusal::Wrong(format!("`{}` must be {what}", field.name)));
    match (field.kind, value) {
        (FieldKind::Flag, Value::Bool(_)) => Ok(Some(value.clone())),
        (FieldKind::Flag, _) => wrong("true or false"),
        (FieldKind::Variant | FieldKind::Name, Value::Null) => Ok(None),
        (_, Value::Null) => Ok(Some(Value::Null)),
        (FieldKind::Number, Value::Number(number)) => {
            let whole = number.as_i64().or_else(|| {
                // Fractions are rounded; numbers that are too large become the largest one.
                #[expect(clippy::cast_possible_truncation, reason = "such a cast saturates")]
                number.as_f64().map(|number| number.round() as i64)
            });
            let whole = whole.unwrap_or_default();
            let bounded = whole.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
            Ok(Some(bounded.into()))
        }
        (FieldKind::Number, _) => wrong("a number"),
        (kind, Value::String(text)) => Ok(fit_text(kind, text).map(Value::String)),
        _ => wrong("text"),
    }
}

fn fit_text(kind: FieldKind, text: &str) -> Option<String> {
    match kind {
        FieldKind::Text(most) => Some(cut(text, most).to_owned()),
        FieldKind::Spaced(most) => {
            let text_kept = cut(text, most);
            if text_kept.len() == text.len() {
                return Some(text.to_owned());
            }
            let whole = text.as_bytes().get(text_kept.len()) == Some(&b' ');
            let at = if whole {
                text_kept.len()
            } else {
                text_kept.rfind(' ').unwrap_or(0)
            };
            Some(text_kept.get(..at).unwrap_or_default().to_owned())
        }
        FieldKind::Name => {
            let plain = !text.is_empty() && !text.contains(['\r', '\n']);
            plain.then(|| cut(text, 255).to_owned())
        }
        FieldKind::CpuId => {
            let plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
            plain.then(|| cut(text, 255).to_lowercase())
        }
        FieldKind::Variant => matches!(text, "prod" | "dev").then(|| text.to_owned()),
        FieldKind::Number | FieldKind::Flag => None,
    }
}

/// Returns the first characters, up to this number. Databases cannot store the character 0.
fn cut(text: &str, most: usize) -> &str {
    let text = text.split('\0').next().unwrap_or_default();
    match text.char_indices().nth(most) {
        Some((at, _)) => text.get(..at).unwrap_or_default(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(body: Value) -> Result<Vec<(&'static str, Value)>, Refusal> {
        let fields = ReportedFields::read(body.as_object().unwrap())?;
        Ok(fields
            .0
            .into_iter()
            .map(|(field, value)| (field.name, value))
            .collect())
    }

    #[test]
    fn too_long_values_are_cut_and_never_refused() {
        let addresses = "10.0.0.1 ".repeat(300);
        for (field, given, kept) in [
            ("status", json!("x".repeat(60)), json!("x".repeat(50))),
            ("status", json!("ä".repeat(60)), json!("ä".repeat(50))),
            ("status", json!("a\u{0}b"), json!("a")),
            (
                "ip_address",
                json!(addresses),
                json!(addresses[..1997].trim_end()),
            ),
            ("ip_address", json!("x".repeat(3000)), json!("")),
            ("cpu_id", json!("AB"), json!("ab")),
            (
                "memory_usage",
                json!(5_000_000_000_i64),
                json!(2_147_483_647),
            ),
            ("memory_usage", json!(1e300), json!(2_147_483_647)),
            ("cpu_temp", json!(-12.6), json!(-13)),
            ("cpu_usage", Value::Null, Value::Null),
            ("is_undervolted", json!(true), json!(true)),
        ] {
            assert_eq!(
                fields(json!({ field: given })).unwrap(),
                [(field, kept)],
                "{field}"
            );
        }
    }

    #[test]
    fn values_outside_the_accepted_words_are_left_out() {
        for body in [
            json!({ "os_variant": "testing" }),
            json!({ "cpu_id": "\u{7f}" }),
            json!({ "unknown": 1, "is_connected_to_vpn": true, "uuid": "x", "note": "n", "device_name": "d" }),
        ] {
            assert_eq!(fields(body.clone()).unwrap(), [], "{body}");
        }
    }

    #[test]
    fn a_variant_in_the_version_is_one_of_its_own() {
        let body = json!({ "os_version": "Platform OS 2.88.4 (prod)" });
        let expected = [
            ("os_version", json!("Platform OS 2.88.4")),
            ("os_variant", json!("prod")),
        ];
        assert_eq!(fields(body).unwrap(), expected);
    }

    #[test]
    fn other_types_are_refused() {
        for body in [
            json!({ "status": 1 }),
            json!({ "memory_usage": "12" }),
            json!({ "is_undervolted": "true" }),
            json!({ "is_undervolted": null }),
            json!({ "ip_address": ["10.0.0.1"] }),
            json!({ "os_variant": {} }),
        ] {
            assert!(fields(body.clone()).is_err(), "{body}");
        }
    }
}
