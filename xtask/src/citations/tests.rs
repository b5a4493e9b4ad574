//! Texts of files, and the problems found in them.

use super::*;

const PAGE: &str =
    "# Locks\n\n<a id=\"locks\"></a>\n## Locks\n\n<a id=\"locks-files\"></a>\nA file.\n";

/// Returns the problems of a file `path` next to a page `docs/spec/device.md`.
fn found(path: &str, text: &str) -> Vec<String> {
    let file = |path: &str, text: &str| TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    problems(&[file("docs/spec/device.md", PAGE), file(path, text)])
}

#[test]
fn a_citation_resolves_or_is_a_problem() {
    for (text, problem) in [
        ("/// Locks (docs/spec/device.md#locks-files).", None),
        (
            "/// docs/spec/device.md#locks, docs/spec/device.md#locks-files: both.",
            None,
        ),
        (
            "//! As it stands in docs/spec/device.md#lock-files.",
            Some("cites `docs/spec/device.md#lock-files`, which that page does not define"),
        ),
        (
            "// docs/spec/devices.md#locks",
            Some("cites `docs/spec/devices.md`, which does not exist"),
        ),
        (
            "// docs/spec/device.md",
            Some("cites `docs/spec/device.md` without an anchor"),
        ),
    ] {
        let expected: Vec<String> = problem
            .map(|problem| format!("host/a.rs:1: {problem}"))
            .into_iter()
            .collect();
        assert_eq!(found("host/a.rs", text), expected, "{text}");
    }
}

#[test]
fn prose_may_name_a_page_but_no_rule_that_is_not_there() {
    assert_eq!(found("README.md", "[it](docs/spec/device.md)"), [""; 0]);
    assert_eq!(
        found("README.md", "\n[it](docs/spec/device.md#key)"),
        ["README.md:2: cites `docs/spec/device.md#key`, which that page does not define"]
    );
}

#[test]
fn a_citation_of_the_old_form_is_a_problem_wherever_it_breaks() {
    for (text, shown) in [
        (
            "/// It holds (device behaviour 4.8).",
            "(device behaviour 4.8).",
        ),
        (
            "/// It holds (device\n/// behaviour 4.8).",
            "(device behaviour 4.8).",
        ),
        (
            "/// It holds (device behaviour, Decisions).",
            "(device behaviour, Decisions).",
        ),
        (
            "/// It holds (device behaviour section 9).",
            "(device behaviour section",
        ),
        (
            "/// It holds (device API, \"Limits\").",
            "(device API, \"Limits\").",
        ),
        (
            "//! It holds (cloud behaviour 2; row).",
            "(cloud behaviour 2;",
        ),
        ("let a = 1; // between devices (4.6).", "(4.6)."),
        ("/// A credential (section 0).", "(section 0)."),
    ] {
        assert_eq!(
            found("host/a.rs", text),
            [format!(
                "host/a.rs:1: cites a page that is not here: `{shown}`"
            )],
            "{text}"
        );
    }
}

#[test]
fn ordinary_numbers_and_words_are_no_citations() {
    for text in [
        "/// The device behaviour that clients see.",
        "/// The words of the device API, which others share.",
        "let half = json!(0.5); // of 1.5 (RFC 6455, 5.3)",
        "assert_eq!(round(2.5), 3);",
        "call (2.5)",
        "/// Since API 1.44 (Docker 28.1.0).",
    ] {
        assert_eq!(found("host/a.rs", text), [""; 0], "{text}");
    }
}

#[test]
fn an_anchor_is_defined_once_and_pages_link_to_what_they_define() {
    let page = "# Who calls\n<a id=\"reports\"></a>\n<a id=\"reports\"></a>\n[a](#reports) [b](#report) \
                [c](device.md#locks) [d](device.md#key) [e](../cloud-api.md#any) [f](device.md) [g](#who-calls) \
                [h](https://example.com/#any)\n";
    assert_eq!(
        found("docs/spec/cloud.md", page),
        [
            "docs/spec/cloud.md:3: defines `reports` a second time",
            "docs/spec/cloud.md:4: links to `#report`, which is not there",
            "docs/spec/cloud.md:4: links to `device.md#key`, which is not there",
            "docs/spec/cloud.md:4: links to `../cloud-api.md#any`, which is not there",
        ]
    );
    // The same name on two pages is not ambiguous: citations name the page.
    assert_eq!(found("docs/spec/cloud.md", "<a id=\"locks\"></a>"), [""; 0]);
}

#[test]
fn the_citations_of_this_repository_resolve() {
    check(crate::text_files::all().unwrap()).unwrap();
}
