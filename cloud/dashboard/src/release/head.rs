//! The head of a release's page, and its signature.

use jiff::Timestamp;
use maud::{Markup, html};
use signed_targets::{SignedText, Statement};

use super::row::Release;
use crate::fleet::Fleet;
use crate::show::{self, badge};

/// The head of its page.
pub(super) fn head(fleet: &Fleet, release: &Release) -> Markup {
    let place = format!("{}/target", fleet.place());
    html! {
        header.head {
            div {
                h1 { "Release " (release.name.text()) }
                p { (release.state.badges(release.is_target())) }
            }
            @if fleet.may_change && release.state.can_be_target() && !release.is_pin() {
                form method="post" action=(place) hx-post=(place) hx-target="#result" hx-sync="this:drop" {
                    input type="hidden" name="release" value=(release.name.id);
                    button.primary type="submit" { "Pin the fleet to this release" }
                }
            }
        }
        @if release.state.is_invalidated {
            p.notice.bad {
                "It can no longer become a target."
                @if let Some(why) = release.invalidation_reason.as_deref().filter(|why| !why.is_empty()) { " " (why) }
            }
        }
        dl.facts.card {
            div { dt { "Commit" } dd { code { (release.name.commit) } } }
            div { dt { "Version" } dd { (release.semver) } }
            div { dt { "Created" } dd { (show::time(release.build.start_timestamp.as_deref())) } }
            @if release.build.end_timestamp.is_some() {
                div { dt { "Ended" } dd { (show::time(release.build.end_timestamp.as_deref())) } }
            }
            @for author in &release.author { div { dt { "By" } dd { (author.username) } } }
            @if let Some(text) = &release.signed_statement { div { dt { "Signed" } dd { (signed(text)) } } }
            div { dt { "Built" } dd { @if release.source == "local" { "Locally" } @else { "In the cloud" } } }
        }
    }
}

/// Shows the key of the signature and when it expires. Only devices can check the signature: the cloud does not have
/// the owners' keys.
fn signed(text: &str) -> Markup {
    let parts = SignedText::parse(text).ok();
    let key = parts.and_then(|parts| parts.key_id());
    let statement = parts.and_then(|parts| Statement::parse(parts.statement).ok());
    let (Some(key), Some(statement)) = (key, statement) else {
        return html! { (badge("bad", "Unreadable")) " devices that require a signature refuse it" };
    };
    let time = |ms: u64| {
        let time = i64::try_from(ms).ok()?;
        Some(Timestamp::from_millisecond(time).ok()?.to_string())
    };
    html! {
        "By the key " code { (key) }
        @if let Some(expires) = statement.expires_ms {
            ", valid until " (show::time(time(expires).as_deref()))
        }
        span.under { "Devices check it; the cloud does not" }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_release_says_by_which_key_it_is_signed_and_until_when() {
        // `Ed`, the number of the key with its last byte first, and a signature.
        let signature = "untrusted comment: of a release\nRUQBAgMEBQYHCAAAAAAAAAAA\ntrusted comment: now\nAAAA\n";
        let statement = json!({
            "format": "signed-target/1", "app": { "uuid": "1", "id": 1, "class": "fleet" },
            "release": { "commit": "c1", "id": 2 }, "version": 3, "expires_ms": 1_900_000_000_000_u64,
            "services": {}, "volumes": {}, "networks": {}, "settings": {}, "open_settings": [],
        });
        let text = signed(&format!("{signature}{statement}")).into_string();
        assert!(text.contains("<code>0807060504030201</code>"), "{text}");
        assert!(text.contains("2030-03-17 17:46 UTC"), "{text}");
        let text = signed("<script>").into_string();
        assert!(
            text.contains("Unreadable") && !text.contains("script"),
            "{text}"
        );
    }
}
