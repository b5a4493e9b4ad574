//! `keygen`, `sign` and `verify`.

use std::fs;

use compiled_code::digest;
use serde_json::Value;
use tests::guest;

use crate::author::Author;
use crate::languages::can_build;

#[test]
fn a_signature_counts_for_its_key_and_its_content_alone() {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    author.run("keygen acme.key --no-password").succeeds();
    author.run("keygen other.key --no-password").succeeds();
    let again = author.run("keygen acme.key --no-password").fails();
    assert!(
        again.err.contains("cannot create `acme.key`"),
        "{}",
        again.err
    );

    author
        .run("verify greeter.wasm --public-key acme.key.pub")
        .fails();
    author
        .run("sign greeter.wasm --key acme.key --detached")
        .succeeds();
    assert!(author.path("greeter.wasm.minisig").exists());
    author
        .run("verify greeter.wasm --public-key acme.key.pub")
        .succeeds();
    author
        .run("verify greeter.wasm --public-key other.key.pub")
        .fails();

    author.run("sign greeter.wasm --key acme.key").succeeds();
    assert!(!author.path("greeter.wasm.minisig").exists());
    let key = author
        .read("acme.key.pub")
        .lines()
        .nth(1)
        .unwrap()
        .to_owned();
    author.write("policy.toml", &format!("[keys.acme]\npublic = \"{key}\"\n"));
    let verified = author
        .run("verify greeter.wasm --policy policy.toml")
        .succeeds();
    assert!(verified.out.contains("signed by acme"), "{}", verified.out);
    // A section for the plugin decides which keys count.
    for (section, expected) in [
        ("keys = [\"acme\"]", None),
        (
            "keys = [\"first\", \"second\"]",
            Some("it names `first`, `second`"),
        ),
        ("sha256 = []", Some("it names no key")),
    ] {
        let policy = format!(
            "[keys.acme]\npublic = \"{key}\"\n[plugins.greeter]\n{section}\n[plugins.other]\nkeys = [\"acme\"]\n"
        );
        author.write("policy.toml", &policy);
        let verified = author.run("verify greeter.wasm --policy policy.toml");
        let Some(expected) = expected else {
            let verified = verified.succeeds();
            assert!(verified.out.contains("signed by acme"), "{}", verified.out);
            continue;
        };
        let refused = verified.fails();
        let reason = "it is signed with `acme`, which the section [plugins.greeter] does not name";
        for part in [reason, expected] {
            assert!(refused.out.contains(part), "{}", refused.out);
        }
    }
    author.write(
        "policy.toml",
        &format!("[keys.acme]\npublic = \"{key}\"\nrevoked = true\n"),
    );
    let revoked = author
        .run("verify greeter.wasm --policy policy.toml")
        .fails();
    assert!(revoked.out.contains("revoked"), "{}", revoked.out);
    // Another signature replaces it.
    author.run("sign greeter.wasm --key other.key").succeeds();
    author
        .run("verify greeter.wasm --public-key acme.key.pub")
        .fails();
    author
        .run("verify greeter.wasm --public-key other.key.pub")
        .succeeds();
    author.run("sign greeter.wasm --key acme.key").succeeds();
    author
        .run("verify greeter.wasm --public-key acme.key.pub")
        .succeeds();

    // One byte of the manifest is changed.
    let mut wasm = fs::read(author.path("greeter.wasm")).unwrap();
    let place = wasm
        .windows(7)
        .position(|bytes| bytes == b"greeter")
        .unwrap();
    wasm[place] = b'G';
    fs::write(author.path("greeter.wasm"), wasm).unwrap();
    author
        .run("verify greeter.wasm --public-key acme.key.pub")
        .fails();
}

#[test]
fn what_is_no_key_signs_nothing() {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    author.run("keygen acme.key --no-password").succeeds();
    for (key, expected) in [
        ("none.key", "`supervisor-plugin keygen FILE` creates one"),
        ("acme.key.pub", "is not a secret key"),
    ] {
        let refused = author
            .run(&format!("sign greeter.wasm --key {key}"))
            .fails();
        assert!(refused.err.contains(expected), "{}", refused.err);
    }
    assert_eq!(
        fs::read(author.path("greeter.wasm")).unwrap(),
        fs::read(guest("greeter")).unwrap()
    );
}

/// Whoever gives the digest to owners gives them that of the file that they will install.
#[test]
fn the_digest_of_a_check_is_that_of_the_file_and_says_whether_a_signature_is_part_of_it() {
    let author = Author::new();
    let component = guest("wasi_http_guests");
    fs::copy(component, author.path("component.wasm")).unwrap();
    author.run("keygen acme.key --no-password").succeeds();
    author.run("new shop --component component.wasm").succeeds();
    author.run_in("shop", "build").succeeds();
    let sign = "sign shop.wasm --key ../acme.key";
    let detached = format!("{sign} --detached");
    let mut digests = Vec::new();
    for (sign, place, sentence, what) in [
        (
            None,
            Value::Null,
            "of the unsigned file: `sign` changes it",
            "the unsigned file",
        ),
        (
            Some(detached.as_str()),
            "beside the file".into(),
            "of the file, without the signature beside it",
            "it",
        ),
        (
            Some(sign),
            "in the file".into(),
            "of the file with its signature",
            "it",
        ),
    ] {
        if let Some(sign) = sign {
            author.run_in("shop", sign).succeeds();
        }
        let checked = author.run_in("shop", "check").succeeds();
        let sha256 = digest(&fs::read(author.path("shop/shop.wasm")).unwrap());
        for text in [
            format!("sha256:{sha256} is the digest {sentence}"),
            format!("\nA device loads {what} when its policy has these lines:\n"),
            format!("sha256 = [\"{sha256}\"]"),
        ] {
            assert!(checked.out.contains(&text), "{text}: {}", checked.out);
        }
        let json = author.run_in("shop", "check --json").succeeds().json();
        assert_eq!(json["sha256"], sha256.as_str(), "{json}");
        assert_eq!(json["signature"], place, "{json}");
        digests.push(sha256);
    }
    // Only the signature in the file changes what a policy would pin.
    assert_eq!(digests[0], digests[1]);
    assert_ne!(digests[1], digests[2]);
}

/// In a language with reproducible builds.
#[test]
fn a_project_that_is_built_again_stays_signed_unless_its_content_changes() {
    if !can_build("c") {
        return;
    }
    let author = Author::new();
    author.run("keygen acme.key --no-password").succeeds();
    author.run("new rails --lang c").succeeds();
    author.run_in("rails", "build").succeeds();
    let sign = "sign rails.wasm --key ../acme.key";
    author.run_in("rails", sign).succeeds();
    let verify = "verify rails.wasm --public-key ../acme.key.pub";
    for command in ["inspect", "check", "test", "build"] {
        let run = author.run_in("rails", command).succeeds();
        author.run_in("rails", verify).succeeds();
        if command != "inspect" {
            assert!(run.err.contains("so it stays signed"), "{}", run.err);
        }
    }
    author.edit("rails/src/plugin.c", "This is call", "This was call");
    // Shows the existing component, and builds nothing.
    author.run_in("rails", "inspect").succeeds();
    author.run_in("rails", verify).succeeds();
    let built = author.run_in("rails", "build").succeeds();
    assert!(built.err.contains("sign it again"), "{}", built.err);
    author.run_in("rails", verify).fails();
    let built = author.run_in("rails", "build --key ../acme.key").succeeds();
    assert!(built.out.contains("signed with the key "), "{}", built.out);
    author.run_in("rails", verify).succeeds();
    author.edit("rails/src/plugin.c", "This was call", "This is call");
    let built = author.run_in("rails", "build --key ../acme.key").succeeds();
    assert!(!built.err.contains("sign it again"), "{}", built.err);
    author.run_in("rails", verify).succeeds();
    // A key that does not sign is noticed before anything is built.
    let refused = author
        .run_in("rails", "build --key ../acme.key.pub")
        .fails();
    assert!(
        refused.err.contains("is not a secret key"),
        "{}",
        refused.err
    );
    author.run_in("rails", verify).succeeds();
}
