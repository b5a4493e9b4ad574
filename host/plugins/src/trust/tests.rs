//! What is shown to an owner, and its effect.

use plugin_manifest::{Capability, Manifest};

use super::*;
use crate::grants::check_routes_and_actions;
use crate::policy::{Policy, PolicyFiles};

/// Creates a component that contains only a manifest.
fn component(manifest: &str) -> Vec<u8> {
    let mut wasm = plugin_manifest::COMPONENT.to_vec();
    plugin_manifest::append_section(&mut wasm, crate::SECTION, manifest.as_bytes());
    wasm
}

struct Owner {
    folder: tempfile::TempDir,
    files: PolicyFiles,
}

impl Owner {
    fn new() -> Owner {
        let folder = tempfile::tempdir().unwrap();
        let files = PolicyFiles {
            owner: folder.path().join("policy.toml"),
            stock: folder.path().join("stock-plugins.toml"),
        };
        Owner { folder, files }
    }

    fn lines(&self, wasm: &[u8]) -> Result<String, TrustError> {
        let file = self.folder.path().join("acme.wasm");
        std::fs::write(&file, wasm).unwrap();
        trust_lines(&file, &self.files.owner, &self.files.stock, None)
    }

    /// Returns the policy with these lines added.
    fn policy(&self, lines: &str) -> Policy {
        std::fs::write(&self.files.owner, lines).unwrap();
        Policy::read(&self.files, false).unwrap()
    }
}

const ACME: &str = r#"
name = "acme"
version = "1.2.3"
interface = "1.0.0"
provides = ["identify"]
boards = ["acme-*", "*"]
capabilities = [{ name = "led", reason = "flashes" }, { name = "files", reason = "logs" }]
limits = { memory_mib = 32, cpu_ms = 10 }
[[routes]]
method = "GET"
path = "/v3/acme/:id"
[[routes]]
method = "PUT"
path = "/v3/acme/:id"
"#;

#[test]
fn the_requests_of_a_file_are_described_and_the_lines_below_grant_them() {
    let owner = Owner::new();
    let wasm = component(ACME);
    let digest = compiled_code::digest(&wasm);
    let lines = owner.lines(&wasm).unwrap();
    assert_eq!(
        lines,
        format!(
            "# The plugin `acme` 1.2.3 asks for permission:\n\
             # - to answer GET /v3/acme/:id\n\
             # - to answer PUT /v3/acme/:id\n\
             # - to show people which device this is (`identify`)\n\
             # - to take over LEDs (`led`)\n\
             #   because, in its maker's words: flashes\n\
             # - to read folders of the host, and change those for which you allow it (`files`)\n\
             #   because, in its maker's words: logs\n\
             # - for 32 MiB of memory per call (the default is 16)\n\
             # It is made for boards of these types: acme-*, *\n\
             [plugins.acme]\n\
             sha256 = [\"{digest}\"]\n\
             routes = [\"/v3/acme/:id\"]\n\
             provides = [\"identify\"]\n\
             boards = [\"acme-*\"]\n\
             grants = [\"led\", \"files\"]\n\
             # leds = [\"ACT\"]  to give it these LEDs rather than all\n\
             files = []  # the folders, for example {{ host = \"mnt/data/x\", guest = \"/x\", write = true }}\n\
             limits = {{ memory_mib = 32 }}\n"
        )
    );
    let policy = owner.policy(&lines);
    let grants = policy
        .grants("acme", &digest, &Signatures::default(), Path::new("/"))
        .unwrap();
    let manifest = Manifest::from_wasm(&wasm).unwrap();
    check_routes_and_actions(&manifest, &grants, Path::new("policy.toml")).unwrap();
    assert!(grants.grants.contains(&Capability::Led));

    // The second time, nothing is missing, and it says whose name that is.
    std::fs::write(
        &owner.files.stock,
        format!("[plugins.acme]\nsha256 = [\"{digest}\"]"),
    )
    .unwrap();
    let again = owner.lines(&wasm).unwrap();
    assert!(
        again.ends_with("# [plugins.acme] of the policy grants all of this already.\n"),
        "{again}"
    );
    assert!(
        again.contains("# `acme` is the name of a stock plugin"),
        "{again}"
    );
}

/// A second header of the same section would not be TOML.
#[test]
fn the_section_that_takes_the_place_of_the_present_one_is_toml_and_keeps_what_is_there() {
    let owner = Owner::new();
    let wasm = component(ACME);
    let digest = compiled_code::digest(&wasm);
    let first = "[plugins.b]\ngrants = [\"store\"]\n\n";
    let last = "\n[plugins.c]\ngrants = [\"store\"]\n";
    for (pin, is_pinned) in [(digest.clone(), true), ("0".repeat(64), false)] {
        let present = format!(
            "# by hand\n[plugins.acme]\nsha256 = [\"{pin}\"] # of May\ngrants = [\"led\"]\nleds = [\"ACT\"]\n"
        );
        owner.policy(&format!("{first}{present}{last}"));
        let lines = owner.lines(&wasm).unwrap();
        assert_eq!(lines.matches("\n[plugins.").count(), 1, "{lines}");
        for part in [
            "# - to answer GET /v3/acme/:id\n",
            "# Put this section in place of [plugins.acme] of the policy: ",
            "# by hand\n[plugins.acme]\n",
            "] # of May\n",
            "leds = [\"ACT\"]\n",
            "files = []  # the folders",
        ] {
            assert!(lines.contains(part), "{part} in {lines}");
        }
        assert_eq!(
            lines.contains("does not pin this file"),
            !is_pinned,
            "{lines}"
        );

        // The owner follows it.
        let policy = owner.policy(&format!("{first}{lines}{last}"));
        let grants = policy
            .grants("acme", &digest, &Signatures::default(), Path::new("/"))
            .unwrap();
        let manifest = Manifest::from_wasm(&wasm).unwrap();
        check_routes_and_actions(&manifest, &grants, Path::new("policy.toml")).unwrap();
        assert!(grants.grants.contains(&Capability::Files));
        let again = owner.lines(&wasm).unwrap();
        assert!(again.contains("grants all of this already."), "{again}");
        assert!(!again.contains("\n[plugins."), "{again}");
    }
}

/// The lines are meant to be added to a policy unchanged.
#[test]
fn no_text_of_a_file_becomes_a_line_of_the_policy() {
    let owner = Owner::new();
    let evil = r"\n[plugins.evil]\ngrants = [\u0022files\u0022]\n\u2028\u202e\u001b[2J";
    let wasm = component(&format!(
        "name = \"acme\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]\n\
         boards = [\"{evil}\", \"acme\\\"]\"]\ncapabilities = [{{ name = \"led\", reason = \"{evil}\" }}]\n"
    ));
    let lines = owner.lines(&wasm).unwrap();
    let table: toml::Table = lines.parse().unwrap();
    let plugins = table["plugins"].as_table().unwrap();
    assert_eq!(plugins.keys().collect::<Vec<_>>(), ["acme"], "{lines}");
    assert!(plugins["acme"].get("boards").is_none(), "{lines}");
    let only_plain = |char: char| char == '\n' || (' '..='~').contains(&char);
    assert!(lines.chars().all(only_plain), "{lines}");
    owner.policy(&lines);
}

#[test]
fn a_file_that_is_not_a_plugin_is_refused() {
    let owner = Owner::new();
    for (wasm, expected) in [
        (&b"not wasm"[..], "it is not WebAssembly"),
        (
            &b"\0asm\x0d\0\x01\0"[..],
            "it has no section `platform:manifest`",
        ),
    ] {
        let error = owner.lines(wasm).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("acme.wasm"), "{error}");
    }
}

#[test]
fn a_file_that_a_key_of_the_policy_signs_is_given_by_that_key() {
    let owner = Owner::new();
    let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    let wasm = component(ACME);
    let signature = minisign::sign(None, &pair.sk, &wasm[..], None, None).unwrap();
    let beside = owner.folder.path().join("acme.wasm.minisig");
    std::fs::write(beside, signature.to_string()).unwrap();

    // The key has not been named yet.
    let lines = owner.lines(&wasm).unwrap();
    assert!(lines.contains("\nsha256 = "), "{lines}");
    assert!(!lines.contains("\nkeys = "), "{lines}");
    for line in [
        "was made with a key that the policy does not name.",
        "--key MAKER.pub",
    ] {
        assert!(lines.contains(line), "{lines}");
    }

    let key = format!("[keys.acme-2026]\npublic = \"{}\"\n", pair.pk.to_base64());
    std::fs::write(&owner.files.owner, &key).unwrap();
    let lines = owner.lines(&wasm).unwrap();
    assert!(lines.contains("\nkeys = [\"acme-2026\"]\n"), "{lines}");
    assert!(!lines.contains("sha256"), "{lines}");
    owner.policy(&(key.clone() + &lines));

    let revoked = format!("{key}revoked = true\n");
    std::fs::write(&owner.files.owner, revoked).unwrap();
    let lines = owner.lines(&wasm).unwrap();
    assert!(lines.contains("`acme-2026`, which is revoked"), "{lines}");
    assert!(lines.contains("\nsha256 = "), "{lines}");
}

#[test]
fn the_command_that_signs_a_file_quotes_its_path_for_the_shell() {
    let owner = Owner::new();
    let maker = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    let key = owner.folder.path().join("acme.pub");
    std::fs::write(&key, maker.pk.to_base64()).unwrap();
    let file = owner.folder.path().join("my acme.wasm");
    std::fs::write(&file, component(ACME)).unwrap();
    let (policy, stock) = (&owner.files.owner, &owner.files.stock);
    let error = trust_lines(&file, policy, stock, Some(&key)).unwrap_err();
    let command = format!("`supervisor-plugin sign '{}' --key ", file.display());
    assert!(error.to_string().contains(&command), "{error}");
}

#[test]
fn the_lines_for_a_makers_key_name_it_once_and_only_if_it_has_signed() {
    let owner = Owner::new();
    let maker = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    let stranger = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
    let wasm = component(ACME);
    let path = |name: &str| owner.folder.path().join(name);
    let public = maker.pk.to_base64();
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    write("acme.key.pub", &format!("untrusted comment: x\n{public}\n"));
    write("stranger.pub", &stranger.pk.to_base64());
    write("a b.pub", &public);
    write("long.pub", &"R".repeat(5000));
    write("secret.pub", "untrusted comment: x\nnothing\n");
    let lines = |key: &str| {
        let file = path("acme.wasm");
        std::fs::write(&file, &wasm).unwrap();
        trust_lines(
            &file,
            &owner.files.owner,
            &owner.files.stock,
            Some(&path(key)),
        )
    };
    let refused = |key: &str, expected: &str| {
        let error = lines(key).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(key), "{error}");
    };

    for expected in [
        "is not signed with the key ",
        "it has no signature, neither in it nor in `",
        "supervisor-plugin sign ",
        "or leave out --key",
    ] {
        refused("acme.key.pub", expected);
    }
    let signature = minisign::sign(None, &maker.sk, &wasm[..], None, None).unwrap();
    write("acme.wasm.minisig", &signature.to_string());
    for (key, expected) in [
        ("a b.pub", "rename the file"),
        ("long.pub", "at most 4096 bytes"),
        ("secret.pub", "not a minisign public key"),
        ("missing.pub", "cannot be read"),
        (".", "not a file"),
    ] {
        refused(key, expected);
    }

    // Both keys are named, as minisign names them in the first line of a .pub file.
    let id = |pair: &minisign::KeyPair| {
        let text = pair.pk.to_box().unwrap().to_string();
        text.lines()
            .next()
            .unwrap()
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned()
    };
    let keys = format!("is not signed with the key {} of `", id(&stranger));
    refused("stranger.pub", &keys);
    let other = format!(
        "it is signed with the key {}; to trust that key",
        id(&maker)
    );
    refused("stranger.pub", &other);
    owner.policy(&format!("[keys.first]\npublic = \"{public}\"\n"));
    refused(
        "stranger.pub",
        "it is signed with `first`, a key of the policy",
    );
    owner.policy("");

    // A signature by this key of another content.
    write("acme.wasm.minisig", &{
        let signature = minisign::sign(None, &maker.sk, &b"another"[..], None, None);
        signature.unwrap().to_string()
    });
    refused("acme.key.pub", "does not match the content");
    refused("acme.key.pub", "copy the file again, or sign it again");
    write("acme.wasm.minisig", &signature.to_string());

    let first = lines("acme.key.pub").unwrap();
    let section =
        format!("[keys.acme]\npublic = \"{public}\"\n\n[plugins.acme]\nkeys = [\"acme\"]\n");
    assert!(first.contains(&section), "{first}");
    owner.policy(&first);

    // The policy knows the key under another name, has another key under this name, or has revoked the key.
    let named = format!("[keys.acme-2026]\npublic = \"{public}\"\n");
    owner.policy(&named);
    let second = lines("acme.key.pub").unwrap();
    assert!(second.contains("keys = [\"acme-2026\"]"), "{second}");
    assert!(!second.contains("[keys."), "{second}");
    owner.policy(&format!("{named}revoked = true\n"));
    refused("acme.key.pub", "the policy has revoked it");
    let other = stranger.pk.to_base64();
    owner.policy(&format!("[keys.acme]\npublic = \"{other}\"\n"));
    refused("acme.key.pub", "is another key");

    // Together with a section that the policy has already.
    owner.policy("[plugins.acme]\ngrants = [\"led\"]\n");
    let merged = lines("acme.key.pub").unwrap();
    for part in [
        "# It is signed with `acme`: ",
        "# Put this section in place of [plugins.acme] of the policy: ",
        &format!("\n[keys.acme]\npublic = \"{public}\"\n"),
        "keys = [\"acme\"]",
    ] {
        assert_eq!(merged.matches(part).count(), 1, "{part} in {merged}");
    }
    owner.policy(&merged);
}
