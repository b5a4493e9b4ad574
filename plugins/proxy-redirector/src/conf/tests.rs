use proptest::prelude::*;

use super::parser::WARNINGS;
use super::*;

fn block(name: &str, fields: &[(&str, &str)]) -> Block {
    let fields = fields
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Block {
        name: name.to_owned(),
        fields: fields.collect(),
    }
}

/// Returns the value that `line` in a block gives to its key; `None` if the line is skipped.
fn value_of(line: &str) -> Option<String> {
    let parsed = parse(&format!("redsocks {{\n{line}\n\tlast = on;\n}}\n"));
    let block = parsed.conf.block("redsocks").unwrap();
    assert_eq!(block.get("last"), Some("on"), "{line}: {parsed:?}");
    let found = block.fields.iter().find(|(key, _)| key != "last");
    assert_eq!(found.is_none(), !parsed.warnings.is_empty(), "{line}");
    found.map(|(_, value)| value.clone())
}

#[test]
fn values_are_read_as_redsocks_reads_them_and_as_older_programs_wrote_them() {
    for (line, expected) in [
        ("\tport = 1080;", Some("1080")),
        ("port=1080;", Some("1080")),
        ("port\n=\n1080\n;", Some("1080")),
        ("ip = 10.0.0.1;", Some("10.0.0.1")),
        (
            "ip = proxy-1.example.org; // ours",
            Some("proxy-1.example.org"),
        ),
        ("ip = 3proxy.example;", Some("3proxy.example")),
        ("login = \"bob\";", Some("bob")),
        ("login = \"\";", Some("")),
        ("password = \"a } b\";", Some("a } b")),
        ("password = \"} \";", Some("} ")),
        ("password = \"a;b{c}d\";", Some("a;b{c}d")),
        (
            "password = \"say \\\"hi\\\" \\\\ \\t\";",
            Some("say \"hi\" \\ \t"),
        ),
        ("password = \"// no comment\";", Some("// no comment")),
        ("password = \"pa\"ss\";", Some("pa\"ss")),
        ("password = \"a\\bc\";", Some("a\\bc")),
        ("password = p@ss}word;", Some("p@ss}word")),
        ("port = 1080; \r", Some("1080")),
        ("port = 1080", None),
        ("port 1080;", None),
        ("= 1080;", None),
        ("port = ;", None),
        ("login = \"open", None),
        ("}x = 1;", None),
        ("\u{0}\u{1};", None),
        ("über = 1;", None),
    ] {
        assert_eq!(value_of(line).as_deref(), expected, "{line:?}");
    }
}

#[test]
fn several_assignments_may_stand_in_a_line_and_the_last_of_a_key_counts() {
    let parsed = parse("a { x = 1; y = 2; x = 3; }");
    assert_eq!(parsed.warnings, [""; 0]);
    let block = parsed.conf.block("a").unwrap();
    assert_eq!((block.get("x"), block.get("y")), (Some("3"), Some("2")));
}

#[test]
fn text_outside_blocks_is_skipped_with_a_warning_that_has_its_line_but_not_its_text() {
    let text = "secret words\n/* a { */\nbase { log = stderr; }\n}\nredsocks {\n ip = 1;\n";
    let parsed = parse(text);
    assert_eq!(parsed.conf.blocks, [block("base", &[("log", "stderr")])]);
    assert_eq!(
        parsed.warnings,
        [
            "line 1 is not a block, and was skipped",
            "line 4 closes a block that was not opened, and was skipped",
            "the block `redsocks` that begins on line 5 is not closed, and was skipped",
        ]
    );
    assert_eq!(parse(&"?\n".repeat(10_000)).warnings.len(), WARNINGS);
    assert_eq!(parse("/* never closed").conf, Conf::default());
}

#[test]
fn setting_a_field_keeps_its_place_and_the_others() {
    let mut block = block("b", &[("x", "1"), ("y", "2"), ("x", "3")]);
    block.set("x", "4");
    block.set("z", "5");
    block.set_default("y", "6");
    block.remove("nothing");
    assert_eq!(
        block,
        self::block("b", &[("x", "4"), ("y", "2"), ("z", "5")])
    );
}

fn word() -> impl Strategy<Value = String> {
    "[A-Za-z][A-Za-z0-9_.-]{0,12}"
}

fn conf() -> impl Strategy<Value = Conf> {
    let value = prop_oneof![any::<String>(), word(), "[0-9.]{1,15}", "[ -~]{0,20}"];
    let key = prop_oneof![
        word(),
        Just("login".to_owned()),
        Just("password".to_owned())
    ];
    let fields = proptest::collection::vec((key, value), 0..6);
    let block = (word(), fields).prop_map(|(name, fields)| Block { name, fields });
    proptest::collection::vec(block, 0..4).prop_map(|blocks| Conf { blocks })
}

proptest! {
    #[test]
    fn written_files_are_parsed_back_unchanged(conf in conf()) {
        let parsed = parse(&conf.write());
        prop_assert_eq!(parsed.warnings, Vec::<String>::new());
        prop_assert_eq!(parsed.conf, conf);
    }

    #[test]
    fn no_text_breaks_the_parser(text in any::<String>()) {
        parse(&text);
    }

    #[test]
    fn nor_does_one_of_the_formats_own_characters(text in "[a-b0{}=;\"/*\\\\ \n\t]{0,60}") {
        let once = parse(&text).conf;
        prop_assert_eq!(parse(&once.write()).conf, once);
    }
}
