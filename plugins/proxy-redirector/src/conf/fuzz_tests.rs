//! Files that nobody would write: each is read, and what was read stays the same when it is written and read
//! again.

use fuzz::{corpus, mutated};
use proptest::prelude::*;

use super::parser::WARNINGS;
use super::*;

const CORPUS: &str = include_str!("corpus.txt");
const WORDS: &[&str] = &[
    "redsocks {",
    "base{",
    "}",
    "} ",
    "{",
    ";",
    " = ",
    "=",
    "\"",
    "\\\"",
    "\\",
    "\\n",
    "//",
    "/*",
    "*/",
    "\n",
    "\r\n",
    "\t",
    "\u{b}",
    "login = \"",
    "password = ",
    "ip = ::1;",
    "port = -1;",
    "type = x;",
    "a = \"\";",
    "{{",
    "}}",
    "\u{0}",
    "#",
];

#[test]
fn any_redsocks_conf_is_read_and_written_back_unchanged() {
    fuzz::run(
        "redsocks-conf",
        3000,
        &mutated(corpus(CORPUS), WORDS),
        |text| {
            let ParsedConf { conf, warnings } = parse(&text);
            prop_assert!(warnings.len() <= WARNINGS, "{} warnings", warnings.len());
            for warning in &warnings {
                // A warning names a place but quotes no text: these files contain passwords.
                prop_assert!(
                    warning.len() < 200 && !warning.contains("p@ss"),
                    "{}",
                    warning
                );
            }
            let written = conf.write();
            prop_assert!(
                written.len() <= 8 * (text.len() + 64),
                "{} bytes of {}",
                written.len(),
                text.len()
            );
            let again = parse(&written);
            prop_assert_eq!(again.warnings, Vec::<String>::new());
            prop_assert_eq!(again.conf, conf);
            Ok(())
        },
    );
}
