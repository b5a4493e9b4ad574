use minisign::KeyPair;

use super::*;

fn sign(pair: &KeyPair, content: &[u8]) -> String {
    let signed = minisign::sign(None, &pair.sk, content, Some("trusted"), Some("untrusted"));
    signed.unwrap().into_string()
}

fn public(pair: &KeyPair) -> PublicKey {
    PublicKey::from_base64(&pair.pk.to_base64()).unwrap()
}

#[test]
fn the_key_that_signed_is_found_among_others() {
    let pairs = [(); 3].map(|()| KeyPair::generate_unencrypted_keypair().unwrap());
    let keys = pairs.each_ref().map(public);
    let text = sign(&pairs[1], b"content");
    assert_eq!(signer(text.as_bytes(), b"content", &keys), Ok(&keys[1]));
    let others = [&keys[0], &keys[2]];
    for (text, content, keys, problem) in [
        (
            text.as_bytes(),
            &b"content"[..],
            &others[..],
            SignatureError::UnknownKey,
        ),
        (
            text.as_bytes(),
            b"other",
            &[&keys[1]],
            SignatureError::OtherContent,
        ),
        (b"text", b"content", &[&keys[1]], SignatureError::Format),
        (b"\xff", b"content", &[&keys[1]], SignatureError::Format),
        (text.as_bytes(), b"content", &[], SignatureError::UnknownKey),
    ] {
        let found = signer(text, content, keys.iter().copied());
        assert_eq!(found, Err(problem));
    }
}

#[test]
fn a_key_is_revoked_under_all_its_names() {
    let pair = KeyPair::generate_unencrypted_keypair().unwrap();
    let key = pair.pk.to_base64();
    let text =
        format!("[old]\npublic = \"{key}\"\nrevoked = true\n[new]\npublic = \" {key}\\n\"\n");
    let keys: NamedKeys = toml::from_str(&text).unwrap();
    assert_eq!(keys.names().collect::<Vec<_>>(), ["new", "old"]);
    assert!(keys.is_revoked(keys.get("new").unwrap()));
    let error = toml::from_str::<NamedKeys>("[a]\npublic = \"untrusted comment\"").unwrap_err();
    assert!(error.to_string().contains("the second line"), "{error}");
}

#[test]
fn a_makers_file_and_its_last_line_are_the_same_key() {
    let pair = KeyPair::generate_unencrypted_keypair().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("acme.pub");
    let text = pair.pk.to_box().unwrap().to_string();
    std::fs::write(&file, format!("{text}\n\n")).unwrap();
    let read = PublicKeyText::read(&file).unwrap();
    assert_eq!(read.key, public(&pair));
    assert_eq!(PublicKeyText::parse(&read.base64).unwrap(), read);
}

#[test]
fn an_invalid_key_file_is_refused_and_delays_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("text"), "a\nb\"]").unwrap();
    std::fs::write(path("long"), "x".repeat(4097)).unwrap();
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("binary"), [0xff, 0xfe]).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
    for (name, expected) in [
        ("text", "its last line is not a minisign public key"),
        ("empty", "its last line is not a minisign public key"),
        ("long", "it is not a file of at most 4096 bytes"),
        ("pipe", "it is not a file of at most 4096 bytes"),
        ("", "it is not a file of at most 4096 bytes"),
        ("binary", "it cannot be read: "),
        ("missing", "it cannot be read: "),
    ] {
        let error = PublicKeyText::read(&path(name)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{name}: {error}");
    }
}
