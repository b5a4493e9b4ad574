use super::*;

/// Returns the problems of a crate with these files, each given by its path and its text.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| TextFile {
        path: format!("x/src/{path}.rs"),
        text: (*text).to_owned(),
    });
    let files: Vec<TextFile> = files.collect();
    let problems = Crate::new("x/src/", &files).problems();
    problems.into_iter().collect()
}

#[test]
fn a_circle_is_found_whatever_the_form_of_its_imports() {
    let back = ("b", "use crate::a::A;");
    for (a, b, expected) in [
        (("a", "use crate::b::B;"), back, "a.rs -> b.rs -> a.rs"),
        (("a", "use super::b::B;"), back, "a.rs -> b.rs -> a.rs"),
        (("a", "use super::b;"), back, "a.rs -> b.rs -> a.rs"),
        (("a", "use crate::b::*;"), back, "a.rs -> b.rs -> a.rs"),
        (
            ("a", "use crate::{b::{self, B}, c};"),
            back,
            "a.rs -> b.rs -> a.rs",
        ),
        (
            ("a", "use std::{\n    io,\n};\nuse crate::b;"),
            back,
            "a.rs -> b.rs -> a.rs",
        ),
        (
            ("a", "fn a() -> crate::b::B {}"),
            back,
            "a.rs -> b.rs -> a.rs",
        ),
        (
            ("a", "fn a() { super::b::b() }"),
            back,
            "a.rs -> b.rs -> a.rs",
        ),
        (
            ("a", "use crate::b;\nfn a() { b::c::d() }"),
            ("b/c", "use crate::a;"),
            "a.rs -> b/c.rs -> a.rs",
        ),
        (
            ("d/a", "use super::b;"),
            ("d/b", "use super::super::d::a;"),
            "d/a.rs -> d/b.rs -> d/a.rs",
        ),
    ] {
        let expected = format!("{expected} (2 files import each other)");
        let modules = [("b", ""), a, b];
        assert_eq!(problems(&modules), [expected], "{a:?}");
    }
}

#[test]
fn a_circle_is_found_through_what_the_root_exports_again() {
    let back = ("b", "use crate::a::A;");
    for root in [
        "pub use b::B;",
        "pub use b::{B, C};",
        "pub use self::b::B;",
        "pub use b::D as B;",
        "pub use b::{D as B, C};",
    ] {
        let files = [("lib", root), ("a", "use crate::B;"), back, ("main", "")];
        let expected = "a.rs -> b.rs -> a.rs (2 files import each other)";
        assert_eq!(problems(&files), [expected], "{root}");
    }
    let files = [
        ("lib", "use b::C;\nstruct B;"),
        ("a", "use crate::B;"),
        back,
    ];
    assert!(problems(&files).is_empty());
}

#[test]
fn a_circle_of_parts_is_found_through_what_their_file_exports_again() {
    let files = [
        (
            "a",
            "mod b;\nmod c;\npub(crate) use b::B;\npub(crate) use c::C;",
        ),
        ("a/b", "use super::C;"),
        ("a/c", "use super::B;"),
    ];
    let expected = "a/b.rs -> a/c.rs -> a/b.rs (2 files import each other)";
    assert_eq!(problems(&files), [expected]);
    // What a file only calls, it does not export.
    let files = [
        ("a", "mod b;\nmod c;\nfn d() { c::d() }"),
        ("a/b", "fn e() { super::d() }"),
        ("a/c", "use super::b::e;"),
    ];
    assert!(problems(&files).is_empty());
}

#[test]
fn every_crate_is_checked() {
    let paths = [
        "a/src/lib.rs",
        "a/src/main.rs",
        "a/src/b.rs",
        "a/lib.rs",
        "c/d/src/main.rs",
    ];
    let files = paths.map(|path| TextFile {
        path: path.to_owned(),
        text: String::new(),
    });
    let found: Vec<&str> = folders(&files).into_iter().collect();
    assert_eq!(found, ["a/src/", "c/d/src/"]);
}

#[test]
fn text_that_is_not_an_import_makes_no_circle() {
    for a in [
        "",
        "mod b;",
        "// use crate::b;",
        "/// [`crate::b::B`]",
        "use b::B;",
        "use std::b::B;",
        "fn a(b: B) {}\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}",
    ] {
        let files = [
            ("a", a),
            ("b", "use crate::a::A;"),
            (
                "lib",
                "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\npub use b::B;",
            ),
            ("tests/c", "use super::d;"),
            ("tests/d", "use super::c;"),
        ];
        assert!(problems(&files).is_empty(), "{a:?}");
    }
}

#[test]
fn a_file_and_its_parts_may_import_each_other_but_hide_no_other_circle() {
    let whole = ("a", "mod b;\nmod c;\npub(crate) use self::b::B;");
    let part = ("a/b", "use super::A;");
    for (more, expected) in [
        (&[("d", "use crate::a::B;")][..], None),
        (
            &[("a/b", "use super::{A, c};"), ("a/c", "use super::b::B;")],
            Some("a/b.rs -> a/c.rs -> a/b.rs (2 files import each other)"),
        ),
        (
            &[("a/b", "use crate::d::D;"), ("d", "use crate::a::A;")],
            Some("a.rs -> a/b.rs -> d.rs -> a.rs (3 files import each other)"),
        ),
        (
            &[("a/b", "use crate::d::D;"), ("d", "use crate::a::B;")],
            Some("a/b.rs -> d.rs -> a/b.rs (2 files import each other)"),
        ),
    ] {
        let files = [whole, part].into_iter().chain(more.iter().copied());
        // Another content of a file replaces the first one.
        let files: BTreeMap<&str, &str> = files.collect();
        let files: Vec<(&str, &str)> = files.into_iter().collect();
        assert_eq!(problems(&files), Vec::from_iter(expected), "{more:?}");
    }
}
