//! Absurd policies: each is refused with an explanation, and none grants anything to a file that it does not pin.

use fuzz::mutated;
use proptest::prelude::*;

use super::*;

/// SHA-256 of the pinned file.
const PINNED: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
/// SHA-256 of another file.
const OTHER: &str = "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";
/// The policy that owners start from.
const OWNERS: &str = include_str!("../../../../packaging/policy.toml");

const WORDS: &[&str] = &[
    "[plugins.a]\n",
    "[plugins.b]\n",
    "[plugins.\"*\"]\n",
    "[plugins]\n",
    "[keys.k]\n",
    "public = \"RW\"\n",
    "revoked = false\n",
    "sha256 = ",
    "[]",
    "[\"\"]",
    "\"*\"",
    "keys = [\"k\"]\n",
    "grants = [\"led\", \"store\"]\n",
    "files = [",
    "{ host = \"/\", guest = \"/\" }",
    "write = true",
    "routes = [\"/*\"]\n",
    "provides = [\"identify\"]\n",
    "boards = [\"*\"]\n",
    "[bounds]\n",
    "memory_mib = 0\n",
    "memory_mib = 18446744073709551615\n",
    "[plugins.a.limits]\n",
    "wall_ms = 1\n",
    "units = [\"../x\"]\n",
    "records = [\"a b\"]\n",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "\"",
    "'''",
    "#",
    "\n",
    "\u{0}",
    "-1",
    "1e9",
    "true",
];

fn good() -> Vec<String> {
    let own = format!(
        "[keys.acme]\npublic = \"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"\n\
         [plugins.a]\nsha256 = [\"{PINNED}\"]\nroutes = [\"/v3/a/*\"]\n\
         grants = [\"led\", \"files\", \"units\", \"cloud\"]\nleds = [\"ACT\"]\nunits = [\"x.service\"]\n\
         records = [\"device_tag\"]\nfiles = [{{ host = \"mnt\", guest = \"/a\", write = true }}]\n\
         [plugins.a.limits]\nwall_ms = 1000\n\
         [plugins.b]\nkeys = [\"acme\"]\ngrants = [\"store\"]\n[bounds]\nmemory_mib = 128\n"
    );
    vec![own, OWNERS.to_owned()]
}

#[test]
fn no_policy_grants_anything_to_a_file_that_it_does_not_pin() {
    let files = PolicyFiles {
        owner: "policy.toml".into(),
        stock: "stock-plugins.toml".into(),
    };
    let stock: String = ["a", "led-blink"]
        .map(|name| format!("[plugins.{name}]\nsha256 = [\"{PINNED}\"]\n"))
        .concat();
    let granted = |policy: &Policy, name: &str, digest: &str| {
        policy.grants(name, digest, &Signatures::default(), Path::new("/"))
    };
    for text in good() {
        let policy = Policy::parse(&files, &text, &stock).expect("a good policy");
        assert!(granted(&policy, "a", PINNED).is_ok());
    }
    fuzz::run("policies", 1000, &mutated(good(), WORDS), |text| {
        match Policy::parse(&files, &text, &stock) {
            Ok(policy) => {
                for name in ["a", "b", "*", "", "led-blink", "other"] {
                    let other = granted(&policy, name, OTHER);
                    prop_assert!(other.is_err(), "`{}` gives another file something", name);
                    // The pinned file may get something or nothing.
                    let _ = granted(&policy, name, PINNED);
                }
            }
            Err(error) => {
                let text = error.to_string();
                prop_assert!(!text.is_empty() && text.len() < 4_000, "{}", text.len());
            }
        }
        Ok(())
    });
}
