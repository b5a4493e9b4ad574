//! The body with which a service takes its update lock or renews it.

use model::{MAX_LOCK_REASON, MAX_LOCK_TTL};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::answer::Failure;

/// The body of `PUT /v3/locks/:appId/:service`. Other fields are refused.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Wish")]
pub(super) struct LeaseRequest {
    /// Why the service must not be disturbed, on one line.
    #[schemars(length(min = 1, max = 256))]
    pub(super) reason: String,
    /// The seconds after which the lock expires.
    #[schemars(range(min = 1, max = 604_800))]
    pub(super) ttl: u64,
    /// Whether it is put back after a reboot.
    #[serde(default)]
    pub(super) survives_reboot: bool,
}

impl LeaseRequest {
    /// Reads the fields of a body.
    ///
    /// # Errors
    /// Returns 400 if a field is missing, wrong or unknown; the message names it.
    pub(super) fn read(body: &Map<String, Value>) -> Result<Self, Failure> {
        let request = LeaseRequest {
            reason: reason(body)?,
            ttl: ttl(body)?,
            survives_reboot: survives_reboot(body)?,
        };
        refuse_unknown(body)?;
        Ok(request)
    }
}

fn reason(body: &Map<String, Value>) -> Result<String, Failure> {
    let text = body.get("reason").and_then(Value::as_str);
    let text = text.filter(|text| {
        !text.trim().is_empty() && text.len() <= MAX_LOCK_REASON && !text.contains(char::is_control)
    });
    text.map(str::to_owned).ok_or_else(|| {
        Failure::invalid(format!(
            "`reason` must be text of 1 to {MAX_LOCK_REASON} bytes on one line: why the service must not be \
             disturbed"
        ))
    })
}

fn ttl(body: &Map<String, Value>) -> Result<u64, Failure> {
    let longest = MAX_LOCK_TTL.as_secs();
    let seconds = body.get("ttl").and_then(|ttl| lenient::int(ttl).ok()?);
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.filter(|seconds| (1..=longest).contains(seconds));
    seconds.ok_or_else(|| {
        Failure::invalid(format!(
            "`ttl` must be a whole number of seconds from 1 to {longest}: the time until the lock expires"
        ))
    })
}

fn survives_reboot(body: &Map<String, Value>) -> Result<bool, Failure> {
    match body.get("survivesReboot") {
        None => Ok(false),
        Some(Value::Bool(survives)) => Ok(*survives),
        // The values that a form can contain.
        Some(Value::String(word)) if word == "true" => Ok(true),
        Some(Value::String(word)) if word == "false" => Ok(false),
        Some(_) => Err(Failure::invalid(
            "`survivesReboot` must be true or false; it is false by default",
        )),
    }
}

/// Refuses unknown fields: a client that misspells an option would rely on its effect.
fn refuse_unknown(body: &Map<String, Value>) -> Result<(), Failure> {
    let fields = ["reason", "ttl", "survivesReboot"];
    match body.keys().find(|key| !fields.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(Failure::invalid(format!(
            "`{}` is not a known field: use `reason`, `ttl` and `survivesReboot`",
            key.chars().take(64).collect::<String>().escape_debug()
        ))),
    }
}
