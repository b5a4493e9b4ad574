use super::*;

const ALL: [Grammar; 6] = [
    Grammar::C,
    Grammar::Go,
    Grammar::JavaScript,
    Grammar::Python,
    Grammar::Rust,
    Grammar::TypeScript,
];

fn parsed(text: &str, grammar: Grammar) -> SyntaxTree {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    SyntaxTree::read(file.path(), grammar)
}

#[test]
fn words_in_comments_do_not_count() {
    for grammar in ALL {
        let text = if grammar == Grammar::Python {
            "# a\nb = c # d\n"
        } else {
            "// a\nb = c; /* d\n*/ // e"
        };
        let source = parsed(text, grammar);
        let words: Vec<_> = source.words().collect();
        assert_eq!(words, [(2, "b"), (2, "c")], "{grammar:?}");
    }
    let source = parsed("/// a\nfn b() {\n    c!(d, // e\n    f);\n}", Grammar::Rust);
    let words: Vec<_> = source.words().collect();
    assert_eq!(words, [(2, "fn"), (2, "b"), (3, "c"), (3, "d"), (4, "f")]);
}

#[test]
fn identifiers_are_found_in_code_and_not_in_texts() {
    const IDENTIFIERS: &str = "(identifier) @found";
    for (grammar, text) in [
        (Grammar::C, "int a = \"\\\"b /* \" + 'c' /* d */ + e;"),
        (Grammar::Go, "var a = `b\\` + \"c // \" + 'd' + e"),
        (
            Grammar::JavaScript,
            "a = /[/*]b\\/*$/ + \"c // \" + `d${e}\\`f`; // g",
        ),
        (Grammar::TypeScript, "a = 'b /* ' + `${`${e}c`}d` /* f */"),
        (Grammar::Python, "a = 'b # ' + \"\"\"c\n'd\n\"\"\" + e # f"),
        (
            Grammar::Rust,
            "const a: () = b\"c /* \" + r#\"d\"\"# + e /* f /* g */ h */;",
        ),
    ] {
        let source = parsed(text, grammar);
        let found: Vec<&str> = source.find(IDENTIFIERS).map(|found| found.text).collect();
        assert_eq!(found, ["a", "e"], "{text}");
        assert!(!source.has_errors(), "{text}");
    }
}

#[test]
fn the_words_of_a_macro_in_c_are_in_their_lines_and_not_in_comments() {
    let source = parsed(
        "#define A(b) \\\n    c(\"//\", d) // e\nint f;\n",
        Grammar::C,
    );
    let words: Vec<_> = source.words().filter(|(_, word)| word.len() == 1).collect();
    assert_eq!(words, [(1, "A"), (1, "b"), (2, "c"), (2, "d"), (3, "f")]);
}

#[test]
fn a_source_that_takes_too_long_is_incomplete() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a = b\n".repeat(1 << 12)).unwrap();
    for grammar in ALL {
        let source = SyntaxTree::read_within(file.path(), grammar, Duration::ZERO);
        assert!(source.is_incomplete() && source.has_errors());
        assert_eq!(source.words().count(), 0);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_empty() {
    for grammar in ALL {
        let source = SyntaxTree::read(Path::new("/nonexistent"), grammar);
        assert_eq!((source.words().count(), source.has_errors()), (0, false));
    }
}

/// Attack: a source that takes time out of proportion to its length.
#[test]
fn a_long_source_without_sense_is_read_or_given_up() {
    for part in [
        "(",
        "=/[",
        "`${(",
        "r#\"",
        "'",
        "/*",
        "a ",
        "() => new Date(",
        "\n  ",
    ] {
        let text = part.repeat(1 << 12);
        for grammar in ALL {
            let source = parsed(&text, grammar);
            assert!(source.words().count() <= text.len(), "{part}");
        }
    }
}
