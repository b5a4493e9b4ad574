//! `test`: requests and answers in files.

use tests::guest;

use crate::author::Author;

#[test]
fn answers_are_compared_and_differences_name_file_and_line() {
    let author = Author::new();
    let greeter = guest("greeter").display().to_string();
    author.write("device.toml", "[device]\nname = \"shelf 4\"\n");
    author.write(
        "greeter.toml",
        r#"device = "device.toml"

[[request]]
get = "/v3/greet/Ada?greeting=Hi"
answer = { status = 200, json = { greeting = "Hi, Ada! I am shelf 4." } }

[[request]]
post = "/v3/greet/Ada"
json = { greeting = "" }
answer = { status = 400, contains = ["`greeting` is empty"] }
"#,
    );
    let words = format!("test {greeter} --file greeter.toml");
    let passed = author.run(&words).succeeds();
    assert!(passed.out.contains("2 passed, 0 failed"), "{}", passed.out);

    author.edit("greeter.toml", "shelf 4.", "shelf 5.");
    author.edit("greeter.toml", "is empty", "is full");
    let failed = author.run(&words).fails();
    for line in [
        "failed greeter.toml:3 GET /v3/greet/Ada?greeting=Hi",
        "expected {\"greeting\":\"Hi, Ada! I am shelf 5.\"}, got {\"greeting\":\"Hi, Ada! I am shelf 4.\"}",
        "failed greeter.toml:7 POST /v3/greet/Ada",
        "0 passed, 2 failed",
    ] {
        assert!(failed.out.contains(line), "{line} in {}", failed.out);
    }
    let json = author.run(&format!("{words} --json")).fails().json();
    assert_eq!(json["failed"].as_array().unwrap().len(), 2);
}
