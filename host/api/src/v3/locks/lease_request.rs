//! The body with which a service takes its update lock or renews it.

use std::time::Duration;

use model::{AppId, LockRequest, MAX_LOCK_REASON, MAX_LOCK_TTL, ServiceName};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::answer::Failure;

/// The body of `PUT /v3/locks/:appId/:service`. A field is `None` if it is missing or not of its type; other fields are
/// refused. [`Self::into_lock_request`] does both only after the service is known to exist.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "LockRequest", extend("required" = ["reason", "ttl"]))]
pub(super) struct LeaseRequest {
    /// Why the service must not be disturbed, on one line.
    #[serde(default, deserialize_with = "text")]
    #[schemars(
        with = "String",
        length(min = 1, max = 256),
        skip_serializing_if = "Option::is_none"
    )]
    reason: Option<String>,
    /// The seconds after which the lock expires.
    #[serde(default, deserialize_with = "lenient::int")]
    #[schemars(
        with = "u64",
        range(min = 1, max = 604_800),
        skip_serializing_if = "Option::is_none"
    )]
    ttl: Option<i64>,
    /// Whether it is put back after a reboot.
    #[serde(default = "no", deserialize_with = "true_or_false")]
    #[schemars(with = "bool")]
    survives_reboot: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: Map<String, Value>,
}

fn no() -> Option<bool> {
    Some(false)
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => Some(text),
        _ => None,
    })
}

fn true_or_false<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Bool(value) => Some(value),
        // The values that a form can contain.
        Value::String(word) => word.parse().ok(),
        _ => None,
    })
}

impl LeaseRequest {
    /// Returns the request for the lock of a service.
    ///
    /// # Errors
    /// Returns 400 if a field is missing, wrong or unknown; the message names it.
    pub(super) fn into_lock_request(
        self,
        app: AppId,
        service: ServiceName,
    ) -> Result<LockRequest, Failure> {
        let reason = self.reason.filter(|reason| is_reason(reason));
        let reason = reason.ok_or_else(|| {
            Failure::invalid(format!(
                "`reason` must be text of 1 to {MAX_LOCK_REASON} bytes on one line: why the service must not be \
                 disturbed"
            ))
        })?;
        let longest = MAX_LOCK_TTL.as_secs();
        let seconds = self.ttl.and_then(|seconds| u64::try_from(seconds).ok());
        let seconds = seconds.filter(|seconds| (1..=longest).contains(seconds));
        let seconds = seconds.ok_or_else(|| {
            Failure::invalid(format!(
                "`ttl` must be a whole number of seconds from 1 to {longest}: the time until the lock expires"
            ))
        })?;
        let survives_reboot = self.survives_reboot.ok_or_else(|| {
            Failure::invalid("`survivesReboot` must be true or false; it is false by default")
        })?;
        // A client that misspells an option would rely on its effect.
        if let Some(key) = self.unknown.keys().next() {
            return Err(Failure::invalid(format!(
                "`{}` is not a known field: use `reason`, `ttl` and `survivesReboot`",
                key.chars().take(64).collect::<String>().escape_debug()
            )));
        }
        Ok(LockRequest {
            app,
            service,
            reason,
            ttl: Duration::from_secs(seconds),
            survives_reboot,
        })
    }
}

fn is_reason(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= MAX_LOCK_REASON && !text.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(body: Value) -> String {
        let lease: LeaseRequest = serde_json::from_value(body).unwrap();
        let outcome = lease.into_lock_request(AppId(1), "web".parse().unwrap());
        match outcome.unwrap_err() {
            Failure::Refused(status, message) => {
                assert_eq!(status, 400);
                message
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_wrong_field_is_named_whatever_the_order_of_the_body() {
        for (body, beginning) in [
            (json!({ "x": 1, "ttl": 0, "reason": "" }), "`reason` must"),
            (json!({ "x": 1, "ttl": 60 }), "`reason` must"),
            (
                json!({ "survivesReboot": "no", "ttl": "0", "reason": "r" }),
                "`ttl` must",
            ),
            (json!({ "reason": "r" }), "`ttl` must"),
            (
                json!({ "x": 1, "survivesReboot": null, "ttl": 1, "reason": "r" }),
                "`survivesReboot` must",
            ),
            (
                json!({ "y": 1, "x": 1, "reason": "r", "ttl": 1 }),
                "`y` is not a known field",
            ),
        ] {
            let message = refusal(body.clone());
            assert!(message.starts_with(beginning), "{body}: {message}");
        }
    }

    #[test]
    fn a_form_can_say_true_and_false() {
        for (word, survives) in [("true", true), ("false", false)] {
            let body = json!({ "reason": "r", "ttl": "60", "survivesReboot": word });
            let lease: LeaseRequest = serde_json::from_value(body).unwrap();
            let request = lease
                .into_lock_request(AppId(1), "web".parse().unwrap())
                .unwrap();
            assert_eq!(request.survives_reboot, survives);
        }
    }

    #[test]
    fn the_description_has_the_fields_and_their_bounds() {
        let schema = schemars::schema_for!(LeaseRequest).to_value();
        assert_eq!(schema["required"], json!(["reason", "ttl"]));
        let fields = schema["properties"].as_object().unwrap();
        let names: Vec<&String> = fields.keys().collect();
        assert_eq!(names, ["reason", "ttl", "survivesReboot"]);
        assert_eq!(fields["reason"]["type"], "string");
        assert_eq!(fields["reason"]["maxLength"], MAX_LOCK_REASON);
        assert_eq!(fields["ttl"]["type"], "integer");
        assert_eq!(fields["ttl"]["maximum"], MAX_LOCK_TTL.as_secs());
        assert_eq!(fields["survivesReboot"]["default"], false);
        for optional in ["reason", "ttl"] {
            assert_eq!(fields[optional].get("default"), None, "{optional}");
        }
    }
}
