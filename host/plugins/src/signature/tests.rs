//! Which signatures count, and for which content.

use std::fs;

use minisign::KeyPair;
use proptest::prelude::*;

use super::*;

/// Creates the smallest plugin.
pub(crate) fn plugin() -> Vec<u8> {
    let manifest =
        "name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]";
    let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
    append_section(&mut wasm, "platform:manifest", manifest.as_bytes());
    wasm
}

fn public(pair: &KeyPair) -> PublicKey {
    PublicKey::from_base64(&pair.pk.to_base64()).unwrap()
}

fn sign(pair: &KeyPair, content: &[u8]) -> String {
    let signature = minisign::sign(None, &pair.sk, content, Some("trusted"), None).unwrap();
    signature.to_string()
}

fn pair() -> KeyPair {
    KeyPair::generate_unencrypted_keypair().unwrap()
}

/// Returns the signatures of `content` with this one next to it.
fn beside(content: &[u8], signature: &[u8], keys: &[PublicKey]) -> Signatures {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.wasm");
    fs::write(file_beside(&file), signature).unwrap();
    Signatures::load(&file, content, keys)
}

/// Returns the signatures of a content with none next to it.
fn inside(content: &[u8], keys: &[PublicKey]) -> Signatures {
    Signatures::load(Path::new("/nowhere/a.wasm"), content, keys)
}

/// Returns `content` with a signature as its last section.
fn embedded(content: &[u8], signature: &[u8]) -> Vec<u8> {
    let mut wasm = content.to_vec();
    wasm.extend(section(signature));
    wasm
}

#[test]
fn a_signature_counts_for_the_content_that_it_signs() {
    let (ours, theirs) = (pair(), pair());
    let keys = [public(&theirs), public(&ours)];
    let (wasm, signature) = (plugin(), sign(&ours, &plugin()));
    let by_us = vec![public(&ours)];
    assert_eq!(beside(&wasm, signature.as_bytes(), &keys).keys, by_us);
    let file = embedded(&wasm, signature.as_bytes());
    assert_eq!(inside(&file, &keys).keys, by_us);
    // One for the file that contains the first one, and both of them.
    let second = sign(&theirs, &file);
    let both = beside(&file, second.as_bytes(), &keys).keys;
    assert_eq!(both, [public(&theirs), public(&ours)]);

    let mut other = wasm.clone();
    *other.last_mut().unwrap() ^= 1;
    let mut twisted = file.clone();
    twisted[30] ^= 1;
    let mut followed = file.clone();
    followed.extend(section(b"another"));
    let mut padded = file.clone();
    padded.extend([0, 2, 1, b'x']);
    for (what, signatures, expected) in [
        (
            "another file",
            beside(&other, signature.as_bytes(), &keys),
            "does not match the content",
        ),
        (
            "a changed byte",
            inside(&twisted, &keys),
            "does not match the content",
        ),
        (
            "a key that nobody has named",
            beside(&wasm, signature.as_bytes(), &keys[..1]),
            "was made with a key that the policy does not name",
        ),
        ("no key at all", inside(&file, &[]), "does not name"),
        (
            "two sections",
            inside(&followed, &keys),
            "is not a minisign signature",
        ),
        (
            "a section after it",
            inside(&padded, &keys),
            "is not the last one",
        ),
        (
            "a long one",
            inside(&embedded(&wasm, &[b'x'; SIZE + 1]), &keys),
            "more than 4096 bytes",
        ),
        (
            "a long one beside it",
            beside(&wasm, &[b'x'; SIZE + 1], &keys),
            "more than 4096 bytes",
        ),
        (
            "no text",
            beside(&wasm, b"\xff\0", &keys),
            "is not a minisign signature",
        ),
    ] {
        assert!(signatures.keys.is_empty(), "{what}");
        let problems = signatures.problems.join("; ");
        assert!(problems.contains(expected), "{what}: {problems}");
        assert!(signatures.are_there(), "{what}");
    }
    assert_eq!(inside(&wasm, &keys), Signatures::default());
    assert!(!inside(&wasm, &keys).are_there());
}

/// The loader reads a file whose next version is being put in its place, signature first.
#[test]
fn a_valid_signature_is_remembered_beside_the_content_that_it_signs() {
    let (pair, wasm) = (pair(), plugin());
    let keys = [public(&pair)];
    let (own, of_next) = (sign(&pair, &wasm), sign(&pair, b"the next version"));
    let text = |signatures: &Signatures| signatures.text_beside().map(|text| text.to_vec());
    let before = beside(&wasm, own.as_bytes(), &keys);
    for now in [
        beside(&wasm, of_next.as_bytes(), &keys),
        inside(&wasm, &keys),
        beside(&wasm, own.as_bytes(), &keys),
    ] {
        let mut now = now;
        now.remember(&before);
        assert_eq!(now.keys, keys);
        assert_eq!(text(&now), Some(own.clone().into_bytes()));
    }
    // A signature that could not be checked gives way to the present one.
    let unknown = beside(&wasm, own.as_bytes(), &[]);
    let mut now = beside(&wasm, of_next.as_bytes(), &keys);
    now.remember(&unknown);
    assert_eq!(text(&now), Some(of_next.into_bytes()));
    assert_eq!(now.keys, []);
}

/// From minisign's documentation: anyone with its tool can sign for a device.
#[test]
fn the_format_is_minisigns() {
    let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
    let keys = [PublicKey::from_base64(key).unwrap()];
    let signature = "untrusted comment: signature from minisign secret key\n\
        RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n\
        trusted comment: timestamp:1633700835\tfile:test\tprehashed\n\
        wLMDjy9FLAuxZ3q4NlEvkgtyhrr0gtTu6KC4KBJdITbbOeAi1zBIYo0v4iTgt8jJpIidRJnp94ABQkJAgAooBQ==\n";
    assert_eq!(beside(b"test", signature.as_bytes(), &keys).keys, keys);
    let old = "untrusted comment: signature from minisign secret key\n\
        RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n\
        trusted comment: timestamp:1555779966\tfile:test\n\
        QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n";
    let signatures = beside(b"test", old.as_bytes(), &keys);
    assert!(signatures.keys.is_empty());
    assert!(
        signatures.problems[0].contains("has minisign's old format"),
        "{signatures:?}"
    );
}

#[test]
fn a_signature_that_never_ends_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.wasm");
    let signature = file_beside(&file);
    rustix::fs::mkfifoat(rustix::fs::CWD, &signature, 0o600.into()).unwrap();
    let refused = |folder: &str| {
        let signatures = Signatures::load(&file, &plugin(), &[public(&pair())]);
        assert!(signatures.keys.is_empty() && signatures.beside.is_none());
        let problems = signatures.problems.join("; ");
        assert!(problems.contains("cannot be read"), "{folder}: {problems}");
    };
    refused("a pipe");
    for target in ["/dev/zero", "/proc/kmsg", "/proc/version"] {
        fs::remove_file(&signature).unwrap();
        std::os::unix::fs::symlink(target, &signature).unwrap();
        refused(target);
    }
}

proptest! {
    #[test]
    fn a_signature_is_read_to_its_end_whatever_its_content(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        text in "untrusted comment: .{0,20}\nR[A-Za-z0-9+/=]{0,110}\ntrusted comment: .{0,20}\n[A-Za-z0-9+/=]{0,90}\n?",
    ) {
        let key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        let keys = [PublicKey::from_base64(key).unwrap()];
        for signature in [&bytes[..], text.as_bytes()] {
            let mut signatures = Signatures::default();
            signatures.check("it", b"content", signature, &keys);
            prop_assert!(signatures.keys.is_empty());
            prop_assert_eq!(signatures.problems.len(), 1);
        }
        let _ = PublicKey::from_base64(&text);
        let mut file = plugin();
        file.extend(&bytes);
        prop_assert!(inside(&file, &keys).keys.is_empty());
    }
}
