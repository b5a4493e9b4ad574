//! The display of times, states and sizes on every page.

use maud::{Markup, html};

/// A time of the API (`2026-11-22T00:03:11.123Z`): the script shows how long ago it is, and the exact time on hover.
pub(crate) fn time(at: Option<&str>) -> Markup {
    let Some(at) = at else {
        return html! { span.none { "never" } };
    };
    let exact = exact(at);
    html! { time datetime=(at) title=(exact) { (exact) } }
}

/// Formats a time as `2026-11-22 00:03 UTC`.
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

/// A card with a heading.
pub(crate) fn card(id: &str, heading: &str, contents: &Markup) -> Markup {
    html! {
        section.card.stack aria-labelledby=(id) {
            h2 id=(id) { (heading) }
            (contents)
        }
    }
}

/// A table: its caption, its columns, and after them one for the actions on a row (`last`), whose name is not visible.
pub(crate) fn table(
    caption: &str,
    columns: &[&str],
    last: Option<&str>,
    rows: impl Iterator<Item = Markup>,
) -> Markup {
    html! {
        table.rows {
            caption.hidden { (caption) }
            (head(columns, last))
            tbody { @for row in rows { (row) } }
        }
    }
}

/// The head of a table.
pub(crate) fn head(columns: &[&str], last: Option<&str>) -> Markup {
    html! {
        thead { tr {
            @for name in columns { th scope="col" { (name) } }
            @if let Some(name) = last { th scope="col" { span.hidden { (name) } } }
        } }
    }
}

/// The statuses of devices: the value of `overall_status`, the kind of its [`badge`], and words for people.
pub(crate) const STATUSES: [(&str, &str, &str); 7] = [
    ("operational", "good", "Operational"),
    ("updating", "busy", "Updating"),
    ("configuring", "busy", "Configuring"),
    ("reduced-functionality", "wary", "Reduced functionality"),
    ("disconnected", "bad", "Disconnected"),
    ("inactive", "none", "Inactive"),
    ("post-provisioning", "busy", "Setting up"),
];

/// The status of a device.
pub(crate) fn status(overall: &str) -> Markup {
    let status = STATUSES.iter().find(|(state, ..)| *state == overall);
    let (_, kind, word) = status.copied().unwrap_or((overall, "none", overall));
    badge(kind, word)
}

/// The result of a build.
pub(crate) fn build(status: &str) -> Markup {
    let (kind, word) = match status {
        "success" => ("good", "Success"),
        "running" => ("busy", "Building"),
        "failed" => ("bad", "Failed"),
        "error" => ("bad", "Error"),
        "cancelled" => ("wary", "Cancelled"),
        "interrupted" => ("wary", "Interrupted"),
        other => ("none", other),
    };
    badge(kind, word)
}

/// The progress of something, in percent.
pub(crate) fn progress(of: &str, percent: i64) -> Markup {
    let percent = percent.clamp(0, 100);
    html! {
        span.progress {
            progress max="100" value=(percent) aria-label=(of) {}
            span { (percent) " %" }
        }
    }
}

/// Formats a number of bytes for people.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_shown_in_short_form() {
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
    }
}
