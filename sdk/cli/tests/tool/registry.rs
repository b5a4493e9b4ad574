//! `push` and `pull`: plugins in honest and malicious registries of container images.

mod docker_registry;
mod hostile_registry;

use std::fs;

use serde_json::json;
use tests::guest;

use self::docker_registry::DockerRegistry;
use self::hostile_registry::{HostileRegistry, descriptor, digest};
use crate::author::Author;

/// Signs a file in this author's folder with a detached signature.
fn sign_detached(author: &Author, file: &str) {
    author.run("keygen acme.key --no-password").succeeds();
    author
        .run(&format!("sign {file} --key acme.key --detached"))
        .succeeds();
}

/// Returns the id of the author's key, as minisign writes it into the first line of the public key.
fn key_id(author: &Author) -> String {
    let public = author.read("acme.key.pub");
    let (_, id) = public.lines().next().unwrap().rsplit_once(' ').unwrap();
    id.to_owned()
}

#[test]
fn a_pushed_plugin_is_pulled_by_tag_and_by_digest_with_its_signature() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    sign_detached(&author, "greeter.wasm");
    let name = format!("{}/plugins/greeter", registry.host);
    let pushed = author
        .run(&format!("push greeter.wasm {name}:0.1.0 --json"))
        .succeeds()
        .json();
    assert_eq!(pushed["name"], "greeter");
    let pushed_digest = pushed["digest"].as_str().unwrap();

    // Again: the same content has the same digest.
    let again = author
        .run(&format!("push greeter.wasm {name}:0.1.0"))
        .succeeds();
    assert!(again.out.contains(pushed_digest), "{}", again.out);

    let other = Author::new();
    for reference in [
        format!("{name}:0.1.0 --output by-tag.wasm"),
        format!("{name}@{pushed_digest} --output by-digest.wasm"),
    ] {
        let pulled = other.run(&format!("pull {reference}")).succeeds();
        for expected in ["pulled greeter 0.1.0", pushed_digest, &key_id(&author)] {
            assert!(pulled.out.contains(expected), "{expected}: {}", pulled.out);
        }
    }
    for file in ["by-tag.wasm", "by-digest.wasm"] {
        let pulled = fs::read(other.path(file)).unwrap();
        assert_eq!(pulled, fs::read(guest("greeter")).unwrap());
        let key = author.path("acme.key.pub");
        other
            .run(&format!("verify {file} --public-key {}", key.display()))
            .succeeds();
    }
    let shown = other.run(&format!("inspect {name}:0.1.0")).succeeds();
    assert!(shown.out.contains("greeter 0.1.0"), "{}", shown.out);
    assert!(shown.out.contains("beside the file"), "{}", shown.out);

    // The annotations that other tools can read.
    let manifest = registry.manifest("plugins/greeter", "0.1.0");
    assert_eq!(
        manifest["config"]["mediaType"],
        "application/vnd.wasm.config.v0+json"
    );
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    let annotations = &manifest["annotations"];
    assert_eq!(annotations["org.opencontainers.image.title"], "greeter");
    assert_eq!(annotations["org.opencontainers.image.version"], "0.1.0");
}

#[test]
fn a_signature_in_the_file_travels_with_it_and_a_newer_detached_one_counts() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let author = Author::new();
    let name = format!("{}/greeter:1", registry.host);
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    sign_detached(&author, "greeter.wasm");
    author.run(&format!("push greeter.wasm {name}")).succeeds();
    // Another author signs the same file, and pushes it again.
    author.run("keygen other.key --no-password").succeeds();
    author
        .run("sign greeter.wasm --key other.key --detached")
        .succeeds();
    author.run(&format!("push greeter.wasm {name}")).succeeds();
    author
        .run(&format!("pull {name} --output two.wasm"))
        .succeeds();
    author
        .run("verify two.wasm --public-key other.key.pub")
        .succeeds();

    author.run("sign greeter.wasm --key acme.key").succeeds();
    author.run(&format!("push greeter.wasm {name}")).succeeds();
    let pulled = author
        .run(&format!("pull {name} --output one.wasm --json"))
        .succeeds()
        .json();
    assert_eq!(pulled["signed_with"], json!([key_id(&author)]));
    assert!(!author.path("one.wasm.minisig").exists());
    author
        .run("verify one.wasm --public-key acme.key.pub")
        .succeeds();
}

#[test]
fn a_pull_replaces_no_other_file_unless_it_is_forced_to() {
    let Some(registry) = DockerRegistry::start() else {
        return;
    };
    let author = Author::new();
    let name = format!("{}/greeter:1", registry.host);
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    author.run(&format!("push greeter.wasm {name}")).succeeds();
    // Pulling the same file again is allowed.
    author.run(&format!("pull {name}")).succeeds();
    for other in ["greeter.wasm", "greeter.wasm.minisig"] {
        author.write(other, "mine");
        let refused = author.run(&format!("pull {name}")).fails();
        let expected = format!("there is another file `{other}`");
        assert!(refused.err.contains(&expected), "{}", refused.err);
        assert_eq!(author.read(other), "mine");
        author.run(&format!("pull {name} --force")).succeeds();
        let pulled = fs::read(author.path("greeter.wasm")).unwrap();
        assert_eq!(pulled, fs::read(guest("greeter")).unwrap());
        // The signature of another file would make a device refuse this one.
        assert!(!author.path("greeter.wasm.minisig").exists());
    }
}

#[test]
fn a_registry_that_asks_who_it_is_gets_the_credential_that_docker_login_stored() {
    let Some(registry) = DockerRegistry::start_with_password() else {
        return;
    };
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    let push = format!("push greeter.wasm {}/greeter:1", registry.host);
    let refused = author.run(&push).fails();
    let expected = format!("`docker login {}`", registry.host);
    assert!(refused.err.contains(&expected), "{}", refused.err);
    registry.log_in(&author.path("docker"));
    author.run(&push).succeeds();
    author
        .run(&format!("pull {}/greeter:1 --force", registry.host))
        .succeeds();
}

#[test]
fn a_file_without_a_plugin_and_a_reference_without_a_name_are_not_pushed() {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    author.write("text.wasm", "no component");
    let by_digest = format!("127.0.0.1:1/greeter@sha256:{}", "0".repeat(64));
    for (words, expected) in [
        ("push text.wasm 127.0.0.1:1/greeter:1", "is not a plugin"),
        ("push none.wasm 127.0.0.1:1/greeter:1", "cannot read"),
        (
            "push greeter.wasm http://127.0.0.1:1/greeter",
            "is not a name in a registry",
        ),
        (&format!("push greeter.wasm {by_digest}"), "give a tag"),
        (
            "push greeter.wasm 127.0.0.1:1/greeter:1",
            "cannot be reached",
        ),
        ("pull 127.0.0.1:1/greeter:1", "cannot be reached"),
        ("pull ../greeter", "is not a name in a registry"),
    ] {
        let refused = author.run(words).fails();
        assert!(refused.err.contains(expected), "{words}: {}", refused.err);
    }
    author.write("greeter.wasm.minisig", "no signature");
    let refused = author
        .run("push greeter.wasm 127.0.0.1:1/greeter:1")
        .fails();
    assert!(
        refused.err.contains("is not a minisign signature"),
        "{}",
        refused.err
    );
}

#[test]
fn a_registry_that_lists_signatures_by_itself_is_asked_for_them() {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    sign_detached(&author, "greeter.wasm");
    let mut registry = HostileRegistry::with_plugin(fs::read(guest("greeter")).unwrap());
    let subject = registry.digest();
    registry.sign(&subject, author.read("greeter.wasm.minisig").as_bytes());
    registry.list_signatures();
    let host = registry.serve();
    author
        .run(&format!("pull {host}/greeter:1 --output pulled.wasm"))
        .succeeds();
    author
        .run("verify pulled.wasm --public-key acme.key.pub")
        .succeeds();
}

/// Checks that `pull` refuses a plugin whose registry has these changes, with this message.
#[track_caller]
fn refuses(change: impl FnOnce(&mut HostileRegistry), expected: &str) {
    let mut registry = HostileRegistry::with_plugin(fs::read(guest("greeter")).unwrap());
    change(&mut registry);
    let host = registry.serve();
    let author = Author::new();
    let refused = author.run(&format!("pull {host}/greeter:1")).fails();
    assert!(
        refused.err.contains(expected),
        "{expected}: {}",
        refused.err
    );
    let left: Vec<_> = fs::read_dir(author.path("")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_hostile_registry_leaves_nothing_on_the_disk() {
    // Unchanged first, to prove that the other cases fail because of their change.
    let host = HostileRegistry::with_plugin(fs::read(guest("greeter")).unwrap()).serve();
    Author::new()
        .run(&format!("pull {host}/greeter:1"))
        .succeeds();

    refuses(
        |registry| registry.layer[100] ^= 1,
        "does not match its digest",
    );
    refuses(
        |registry| registry.layer.push(0),
        "longer than its manifest says",
    );
    refuses(
        |registry| registry.layer.truncate(1000),
        "does not match its digest",
    );
    refuses(
        |registry| registry.manifest["layers"][0]["size"] = json!(65 << 20),
        "more than the 67108864 that a device takes",
    );
    refuses(
        |registry| registry.manifest["layers"][0]["mediaType"] = json!("application/x-tar"),
        "a plugin has one layer",
    );
    refuses(
        |registry| {
            registry.manifest["config"]["mediaType"] =
                json!("application/vnd.oci.image.config.v1+json");
        },
        "it is not a plugin, but an image",
    );
    refuses(
        |registry| {
            let layer = registry.manifest["layers"][0].clone();
            registry.manifest["layers"] = json!([layer, layer]);
        },
        "this has 2 layers",
    );
    refuses(
        |registry| registry.manifest["layers"][0]["digest"] = json!("sha256:../../etc"),
        "names something that cannot be in a registry",
    );
    refuses(
        |registry| registry.manifest = json!({ "schemaVersion": 2, "manifests": [] }),
        "a list of images",
    );
    refuses(
        |registry| registry.manifest["padding"] = json!("x".repeat(5 << 20)),
        "an answer that is too large",
    );
    refuses(
        |registry| registry.digest_of_manifest = Some(format!("sha256:{}", "0".repeat(64))),
        "sent bytes that do not match the digest",
    );
    refuses(
        |registry| {
            registry.layer = b"no component".to_vec();
            registry.manifest["layers"][0] = descriptor("application/wasm", &registry.layer);
        },
        "it is not a plugin",
    );
}

#[test]
fn a_signature_from_a_hostile_registry_is_checked_before_it_is_written() {
    let kind = "application/vnd.minisign.signature.v1";
    // A signature of another file.
    refuses(
        |registry| {
            let subject = digest(b"another");
            registry.sign(&subject, b"a signature");
        },
        "belongs to another file",
    );
    refuses(
        |registry| {
            let subject = registry.digest();
            registry.sign(&subject, b"a signature");
        },
        "is not a minisign signature",
    );
    refuses(
        |registry| {
            let subject = registry.digest();
            registry.sign(&subject, &[b'x'; 5000]);
        },
        "more than the 4096 that a device takes",
    );
    refuses(
        |registry| {
            let subject = registry.digest();
            registry.sign(&subject, b"a signature");
            let list = registry.digest().replacen(':', "-", 1);
            registry.put(&format!("manifests/{list}"), b"[]".to_vec());
        },
        "is not a manifest",
    );
    refuses(
        |registry| {
            let subject = registry.digest();
            registry.sign(&subject, b"a signature");
            let wrong = descriptor(kind, b"a signature");
            let blob = format!("blobs/{}", wrong["digest"].as_str().unwrap());
            registry.put(&blob, b"b signature".to_vec());
        },
        "does not match its digest",
    );
}
