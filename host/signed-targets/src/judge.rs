//! Decides whether a device accepts a target from the cloud.

use std::collections::BTreeMap;

use model::{AppUuid, TargetApp, TargetRelease, TargetState};

use crate::difference::differences;
use crate::statement::ALWAYS_OPEN;
use crate::{AcceptedRelease, AcceptedReleases, Digest, SignedText, Statement, TargetPolicy};

/// The most sentences of one refusal: a hostile target has a great many differences, and nobody reads them all.
const MOST_REASONS: usize = 16;
/// The most characters of one sentence.
const LONGEST_REASON: usize = 400;

/// What a target is judged by in addition to the policy.
pub struct JudgementContext<'a> {
    /// The time, in milliseconds since the epoch.
    pub ms: u64,
    /// What the device has accepted before.
    pub accepted: &'a AcceptedReleases,
    /// Returns whether the device only shows an app and never runs it.
    pub is_not_ours: &'a dyn Fn(&TargetApp) -> bool,
}

/// The reasons why a target was not accepted, a sentence for each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the target is not what the owner of the device has signed: {}", .reasons.join("; "))]
pub struct Refusal {
    /// At least one.
    pub reasons: Vec<String>,
}

/// Judges a target, and returns what the device has accepted once it has applied the target.
///
/// Each app that the device should run needs a statement, signed by a key of the policy, that matches the target. An
/// app on the device must not be removed unless the policy allows it. Only settings that the statements name are
/// accepted.
///
/// # Errors
/// [`Refusal`]; then the target must not be applied, not even in part.
pub fn judge(
    target: &TargetState,
    policy: &TargetPolicy,
    context: &JudgementContext<'_>,
) -> Result<AcceptedReleases, Refusal> {
    let mut reasons = Vec::new();
    let mut accepted = context.accepted.clone();
    let mut statements = BTreeMap::new();
    for (uuid, app) in &target.apps {
        if context.accepted.on_device(uuid).is_none() && (context.is_not_ours)(app) {
            continue;
        }
        // An app without a release counts as missing: see below.
        let Some(release) = &app.release else {
            continue;
        };
        match judge_app(app, release, policy, context) {
            Ok((entry, statement)) => {
                accepted.0.insert(uuid.clone(), entry);
                statements.insert(uuid, statement);
            }
            Err(why) => {
                let of_app = |why| format!("app `{}` ({uuid}): {why}", app.name);
                reasons.extend(why.into_iter().map(of_app));
            }
        }
    }
    let stays = |uuid: &AppUuid| {
        let app = target.apps.get(uuid);
        app.is_some_and(|app| app.release.is_some())
    };
    for (uuid, entry) in &mut accepted.0 {
        if entry.is_on_device && !stays(uuid) {
            if policy.removal {
                entry.is_on_device = false;
            } else {
                reasons.push(format!(
                    "app `{uuid}`: it is on the device and not in the target, and the policy does not have `removal = true`"
                ));
            }
        }
    }
    // If an app's statement does not count, it is not known what it allows.
    if reasons.is_empty() {
        reasons = settings(&target.config, &statements);
    }
    if reasons.is_empty() {
        return Ok(accepted);
    }
    Err(Refusal {
        reasons: shortened(reasons),
    })
}

fn judge_app(
    app: &TargetApp,
    release: &TargetRelease,
    policy: &TargetPolicy,
    context: &JudgementContext<'_>,
) -> Result<(AcceptedRelease, Statement), Vec<String>> {
    let one = |why: String| vec![why];
    let text = release.signed_statement.as_deref().ok_or_else(|| {
        one(format!(
            "its release `{}` is not signed: sign it with `fleet sign`",
            release.commit
        ))
    })?;
    let text = SignedText::parse(text).map_err(|error| one(error.to_string()))?;
    let digest = Digest::hash_text(text.statement);
    let before = context.accepted.0.get(&app.uuid);
    let is_known = before.is_some_and(|before| before.statement == digest);
    if !is_known {
        let content = text.statement.as_bytes();
        let signer = signatures::signer(text.signature.as_bytes(), content, &policy.keys);
        signer.map_err(|error| one(signature_problem(&error, policy)))?;
    }
    let statement = Statement::parse(text.statement).map_err(|error| one(error.to_string()))?;
    let version = statement.version;
    match before {
        Some(before) if version < before.version => {
            return Err(one(format!(
                "its statement has the version {version}, but the device has already accepted {}: sign the release again to go back to it",
                before.version
            )));
        }
        Some(before) if version == before.version && !is_known => {
            return Err(one(format!(
                "its statement has the version {version}, but the device has already accepted another statement with that version"
            )));
        }
        _ => {}
    }
    if let Some(expires) = statement.expires_ms
        && !is_known
        && context.ms >= expires
    {
        return Err(one(format!(
            "its statement could be accepted until {}, and it is now {}",
            time(expires),
            time(context.ms)
        )));
    }
    let differences = differences(&statement, app, release);
    if !differences.is_empty() {
        return Err(differences);
    }
    let entry = AcceptedRelease {
        version,
        statement: digest,
        is_on_device: true,
    };
    Ok((entry, statement))
}

fn signature_problem(error: &signatures::SignatureError, policy: &TargetPolicy) -> String {
    let mut problem = format!("the signature of its statement {error}");
    if !policy.unusable.is_empty() {
        problem = format!("{problem} ({})", policy.unusable.join("; "));
    }
    problem
}

/// Returns the settings that do not match the statements.
fn settings(
    config: &BTreeMap<String, String>,
    statements: &BTreeMap<&AppUuid, Statement>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    for name in config.keys() {
        let mut statements = statements.values();
        let is_named = statements.any(|statement| {
            statement.open_settings.contains(name) || statement.settings.contains_key(name)
        });
        if name != ALWAYS_OPEN && !is_named {
            reasons.push(format!(
                "it has the setting `{name}`, which no statement allows"
            ));
        }
    }
    for statement in statements.values() {
        for (name, value) in &statement.settings {
            if !config.contains_key(name) {
                let uuid = &statement.app.uuid;
                reasons.push(format!(
                    "it lacks the setting `{name}`, which is `{value}` in the statement of app `{uuid}`"
                ));
            } else if config.get(name) != Some(value) {
                reasons.push(format!(
                    "its setting `{name}` differs from `{value}`, which is signed"
                ));
            }
        }
    }
    reasons
}

fn time(ms: u64) -> String {
    let timestamp = i64::try_from(ms).map(jiff::Timestamp::from_millisecond);
    match timestamp {
        Ok(Ok(timestamp)) => timestamp.to_string(),
        _ => format!("{ms} ms after 1970"),
    }
}

fn shortened(mut reasons: Vec<String>) -> Vec<String> {
    let more = reasons.len().saturating_sub(MOST_REASONS);
    reasons.truncate(MOST_REASONS);
    for reason in &mut reasons {
        if let Some((end, _)) = reason.char_indices().nth(LONGEST_REASON) {
            reason.truncate(end);
            reason.push('…');
        }
    }
    if more > 0 {
        reasons.push(format!("and {more} more reasons"));
    }
    reasons
}
