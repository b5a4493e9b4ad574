//! How things look on every page: times, states, sizes.

use maud::{Markup, html};

/// A time of the API (`2026-11-22T00:03:11.123Z`): the script says how long ago it is, and shows the exact one on
/// hover.
pub(crate) fn time(at: Option<&str>) -> Markup {
    let Some(at) = at else {
        return html! { span.none { "never" } };
    };
    let exact = exact(at);
    html! { time datetime=(at) title=(exact) { (exact) } }
}

/// `2026-11-22 00:03 UTC`.
pub(crate) fn exact(at: &str) -> String {
    match (at.get(..10), at.get(11..16)) {
        (Some(day), Some(minute)) => format!("{day} {minute} UTC"),
        _ => at.to_owned(),
    }
}

/// A state in a word, with a colour: `kind` is `good`, `bad`, `busy`, `wary` or `none`.
pub(crate) fn badge(kind: &str, word: &str) -> Markup {
    html! { span.badge.(kind) { (word) } }
}

/// How a device fares, as `overall_status` has it, in words for people.
pub(crate) fn status(overall: &str) -> Markup {
    let (kind, word) = match overall {
        "operational" => ("good", "Operational"),
        "updating" => ("busy", "Updating"),
        "configuring" => ("busy", "Configuring"),
        "post-provisioning" => ("busy", "Setting up"),
        "reduced-functionality" => ("wary", "Reduced functionality"),
        "disconnected" => ("bad", "Disconnected"),
        "inactive" => ("none", "Inactive"),
        other => ("none", other),
    };
    badge(kind, word)
}

/// How far something is, in percent.
pub(crate) fn progress(of: &str, percent: i64) -> Markup {
    let percent = percent.clamp(0, 100);
    html! {
        span.progress {
            progress max="100" value=(percent) aria-label=(of) {}
            span { (percent) " %" }
        }
    }
}

/// The first characters of a hash, with all of them on hover.
pub(crate) fn short(hash: &str) -> Markup {
    let first: String = hash.chars().take(7).collect();
    html! { code title=(hash) { (first) } }
}

/// How a release is called: its version where it has one of its own, else the beginning of its commit.
pub(crate) fn release_name(commit: &str, version: &str) -> String {
    match version.is_empty() || version.starts_with("0.0.0") {
        true => commit.chars().take(7).collect(),
        false => version.chars().take(40).collect(),
    }
}
