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

/// A secret that is shown this once.
pub(crate) fn once(what: &str, secret: &str) -> Markup {
    html! {
        div.once {
            p { (what) ", shown this once:" }
            p.line {
                code { (secret) }
                button.small type="button" data-copy=(secret) { "Copy" }
            }
        }
    }
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

/// So many bytes, as people say them.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut left = bytes;
    let mut rest = 0;
    let mut unit = 0;
    while left >= 1000 && unit + 1 < UNITS.len() {
        rest = left % 1000 / 100;
        left /= 1000;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if left < 10 && unit > 0 {
        format!("{left}.{rest} {name}")
    } else {
        format!("{left} {name}")
    }
}

/// The first characters of a hash, with all of them on hover.
pub(crate) fn short(hash: &str) -> Markup {
    let first: String = hash.chars().take(7).collect();
    html! { code title=(hash) { (first) } }
}

/// How a release is called: its version where it has one of its own, else the beginning of its commit.
pub(crate) fn release_name(commit: &str, version: &str) -> String {
    if version.is_empty() || version.starts_with("0.0.0") {
        commit.chars().take(7).collect()
    } else {
        version.chars().take(40).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_times_and_releases_are_said_shortly() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1999, "1.9 kB"),
            (74_400_000, "74 MB"),
            (9_007_199_254_740_993, "9007 TB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(exact("2026-11-22T00:03:11.123Z"), "2026-11-22 00:03 UTC");
        assert_eq!(exact("ü"), "ü");
        assert_eq!(release_name("f7caf4f0a1", "0.0.0"), "f7caf4f");
        assert_eq!(release_name("f7caf4f0a1", "1.2.3+rev4"), "1.2.3+rev4");
    }
}
