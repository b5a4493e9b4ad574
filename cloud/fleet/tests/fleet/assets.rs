//! Files attached to releases.

use std::path::Path;

use serde_json::json;

use crate::harness::{Api, Cloud, PASSWORD, Person};

fn stage() -> (Cloud, Person, Api) {
    let cloud = Cloud::start();
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    api.release(fleet, "1111111111aaaaaaaaaa", "1.0.0");
    (cloud, ann, api)
}

fn write(ann: &Person, name: &str, bytes: &[u8]) {
    std::fs::write(ann.home.path().join(name), bytes).expect("a file");
}

fn read(ann: &Person, name: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(ann.home.path().join(name)).expect("a file")
}

#[test]
fn files_of_any_size_are_put_beside_a_release_and_got_back_whole() {
    let (cloud, ann, _) = stage();
    let asset = |words: &[&str]| ann.json(&[&["release-asset"], words].concat());
    assert_eq!(asset(&["list", "1.0.0"]), json!([]));
    // Several parts, the last of them short; one part; none.
    let large: Vec<u8> = (0..11_000_000_u32).map(|at| (at % 251) as u8).collect();
    for (name, bytes, kind) in [
        ("large.bin", &large[..], "application/octet-stream"),
        ("notes.txt", b"what is new", "text/plain"),
        ("empty.json", b"", "application/json"),
    ] {
        write(&ann, name, bytes);
        let made = asset(&["upload", "1.0.0", name]);
        assert_eq!(made["key"], json!(name));
        assert_eq!(made["size"], json!(bytes.len()));
        assert_eq!(made["content_type"], json!(kind));
        std::fs::remove_file(ann.home.path().join(name)).expect("it goes");
        let output = ann.done(&[
            "release-asset",
            "download",
            "1.0.0",
            name,
            "--fleet",
            "pump",
        ]);
        assert!(output.starts_with(&format!("wrote {name}")), "{output}");
        assert!(read(&ann, name) == bytes, "{name}");
    }
    let listed = asset(&["list", "1.0.0"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(3));
    assert_eq!(listed[1]["size"], json!(large.len()));
    assert!(ann.done(&["asset", "list", "1.0.0"]).starts_with("KEY "));

    // Existing files are overwritten only on request, locally and in the cloud.
    let message = ann.refused(1, &["release-asset", "upload", "1.0.0", "notes.txt"]);
    assert!(
        message.contains("already") && message.contains("--overwrite"),
        "{message}"
    );
    let message = ann.refused(1, &["release-asset", "download", "1.0.0", "notes.txt"]);
    assert!(message.contains("notes.txt already exists"), "{message}");
    write(&ann, "notes.txt", b"newer");
    ann.done(&[
        "release-asset",
        "upload",
        "1.0.0",
        "notes.txt",
        "--overwrite",
    ]);
    assert_eq!(
        ann.done(&["release-asset", "download", "1.0.0", "notes.txt", "-o", "-"]),
        "newer"
    );
    ann.done(&[
        "release-asset",
        "download",
        "1.0.0",
        "notes.txt",
        "-o",
        "copy",
        "--overwrite",
    ]);
    assert_eq!(read(&ann, "copy"), b"newer");

    let message = ann.refused(2, &["release-asset", "delete", "1.0.0", "notes.txt"]);
    assert!(message.contains("--yes"), "{message}");
    ann.done(&["release-asset", "delete", "1.0.0", "notes.txt", "--yes"]);
    for words in [
        &["download", "1.0.0", "notes.txt"][..],
        &["delete", "1.0.0", "notes.txt", "--yes"],
    ] {
        let message = ann.refused(4, &[&["release-asset"], words].concat());
        assert!(
            message.contains("there is no file `notes.txt`"),
            "{message}"
        );
    }
    ann.refused(4, &["release-asset", "list", "2.0.0"]);
    ann.refused(1, &["release-asset", "upload", "1.0.0", "nowhere"]);
    ann.refused(2, &["release-asset", "upload", "1.0.0", "."]);

    // Files of another user's release are invisible.
    let words = [
        "register",
        "--username",
        "bob",
        "--email",
        "b@shop.example",
        "--stdin",
    ];
    assert_eq!(ann.run_with(&words, PASSWORD).code, 0);
    let bob = Person::new();
    bob.done(&[
        "login",
        &cloud.url,
        "--email",
        "bob",
        "--password",
        PASSWORD,
    ]);
    write(&bob, "large.bin", b"mine");
    for words in [
        &["list", "1.0.0"][..],
        &["upload", "1.0.0", "large.bin", "--overwrite"],
        &["download", "1.0.0", "large.bin", "-o", "got"],
        &["delete", "1.0.0", "large.bin", "--yes"],
    ] {
        let message = bob.refused(4, &[&["release-asset"], words].concat());
        assert!(message.contains("there is no release `1.0.0`"), "{message}");
    }
}

#[test]
fn a_file_that_is_refused_leaves_no_row_and_its_name_leads_nowhere_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("cloud.toml");
    std::fs::write(&config, "[limits]\nrelease_asset = 1000\n").expect("a configuration");
    let cloud = Cloud::start_with(&["--config", config.to_str().expect("a path")]);
    let (ann, api) = (Person::signed_in(&cloud), Api::new(&cloud));
    let fleet = ann.fleet("pump");
    let release = api.release(fleet, "1111111111aaaaaaaaaa", "1.0.0");
    write(&ann, "large.bin", &[7; 1001]);
    let message = ann.refused(1, &["release-asset", "upload", "1.0.0", "large.bin"]);
    assert!(message.contains("large.bin was not uploaded"), "{message}");
    assert_eq!(ann.json(&["release-asset", "list", "1.0.0"]), json!([]));

    // A row that another client created, without a file so far.
    api.create(
        "release_asset",
        &json!({ "release": release, "asset_key": "a\u{1b}[2J" }),
    );
    let table = ann.done(&["release-asset", "list", "1.0.0"]);
    assert!(
        table.contains("a[2J") && !table.contains('\u{1b}'),
        "{table:?}"
    );
    let message = ann.refused(4, &["release-asset", "download", "1.0.0", "a\u{1b}[2J"]);
    assert!(message.contains("has no file yet"), "{message}");
    // A file whose name begins like an option.
    write(&ann, "-rf", b"x");
    ann.done(&["release-asset", "upload", "1.0.0", "./-rf", "--key", "odd"]);
    let message = ann.refused(2, &["release-asset", "download", "1.0.0", "odd"]);
    assert!(
        message.contains("is not a valid file name here") && message.contains("--output"),
        "{message}"
    );
}
