//! Labels: the user's, with older namespaces rewritten, and the supervisor's, which cannot be
//! overridden (docs/spec/device.md#compose-older-labels, docs/spec/device.md#container-labels).

use std::collections::BTreeMap;
use std::time::Duration;

use super::service_context::ServiceContext;
use crate::{Branding, DeviceFacts, TargetApp, UpdateStrategy, truthy_text};

/// How long a hand-over may take if no label sets it (docs/spec/device.md#hand-over).
pub const HANDOVER_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the user's labels: `io.<old>.…` becomes `io.platform.…`, also as a word within the rest,
/// for each alias that the branding lists. A label in the new form takes precedence over the same
/// one in an older form.
pub(super) fn rewrite_user_labels(
    given: BTreeMap<String, String>,
    branding: &Branding,
) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut rewritten = BTreeMap::new();
    for (name, value) in given {
        match in_our_namespace(&name, branding) {
            Some(ours) => rewritten.insert(ours, value),
            None => labels.insert(name, value),
        };
    }
    for (name, value) in rewritten {
        labels.entry(name).or_insert(value);
    }
    labels
}

/// Rewrites an older label: `OLD_` in the branding's aliases stands for the namespace `io.old`, as
/// `PLATFORM_` does for `io.platform`.
fn in_our_namespace(name: &str, branding: &Branding) -> Option<String> {
    let (root, word) = branding.label_namespace.rsplit_once('.')?;
    branding.aliases.iter().find_map(|alias| {
        let old = alias.trim_end_matches('_').to_ascii_lowercase();
        let rest = name
            .strip_prefix(root)?
            .strip_prefix('.')?
            .strip_prefix(&old)?
            .strip_prefix('.')?;
        Some(format!(
            "{}.{}",
            branding.label_namespace,
            rest.split('.')
                .map(|part| part
                    .split('-')
                    .map(|part| if part == old { word } else { part })
                    .collect::<Vec<_>>()
                    .join("-"))
                .collect::<Vec<_>>()
                .join(".")
        ))
    })
}

/// Returns the labels that mark an object as belonging to one app.
pub(super) fn app_labels(app: &TargetApp, facts: &DeviceFacts) -> BTreeMap<String, String> {
    let mut labels = facts.branding.device_labels(&facts.uuid);
    labels.insert(facts.branding.label("app-id"), app.id.to_string());
    labels.insert(facts.branding.label("app-uuid"), app.uuid.to_string());
    labels
}

/// Returns the labels that mark a container as belonging to one service.
pub(super) fn service_labels(place: ServiceContext<'_>) -> BTreeMap<String, String> {
    let ServiceContext { service, facts, .. } = place;
    let branding = &facts.branding;
    let mut labels = app_labels(place.app, facts);
    labels.insert(branding.label("service-id"), service.id.to_string());
    labels.insert(branding.label("service-name"), service.name.to_string());
    labels
}

/// The rules for updating a service (docs/spec/device.md#update-strategies).
pub(super) struct UpdateRules {
    pub(super) strategy: UpdateStrategy,
    pub(super) handover_timeout: Duration,
    pub(super) requires_reboot: bool,
}

impl UpdateRules {
    pub(super) fn from_labels(labels: &BTreeMap<String, String>, branding: &Branding) -> Self {
        let get = |name: &str| labels.get(&branding.label(name)).map(String::as_str);
        UpdateRules {
            strategy: match get("update.strategy") {
                Some("kill-then-download") => UpdateStrategy::KillThenDownload,
                Some("delete-then-download") => UpdateStrategy::DeleteThenDownload,
                Some("hand-over") => UpdateStrategy::HandOver,
                _ => UpdateStrategy::DownloadThenKill,
            },
            handover_timeout: get("update.handover-timeout")
                .and_then(|text| text.trim().parse().ok())
                .filter(|milliseconds| *milliseconds > 0)
                .map_or(HANDOVER_TIMEOUT, Duration::from_millis),
            requires_reboot: get("update.requires-reboot").is_some_and(truthy_text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn older_namespaces_are_rewritten_where_the_branding_lists_them() {
        let branding = Branding {
            aliases: vec!["OLD_".into()],
            ..Branding::default()
        };
        let given = labels(&[
            ("io.old.features.old-api", "1"),
            ("io.old.update.strategy", "hand-over"),
            ("io.platform.update.strategy", "kill-then-download"),
            ("io.older.x", "kept"),
            ("com.example.old", "kept"),
        ]);
        assert_eq!(
            rewrite_user_labels(given.clone(), &branding),
            labels(&[
                ("io.platform.features.platform-api", "1"),
                ("io.platform.update.strategy", "kill-then-download"),
                ("io.older.x", "kept"),
                ("com.example.old", "kept"),
            ])
        );
        assert_eq!(
            rewrite_user_labels(given.clone(), &Branding::default()),
            given
        );
    }

    #[test]
    fn update_rules_fall_back_to_their_defaults() {
        for (strategy, timeout, reboot, expected) in [
            (
                "hand-over",
                "1500",
                "1",
                (UpdateStrategy::HandOver, 1500, true),
            ),
            (
                "delete-then-download",
                "0",
                "0",
                (UpdateStrategy::DeleteThenDownload, 60_000, false),
            ),
            (
                "kill-then-download",
                "-5",
                "",
                (UpdateStrategy::KillThenDownload, 60_000, false),
            ),
            (
                "something",
                "soon",
                "x",
                (UpdateStrategy::DownloadThenKill, 60_000, false),
            ),
        ] {
            let rules = UpdateRules::from_labels(
                &labels(&[
                    ("io.platform.update.strategy", strategy),
                    ("io.platform.update.handover-timeout", timeout),
                    ("io.platform.update.requires-reboot", reboot),
                ]),
                &Branding::default(),
            );
            assert_eq!(
                (
                    rules.strategy,
                    rules.handover_timeout.as_millis(),
                    rules.requires_reboot
                ),
                expected
            );
        }
    }
}
