//! Requests that would end a call if the SDKs did not answer them: bytes that are not text in a message, JSON that is
//! nested too deep for the parser of the language, and half of a surrogate pair. And values of a query that a parser might
//! leave out or cut, so that the handler would not see that they are wrong. Sent to the examples, which are built already.

use std::fmt::Write as _;

use serde::Deserialize;

use crate::author::Author;

/// No whole numbers: an invalid escape, the separator of other parsers, and a blank.
const NO_NUMBERS: [&str; 3] = ["1%2", "1;2", "+5"];

/// Texts for numbers, which the tests of the SDKs for Rust, Python and JavaScript also read.
const NUMBERS: &str = include_str!("../../../tests/numbers.json");

#[derive(Deserialize)]
struct NumberTable {
    whole: NumberTexts,
}

#[derive(Deserialize)]
struct NumberTexts {
    accepted: Vec<(String, i64)>,
    refused: Vec<String>,
}

/// Writes a text for a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        let _ = write!(escaped, "%{byte:02X}");
    }
    escaped
}

/// Returns values of a query that are no whole numbers, and some that are 0.
fn numbers(language: &str) -> (Vec<String>, Vec<String>) {
    let table: NumberTable = serde_json::from_str(NUMBERS).unwrap();
    let mut refused: Vec<String> = NO_NUMBERS.map(str::to_owned).into();
    refused.extend(table.whole.refused.iter().map(|text| escaped(text)));
    // More than 64 bits, which a number in Python may have.
    if language != "python" {
        refused.push("9223372036854775808".to_owned());
    }
    let zeros = table.whole.accepted.iter().filter(|(text, value)| {
        // The example in Rust takes a type without negative numbers.
        *value == 0 && (language != "rust" || !text.starts_with('-'))
    });
    (refused, zeros.map(|(text, _)| escaped(text)).collect())
}

/// Checks that the example in this language refuses such requests, and reads those whole that contain a zero.
pub(crate) fn are_refused(author: &Author, language: &str) {
    let name = format!("hello-{language}");
    let mut tests = format!(
        "[[request]]\nget = \"/v3/{name}/Ada?language=%FF\"\nanswer = {{ status = 404, contains = [\"in `\u{fffd}`\"] }}\n"
    );
    // A string of C cannot contain it.
    let zero = if language == "c" {
        "\u{fffd}"
    } else {
        "\\\\u0000"
    };
    for (path, expected) in [
        ("Ada%00x", format!("Hello, Ada{zero}x!")),
        // The name of another parameter.
        ("Ada?language%00=fr", "Hello, Ada!".to_owned()),
    ] {
        tests += &format!(
            "\n[[request]]\nget = \"/v3/{name}/{path}\"\nanswer = {{ status = 200, contains = [\"{expected}\"] }}\n"
        );
    }
    let (refused, zeros) = numbers(language);
    for value in &zeros {
        tests += &format!(
            "\n[[request]]\nget = \"/v3/{name}/Ada/countdown?seconds={value}\"\nanswer = {{ status = 200 }}\n"
        );
    }
    for value in &refused {
        tests += &format!(
            "\n[[request]]\nget = \"/v3/{name}/Ada/countdown?seconds={value}\"\nanswer = {{ status = 400, contains = [\"query parameter `seconds` \"] }}\n"
        );
    }
    let bodies = bodies(language);
    for (body, expected) in &bodies {
        tests += &format!(
            "\n[[request]]\npost = \"/v3/{name}/orders\"\nbody = '{body}'\nanswer = {{ status = 400, contains = [{expected:?}] }}\n"
        );
    }
    author.write(&format!("{name}/test/hello.toml"), &tests);
    let passed = author
        .run_in(&name, &format!("test {name}.wasm"))
        .succeeds();
    let requests = 3 + zeros.len() + refused.len() + bodies.len();
    let expected = format!("{requests} passed, 0 failed");
    assert!(passed.out.contains(&expected), "{}", passed.out);
}

/// Returns bodies, each with a part of the answer. The SDK for C reads no JSON.
fn bodies(language: &str) -> Vec<(String, &'static str)> {
    if language == "c" {
        return Vec::new();
    }
    let too_deep = "nested more than 128 deep";
    let (too_deep, half) = match language {
        // The package encoding/json replaces it.
        "go" => (too_deep, "`count` must be at least 1"),
        // The first bracket that the type does not have ends the reading.
        "rust" => ("invalid type: ", "unexpected end of hex escape"),
        _ => (too_deep, "which is not text"),
    };
    vec![
        ("[".repeat(500_000), too_deep),
        ("{\"item\":".repeat(100_000), too_deep),
        ("[".repeat(5000) + &"]".repeat(5000), too_deep),
        ("{\"item\":\"\\ud800\",\"count\":0}".to_owned(), half),
    ]
}
