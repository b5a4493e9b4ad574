//! `run`: the plugin served over HTTP, and rebuilt when a file is saved.

use reqwest::Client;
use tests::{guest, until};

use crate::author::Author;

#[tokio::test]
async fn a_saved_file_is_served_and_a_broken_one_leaves_the_version_before() {
    let author = Author::new();
    author.new_project("rails");
    // The first build may take longer than a test waits for a line.
    author.run_in("rails", "build").succeeds();
    let running = author.start_in("rails", "run --listen 127.0.0.1:0");
    let line = running.until_printed("listening on ").await;
    let base = line
        .split_whitespace()
        .nth(2)
        .unwrap()
        .trim_end_matches(';');
    let client = tests::client();
    let hello = format!("{base}/v3/rails/Ada");
    assert_eq!(
        get(&client, &hello).await,
        (200, "Hello, Ada! This is call 1.\n".to_owned())
    );
    running.until_printed("GET /v3/rails/Ada  200").await;

    author.edit("rails/src/lib.rs", "Hello, ", "Good day, ");
    let text = until("the new version", || async {
        let (_, text) = get(&client, &hello).await;
        let is_new = text.starts_with("Good day, Ada! This is call ");
        if is_new { Ok(text) } else { Err(text) }
    })
    .await;
    // The plugin's stored data still exists.
    assert!(!text.contains("call 1."), "{text}");

    author.edit("rails/src/lib.rs", "async fn hello", "async fun hello");
    running.until_printed("error: ").await;
    assert!(get(&client, &hello).await.1.starts_with("Good day, "));

    author.edit("rails/src/lib.rs", "async fun hello", "async fn hello");
    author.edit(
        "rails/src/lib.rs",
        "    Ok(format!",
        "    if count > 0 {\n        panic!(\"no such rail\");\n    }\n    Ok(format!",
    );
    until("the message of the panic", || async {
        let (status, text) = get(&client, &hello).await;
        if status == 500 && text.contains("no such rail") && text.contains("src/lib.rs:") {
            Ok(())
        } else {
            Err(text)
        }
    })
    .await;
    let (status, text) = get(&client, &format!("{base}/v1/device")).await;
    assert_eq!(status, 404);
    assert!(text.contains("this plugin has no such route"), "{text}");
}

#[tokio::test]
async fn the_start_shows_what_the_author_needs_and_no_lines_of_a_policy() {
    let author = Author::new();
    author.write("device.toml", "");
    let panel = guest("rail_panel").display().to_string();
    let running = author.start_in("", &format!("run {panel} --listen 127.0.0.1:0"));
    let line = running.until_printed("listening on ").await;
    let base = line
        .split_whitespace()
        .nth(2)
        .unwrap()
        .trim_end_matches(';');
    let started = running.printed();
    for shown in ["serving rail-panel 0.1.0", "  GET /v3/rail-panel"] {
        assert!(started.contains(shown), "{shown} in {started}");
    }
    for hidden in ["policy", "developer mode", "is loaded from", "compiled"] {
        assert!(!started.contains(hidden), "{hidden} in {started}");
    }

    let (status, text) = get(&tests::client(), &format!("{base}/v3/rail-panel")).await;
    assert_eq!(status, 503, "{text}");
    let note = "calls the action `acme-rails/list`, and `device.toml` has no answer for it: add";
    running.until_printed(note).await;
}

async fn get(client: &Client, address: &str) -> (u16, String) {
    let answer = client.get(address).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}
