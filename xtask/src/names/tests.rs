use super::*;

fn file(path: &str, text: &str) -> TextFile {
    TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn types_that_participles_or_pronouns_name_are_problems() {
    for (line, expected) in [
        ("struct Asked {", Some("Asked")),
        ("    pub(crate) struct Told(u8);", Some("Told")),
        ("pub(in crate::a) enum Wanted {", Some("Wanted")),
        ("pub trait Read {", Some("Read")),
        ("type Kept<'a> = &'a str;", Some("Kept")),
        ("    type Kept = u8;", Some("Kept")),
        ("pub struct Shared;", Some("Shared")),
        ("enum Standing {", Some("Standing")),
        ("    struct Mirrored<'a> {", Some("Mirrored")),
        ("type Needed = u8;", Some("Needed")),
        ("pub(super) struct Gone;", Some("Gone")),
        ("enum Chosen {", Some("Chosen")),
        ("pub(crate) struct Lost(u8);", Some("Lost")),
        ("struct Hidden;", Some("Hidden")),
        ("type Made = u8;", Some("Made")),
        ("struct What {", Some("What")),
        ("pub enum Other<'a> {", Some("Other")),
        ("pub(super) trait Everything {", Some("Everything")),
        ("type One = u8;", Some("One")),
        ("    type Each;", None),
        ("struct OtherDevice {", None),
        ("enum LostConnection {", None),
        ("pub(crate) struct Run {", None),
        ("    type Returned;", None),
        ("    type Returned = Returned;", None),
        ("pub(crate) struct Setting {", None),
        ("pub struct Need {", None),
        ("struct Keyring(u8);", None),
        ("struct AskedQuestion {", None),
        ("struct SampleReading {", None),
        ("    Asked,", None),
        ("// struct Asked", None),
        ("let file: Taken = x;", None),
    ] {
        assert_eq!(meaningless_type_name(line), expected, "{line}");
    }
}

#[test]
fn files_called_mod_rs_are_problems_unless_there_is_a_reason() {
    for (path, is_problem) in [
        ("host/a/src/mod.rs", true),
        ("host/engine/tests/mod.rs", true),
        ("mod.rs", true),
        ("host/engine/tests/suite/mod.rs", false),
        ("host/a/src/mod_files.rs", false),
        ("host/a/src/a_mod.rs", false),
        ("host/mod.rs/a.rs", false),
    ] {
        assert_eq!(is_forbidden_mod_file(path), is_problem, "{path}");
        assert_eq!(check(&[file(path, "")]).is_err(), is_problem, "{path}");
    }
}

#[test]
fn public_types_of_a_crate_with_the_same_name_are_problems() {
    for (path, text, is_problem) in [
        ("a/src/y.rs", "pub enum A {", true),
        ("a/src/y/z.rs", "pub(crate) type A = u8;", true),
        ("a/src/y.rs", "pub trait A<T> {", true),
        ("a/src/y.rs", "pub struct AB;", false),
        ("b/src/y.rs", "pub struct A;", false),
        ("a/b/src/y.rs", "pub struct A;", false),
        ("a/tests/y.rs", "pub struct A;", false),
        ("a/src/y.md", "pub struct A;", false),
        ("a/src/tests.rs", "pub struct A;", false),
        ("a/src/tests/y.rs", "pub struct A;", false),
        ("a/src/y.rs", "struct A;", false),
        ("a/src/y.rs", "pub(super) struct A;", false),
        ("a/src/y.rs", "mod b {\n    pub struct A;", false),
        ("a/src/y.rs", "/*\npub struct A; */", false),
    ] {
        let files = [
            file("a/src/lib.rs", "#[cfg(test)]\nmod tests;\npub struct A;"),
            file(path, text),
        ];
        assert_eq!(duplicates(&files).len() == 1, is_problem, "{path} {text}");
    }
    let in_two_files = |sources: &str| {
        let files = ["x", "y"].map(|name| file(&format!("{sources}{name}.rs"), "pub enum A {"));
        duplicates(&files)
    };
    assert_eq!(
        in_two_files("a/src/"),
        ["a/src/x.rs:1 and a/src/y.rs:1: a type is called `A`"]
    );
    assert!(in_two_files(SDK).is_empty());
}

#[test]
fn modules_for_tests_are_found_by_their_attributes() {
    for (path, text, expected) in [
        ("a/lib.rs", "#[cfg(test)]\nmod tests;", "a/tests"),
        ("a/b.rs", "#[cfg(test)]\npub mod fake;", "a/b/fake"),
        ("a/b.rs", "#[cfg(all(test, c))]\nmod d;", "a/b/d"),
        ("a/b.rs", "#[cfg(feature = \"test\")]\nmod c;", ""),
        ("a/b.rs", "#[cfg(test)]\nmod tests {", ""),
        ("a/b.rs", "#[cfg(test)]\nuse c::C;\nmod c;", ""),
        ("a/b.md", "#[cfg(test)]\nmod tests;", ""),
    ] {
        let modules = test_modules(&file(path, text)).concat();
        assert_eq!(modules, expected, "{path} {text}");
    }
}

#[test]
fn identifiers_that_are_participles_are_problems() {
    for (line, expected) in [
        ("    let told = program.run();", Some("told")),
        ("let mut wanted: Vec<u8> = Vec::new();", Some("wanted")),
        ("if let Some(taken) = x {", Some("taken")),
        ("let (a, said) = x;", Some("said")),
        ("for (heard, expected) in table {", Some("heard")),
        ("fn run(asked: &str) {", Some("asked")),
        ("fn run<'a>(asked: &'a str) {", Some("asked")),
        ("|told| told.len()", Some("told")),
        ("    pub(crate) taken: usize,", Some("taken")),
        ("Step { part, wanted } => part,", Some("wanted")),
        ("async fn told(x: u8) {", Some("told")),
        ("registry.asked().len()", Some("asked")),
        ("mod told;", Some("told")),
        ("let r#told = x;", Some("told")),
        ("let told_so = until_told(x);", None),
        ("let x: Option<Wanted> = TOLD;", None),
    ] {
        assert_eq!(identifier(&code(line)), expected, "{line}");
    }
}

#[test]
fn a_problem_says_where_the_name_is() {
    let text = "use b;\n\nstruct Told;\n";
    assert_eq!(
        problems(&file("host/a.rs", text)),
        ["host/a.rs:3: a type is called `Told`"]
    );
    let text = [
        "/* told",
        "told */",
        "let a = \"told",
        "told\";",
        "let b = r#\"",
        "struct Told;",
        "\"#;",
        "f(told);",
    ]
    .join("\n");
    assert_eq!(
        problems(&file("host/a.rs", &text)),
        ["host/a.rs:8: an identifier is `told`"]
    );
    assert!(problems(&file("docs/a.md", &text)).is_empty());
}
