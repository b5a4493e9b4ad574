//! Contracts: the needs of a service, and what happens to a target whose needs are not met
//! (docs/spec/device.md#contracts).
//!
//! [`hold_to`] is called for every target before it is resolved. An optional service is left out if
//! its contract is not met; any other service excludes its whole app, and the other apps continue.
//! A contract with unknown contents makes the target invalid: it may have meant anything.

mod range;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::target::{Path, Problems};
use crate::{AppUuid, Branding, TargetErrors, TargetState, truthy_text};
use range::Range;
use semver::Version;

/// The maximum nesting depth of alternatives.
const MAX_DEPTH: usize = 8;

/// The properties of a device that contracts can require. Any other need is not met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceProperties {
    /// `sw.supervisor`: [`Branding::api_level`].
    pub supervisor: String,
    /// `sw.os`: the `ID` and `VERSION_ID` of its os-release.
    pub os: Option<(String, String)>,
    /// `sw.kernel`: the kernel's release, as printed by `uname -r`.
    pub kernel: Option<String>,
    /// `hw.device-type`: the slug of the board.
    pub device_type: String,
    /// `arch.sw`: the processor's architecture.
    pub arch: String,
}

/// The part of a target that a device can run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContractOutcome {
    /// Optional services that were left out, one sentence each.
    pub dropped: Vec<String>,
    /// The apps that cannot run on this device, with the reasons.
    pub rejected: BTreeMap<AppUuid, String>,
}

/// Removes optional services with unmet needs from `target`, and returns the apps that must not be run.
///
/// # Errors
/// [`TargetErrors`] if a contract cannot be interpreted.
pub fn hold_to(
    target: &mut TargetState,
    offers: &DeviceProperties,
    branding: &Branding,
) -> Result<ContractOutcome, TargetErrors> {
    let optional = branding.label("features.optional");
    let mut problems = Problems::default();
    let mut outcome = ContractOutcome::default();
    let root = Path::root("apps");
    for app in target.apps.values_mut().filter(|app| !app.is_host) {
        let (uuid, name) = (app.uuid.clone(), app.name.clone());
        let at = root.at(uuid.as_str());
        let Some(release) = &mut app.release else {
            continue;
        };
        let mut reasons = Vec::new();
        release.services.retain(|service, target| {
            let at = at.at(service.as_str());
            let at = at.at("contract");
            let unmet = match &target.contract {
                Some(contract) => unmet(&mut problems, &at, contract, offers),
                None => None,
            };
            let Some(need) = unmet else {
                return true;
            };
            let is_optional = target.labels.get(&optional);
            if is_optional.is_some_and(|value| truthy_text(value)) {
                outcome.dropped.push(format!(
                    "service `{service}` of app `{name}` is left out: this device does not have {need}"
                ));
                return false;
            }
            reasons.push(format!("service `{service}` needs {need}"));
            true
        });
        if !reasons.is_empty() {
            outcome.rejected.insert(uuid, reasons.join("; "));
        }
    }
    problems.into_result(outcome)
}

/// Returns a description of the first need of a contract that is not met.
fn unmet(
    problems: &mut Problems,
    at: &Path<'_>,
    contract: &Value,
    offers: &DeviceProperties,
) -> Option<String> {
    let at = at.at("requires");
    let needs = match contract {
        Value::Null => return None,
        Value::Object(fields) => match fields.get("requires") {
            None | Some(Value::Null) => return None,
            Some(Value::Array(needs)) => needs,
            Some(other) => {
                problems.expected(&at, other, "a list of needs");
                return None;
            }
        },
        other => {
            problems.expected(&at, other, "a contract (a map)");
            return None;
        }
    };
    // All needs are checked, so that all problems are found.
    let mut first = None;
    for (number, need) in needs.iter().enumerate() {
        let number = number.to_string();
        let met = check(problems, &at.at(&number), need, offers, MAX_DEPTH);
        if met == Some(false) && first.is_none() {
            first = Some(words(need));
        }
    }
    first
}

/// Returns whether a need is met; `None` if it cannot be interpreted, which is then a problem.
fn check(
    problems: &mut Problems,
    at: &Path<'_>,
    need: &Value,
    offers: &DeviceProperties,
    depth: usize,
) -> Option<bool> {
    const EXPECTED: &str = "a need: a map with a `type` of `sw.supervisor`, `sw.os`, `sw.kernel`, `sw.l4t`, \
        `hw.device-type` or `arch.sw`, or with `or` and a list of such";
    let Some(fields) = need.as_object().filter(|_| depth > 0) else {
        problems.expected(at, need, EXPECTED);
        return None;
    };
    if let Some(any) = fields.get("or") {
        let Some(any) = any.as_array() else {
            problems.expected(at, need, EXPECTED);
            return None;
        };
        let mut met = Some(false);
        for one in any {
            let one = check(problems, at, one, offers, depth - 1);
            met = met.zip(one).map(|(met, one)| met || one);
        }
        return met;
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let offered = match text("type") {
        Some("sw.supervisor") => Some((None, Some(offers.supervisor.clone()))),
        Some("sw.os") => {
            let os = offers.os.clone();
            os.map(|(id, version)| (Some(id), Some(version)))
        }
        Some("sw.kernel") => offers.kernel.clone().map(|kernel| (None, Some(kernel))),
        Some("sw.l4t") => offers.l4t().map(|version| (None, Some(version))),
        Some("hw.device-type") => Some((Some(offers.device_type.clone()), None)),
        Some("arch.sw") => Some((Some(offers.arch.clone()), None)),
        _ => {
            problems.expected(at, need, EXPECTED);
            return None;
        }
    };
    let range = match fields.get("version") {
        None | Some(Value::Null) => None,
        Some(version) => {
            let range = version.as_str().and_then(Range::parse);
            if range.is_none() {
                let expected = "a range of versions, such as `>=2.1.0 <3`";
                problems.expected(&at.at("version"), version, expected);
                return None;
            }
            range
        }
    };
    let Some((slug, version)) = offered else {
        return Some(false);
    };
    let is_it = match (text("slug"), slug) {
        (Some(required_slug), Some(slug)) => required_slug == slug,
        // There is only one of these, whatever name a contract uses.
        (Some(_), None) | (None, _) => true,
    };
    let fits = range.is_none_or(|range| {
        version
            .and_then(|version| lenient_version(&version))
            .is_some_and(|version| range.has(&version))
    });
    Some(is_it && fits)
}

impl DeviceProperties {
    /// Returns the version of the board support package, which NVIDIA kernels include in their
    /// release: `4.9.140-l4t-r32.2`.
    fn l4t(&self) -> Option<String> {
        let (_, version) = self.kernel.as_ref()?.split_once("-l4t-r")?;
        Some(version.split(['-', '+']).next()?.to_owned())
    }
}

/// Reads `6.1.0-13-amd64` as 6.1.0, `12` as 12.0.0: the part after the numbers is not a pre-release here, unlike in the
/// versions of a package.
fn lenient_version(text: &str) -> Option<Version> {
    let text = text.trim().trim_start_matches('v');
    let numbers = text.split(['-', '+', ' ', '_']).next()?;
    let mut parts = numbers.split('.').map(|part| part.parse::<u64>());
    let major = parts.next()?.ok()?;
    let mut next = || parts.next().map_or(Some(0), Result::ok);
    Some(Version::new(major, next()?, next()?))
}

/// Describes a need, for a log.
fn words(need: &Value) -> String {
    let field = |fields: &Map<String, Value>, key: &str| {
        let text = fields.get(key).and_then(Value::as_str)?;
        Some(format!("`{}`", crate::excerpt::cut(text)))
    };
    let Some(fields) = need.as_object() else {
        return String::new();
    };
    if let Some(Value::Array(any)) = fields.get("or") {
        let any: Vec<String> = any.iter().take(MAX_DEPTH).map(words).collect();
        return any.join(" or ");
    }
    let parts = ["type", "slug", "version"];
    let parts: Vec<String> = parts.iter().filter_map(|key| field(fields, key)).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests;
