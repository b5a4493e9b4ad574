//! Requests that would end a call if the SDKs did not answer them: bytes that are not text in a message, JSON that is
//! nested too deep for the parser of the language, and half of a surrogate pair. And values of a query that a parser might
//! leave out or cut, so that the handler would not see that they are wrong. Sent to the examples, which are built already.

use crate::author::Author;

/// No whole numbers: an invalid escape, the separator of other parsers, a zero, at which a string of C ends, and blanks.
const NO_NUMBERS: [&str; 5] = ["1%2", "1;2", "5%00x", "+5", "%095"];

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
    for value in NO_NUMBERS {
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
    let expected = format!("{} passed, 0 failed", 3 + NO_NUMBERS.len() + bodies.len());
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
