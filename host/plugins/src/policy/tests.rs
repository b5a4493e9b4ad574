//! What a policy grants, and to which file.

use std::collections::BTreeSet;
use strum::VariantArray;

use signatures::PublicKey;

use super::*;
use plugin_manifest::Capability;

fn files() -> PolicyFiles {
    PolicyFiles {
        owner: "policy.toml".into(),
        stock: "stock-plugins.toml".into(),
    }
}

fn parse_both(owner: &str, stock: &str) -> Result<Policy, String> {
    Policy::parse(&files(), owner, stock).map_err(|error| {
        let source = std::error::Error::source(&error)
            .map(ToString::to_string)
            .unwrap_or_default();
        format!("{error}\n{source}")
    })
}

fn parse(text: &str) -> Result<Policy, String> {
    parse_both(text, "")
}

fn pin(file: &[u8]) -> String {
    format!("sha256 = [\"{}\"]\n", compiled_code::digest(file))
}

/// Returns what the policy grants to `file`, which claims the name `plugin`.
fn granted(policy: &Policy, plugin: &str, file: &[u8]) -> Result<BTreeSet<Capability>, String> {
    let grants = policy.grants(
        plugin,
        &compiled_code::digest(file),
        &Signatures::default(),
        Path::new("/"),
    )?;
    Ok(grants.grants)
}

#[test]
fn nothing_is_granted_that_is_not_written() {
    let stock = format!("[plugins.a]\n{}[plugins.b]\n{}", pin(b"a"), pin(b"b"));
    let policy = parse_both("[plugins.a]\ngrants = [\"led\"]\nleds = [\"ACT\"]", &stock).unwrap();
    assert_eq!(granted(&policy, "b", b"b"), Ok(BTreeSet::new()));
    assert_eq!(
        granted(&policy, "a", b"a"),
        Ok(BTreeSet::from([Capability::Led]))
    );
    let nowhere = PolicyFiles {
        owner: "/nowhere/policy.toml".into(),
        stock: "/nowhere/stock-plugins.toml".into(),
    };
    let none = Policy::read(&nowhere, false).unwrap();
    assert!(granted(&none, "a", b"a").is_err());
}

#[test]
fn a_name_is_pinned_to_files_and_gives_nothing_to_others() {
    let owner = format!(
        "[plugins.stock]\ngrants = [\"led\"]\n\
         [plugins.theirs]\n{}grants = [\"store\"]\n\
         [plugins.taken]\n{}grants = [\"files\"]\n\
         [plugins.none]\nsha256 = []\n\
         [plugins.old]\ngrants = [\"units\"]\n",
        pin(b"theirs"),
        pin(b"mine"),
    );
    let stock = format!(
        "[plugins.stock]\n{}[plugins.taken]\n{}[plugins.none]\n{}",
        pin(b"stock"),
        pin(b"stock too"),
        pin(b"stock as well"),
    );
    let policy = parse_both(&owner, &stock).unwrap();
    for (plugin, file, expected) in [
        ("stock", "stock", Ok(Capability::Led)),
        (
            "stock",
            "evil",
            Err("`stock` is a stock plugin, and this is another file"),
        ),
        ("theirs", "theirs", Ok(Capability::Store)),
        (
            "theirs",
            "evil",
            Err("pins other files of the plugin `theirs`"),
        ),
        // An owner who pins their own file means that one, and no longer the layout's.
        ("taken", "mine", Ok(Capability::Files)),
        (
            "taken",
            "stock too",
            Err("pins other files of the plugin `taken`"),
        ),
        (
            "none",
            "stock as well",
            Err("pins other files of the plugin `none`"),
        ),
        // A section from a policy that was written before pins existed.
        ("old", "old", Err("pins no file of a plugin `old`")),
        ("unknown", "evil", Err("pins no file of a plugin `unknown`")),
    ] {
        match (granted(&policy, plugin, file.as_bytes()), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, BTreeSet::from([expected])),
            (Err(error), Err(expected)) => {
                let error = error.to_string();
                assert!(error.contains(expected), "{plugin}, {file}: {error}");
                assert!(
                    error.contains(&compiled_code::digest(file.as_bytes())),
                    "{error}"
                );
            }
            (found, _) => panic!("{plugin}, {file}: {found:?}"),
        }
    }
}

#[test]
fn errors_of_a_policy_name_their_line() {
    for (text, expected) in [
        ("[plugins.a]\ngrant = [\"led\"]", "line 2, column 1"),
        (
            "[plugins.a]\ngrant = [\"led\"]",
            "there is no key `grant` here; the keys are ",
        ),
        ("[plugins.a]\n\ngrants = [\"fly\"]", "line 3"),
        ("[plugin.a]", "there is no key `plugin` here"),
        ("[plugins.a]\n\nsha256 = [\"*\"]", "line 3"),
        ("[plugins.a]\n\nroutes = [\"/v3/*/a\"]", "line 3"),
        (
            "[plugins.a]\nroutes = [\"/v2/a/*\"]",
            "the route `/v2/a/*` reaches below `/v1` or `/v2`",
        ),
        (
            "[plugins.a]\nprovides = [\"everything\"]",
            "`everything` is not known here",
        ),
        ("[plugins.a]\nboards = [\"*\"]", "`*` is not a board"),
        (
            "[plugins.a]\nsha256 = [\"*\"]",
            "`*` is not a SHA-256 digest",
        ),
        (
            "[plugins.a]\nlimits = { memory_mib = 64 }",
            "`[plugins.a]`: `memory_mib` is 64",
        ),
        ("[plugins.a]\nleds = []", "`leds` without granting \"led\""),
        (
            "[plugins.a]\napi = [\"GET /ping\"]",
            "`api` without granting \"api\"",
        ),
        (
            "[plugins.a]\ngrants = [\"api\"]\napi = [\"/ping\"]",
            "`/ping` is not a route",
        ),
        (
            "[plugins.a]\nserial = [\"/dev/ttyUSB0\"]",
            "`serial` without granting \"serial\"",
        ),
        (
            "[plugins.a]\ngrants = [\"serial\"]\nserial = [\"/dev/../etc/passwd\"]",
            "`serial` has `/dev/../etc/passwd`",
        ),
        (
            "[plugins.a]\ngrants = [\"serial\"]\nserial = [\"/etc/passwd\"]",
            "`serial` has `/etc/passwd`",
        ),
        (
            "[plugins.a]\ndbus = [{ service = \"a.b\", paths = [\"/\"], members = [\"a.b.C\"] }]",
            "`dbus` without granting \"dbus\"",
        ),
        (
            "[plugins.a]\ngrants = [\"dbus\"]\ndbus = [{ service = \"a.b\", paths = [\"/\"], members = [\"*\"] }]",
            "`dbus` has the member `*`",
        ),
        (
            "[plugins.a]\ngpio = [{ name = \"a\", chip = \"gpiochip0\", line = 1, direction = \"in\" }]",
            "`gpio` without granting \"gpio\"",
        ),
        (
            "[plugins.a]\ngrants = [\"gpio\"]\ngpio = [{ name = \"a\", chip = \"/dev/mem\", line = 1, direction = \"in\" }]",
            "`gpio` has the chip `/dev/mem`",
        ),
        (
            "[plugins.a]\ni2c = [{ name = \"a\", bus = 1, address = 72 }]",
            "`i2c` without granting \"i2c\"",
        ),
        (
            "[plugins.a]\ngrants = [\"i2c\"]\ni2c = [{ name = \"a\", bus = 1, address = 0 }]",
            "`i2c` has the address 0x00",
        ),
        (
            "[plugins.a]\nrecords = [\"device_tag\"]",
            "`records` without granting \"cloud\"",
        ),
        (
            "[plugins.a]\nfiles = [{ host = \"/a\", guest = \"/a\" }]",
            "`files` without granting",
        ),
        (
            "[plugins.a]\nunits = [\"a.service\"]",
            "`units` without granting \"units\"",
        ),
        (
            "[plugins.a]\ngrants = [\"units\"]\nunits = [\"*.service\"]",
            "line 3",
        ),
        (
            "[plugins.a]\ngrants = [\"units\"]\nunits = [\"a\"]",
            "`a` is not the name of a unit",
        ),
        (
            "[plugins.a]\ngrants = [\"files\"]\nfiles = [{ host = \"a/../..\", guest = \"/a\" }]",
            "`a/../..` is neither an absolute path nor",
        ),
        (
            "[plugins.a]\ngrants = [\"files\"]\nfiles = [{ host = \"\", guest = \"/a\" }]",
            "`` is neither an absolute path nor",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}

#[test]
fn routes_and_actions_are_the_sections_or_the_layouts_and_never_both_for_another_file() {
    let stock = format!(
        "[plugins.a]\n{}routes = [\"/v2/a\"]\nprovides = [\"identify\"]\n",
        pin(b"stock")
    );
    let gets = |owner: &str, file: &[u8], route: &str| {
        let policy = parse_both(owner, &stock).unwrap();
        let grants = policy
            .grants(
                "a",
                &compiled_code::digest(file),
                &Signatures::default(),
                Path::new("/"),
            )
            .unwrap();
        let route = crate::Pattern::parse(route).unwrap();
        (grants.routes.cover(&route), grants.provides.len())
    };
    assert_eq!(gets("", b"stock", "/v2/a"), (true, 1));
    assert_eq!(gets("", b"stock", "/v3/a"), (false, 1));
    let more = "[plugins.a]\nroutes = [\"/v3/a\"]";
    assert_eq!(gets(more, b"stock", "/v2/a"), (true, 1));
    assert_eq!(gets(more, b"stock", "/v3/a"), (true, 1));
    // A file that the owner pins in its place only has the owner's grants.
    let mine = format!("[plugins.a]\n{}routes = [\"/v3/a\"]", pin(b"mine"));
    assert_eq!(gets(&mine, b"mine", "/v2/a"), (false, 0));
    assert_eq!(gets(&mine, b"mine", "/v3/a"), (true, 0));
}

/// Creates public keys as printed by minisign, and as used in the policy.
fn keys() -> [(String, PublicKey); 3] {
    std::array::from_fn(|_| {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let text = pair.pk.to_base64();
        let key = PublicKey::from_base64(&text).unwrap();
        (text, key)
    })
}

#[test]
fn a_name_is_pinned_to_keys_that_are_named_and_not_revoked() {
    let [(acme, by_acme), (old, by_old), (other, by_other)] = keys();
    let digest = compiled_code::digest(b"pinned");
    let policy = parse_both(
        &format!(
            "[keys.acme]\npublic = \"{acme}\"\n\
             [keys.acme-old]\npublic = \"{old}\"\nrevoked = true\n\
             [keys.again]\npublic = \"{old}\"\n\
             [keys.other]\npublic = \" {other}\\n\"\n\
             [plugins.light]\nkeys = [\"acme\", \"acme-old\", \"again\"]\nsha256 = [\"{digest}\"]\n\
             [plugins.nobody]\nkeys = []\n\
             [plugins.stock]\nkeys = [\"gone\"]\n\
             [plugins.old]\ngrants = [\"led\"]\n"
        ),
        &format!("[plugins.stock]\n{}", pin(b"stock")),
    )
    .unwrap();
    let by = |keys: &[&PublicKey], problems: &[&str]| Signatures {
        keys: keys.iter().map(|key| (*key).clone()).collect(),
        problems: problems
            .iter()
            .map(|problem| (*problem).to_owned())
            .collect(),
        ..Signatures::default()
    };
    for (plugin, file, signatures, expected) in [
        (
            "light",
            "new",
            by(&[&by_acme], &[]),
            Ok(Pin::Key("acme".to_owned())),
        ),
        (
            "light",
            "new",
            by(&[&by_other, &by_acme], &["another is damaged"]),
            Ok(Pin::Key("acme".to_owned())),
        ),
        // The digest takes precedence over any signature.
        ("light", "pinned", by(&[&by_acme], &[]), Ok(Pin::Digest)),
        ("light", "pinned", by(&[&by_old], &[]), Ok(Pin::Digest)),
        // A key is revoked under all of its names.
        (
            "light",
            "new",
            by(&[&by_old], &[]),
            Err("it is signed with `acme-old`, which is revoked"),
        ),
        (
            "light",
            "new",
            by(&[&by_other], &[]),
            Err("it is signed with `other`, which the section does not name"),
        ),
        (
            "light",
            "new",
            by(&[], &[]),
            Err("with `acme` or `acme-old` or `again`: it has no signature"),
        ),
        (
            "light",
            "new",
            by(&[], &["it is damaged"]),
            Err("`again`: it is damaged; to trust this file"),
        ),
        (
            "nobody",
            "new",
            by(&[&by_acme], &[]),
            Err("pins other files of the plugin `nobody`"),
        ),
        // An owner who names a key means the files signed with it, and no longer the layout's file.
        (
            "stock",
            "stock",
            by(&[], &[]),
            Err("the policy has no [keys.gone]"),
        ),
        (
            "old",
            "new",
            by(&[&by_acme], &[]),
            Err("pins no file of a plugin `old`"),
        ),
    ] {
        let digest = compiled_code::digest(file.as_bytes());
        let granted = policy.grants(plugin, &digest, &signatures, Path::new("/"));
        match (granted, expected) {
            (Ok(grants), Ok(expected)) => assert_eq!(grants.pin, expected, "{plugin}, {file}"),
            (Err(error), Err(expected)) => {
                let error = error.to_string();
                assert!(error.contains(expected), "{plugin}, {file}: {error}");
                assert!(error.contains(&digest), "{error}");
            }
            (found, _) => panic!("{plugin}, {file}: {found:?}"),
        }
    }
}

#[test]
fn a_key_is_what_minisign_prints() {
    for (wrong, reason) in [
        ("public = \"RWQ\"", "`RWQ` is not a minisign public key"),
        (
            "public = \"untrusted comment: minisign public key\"",
            "use the second line",
        ),
        ("revoked = true", "`public` is missing"),
        (
            "public = \"x\"\nsecret = \"y\"",
            "is not a minisign public key",
        ),
    ] {
        let error = parse(&format!("[keys.acme]\n{wrong}")).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

/// Owners look there for what they can grant.
#[test]
fn the_shipped_policy_names_every_capability() {
    let text = include_str!("../../../../packaging/policy.toml");
    let (_, grants) = text.split_once("#   grants = ").unwrap();
    let (grants, _) = grants.split_once("#   leds = ").unwrap();
    let is_of_name = |sign: char| sign.is_ascii_alphanumeric() || sign == '-';
    let words: Vec<_> = grants.split(|sign| !is_of_name(sign)).collect();
    for capability in Capability::VARIANTS {
        assert!(words.contains(&capability.into()), "{}", capability);
    }
}

#[test]
fn a_policy_that_is_a_pipe_or_a_device_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("policy.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
        let error = policy_text(path, true).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("not a plain file"), "{error}: {source}");
    }
    assert_eq!(
        policy_text(&folder.path().join("none"), true).unwrap(),
        None
    );
    let policy = folder.path().join("real.toml");
    std::fs::write(&policy, "# é").unwrap();
    let text = policy_text(&policy, true).unwrap();
    assert_eq!(text.as_deref(), Some("# é"));
    std::fs::write(&policy, "#".repeat(1 << 20)).unwrap();
    assert!(policy_text(&policy, true).is_ok());
    std::fs::write(&policy, "#".repeat((1 << 20) + 1)).unwrap();
    let too_large = policy_text(&policy, true);
    assert!(matches!(too_large, Err(PolicyError::TooLarge { .. })));
}
