//! Manifests that nobody would write: each is refused with a message, or is within the bounds of all
//! manifests.

use fuzz::mutated;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::name::NAME;
use crate::section::{COMPONENT, SECTION, append_section};

const GOOD: &[&str] = &[
    "name = \"greet\"\nversion = \"0.1.0-beta.1+5\"\ninterface = \"1.0.0\"\nboards = [\"raspberrypi*\"]\n\
     provides = [\"identify\"]\n[[routes]]\nmethod = \"GET\"\npath = \"/v3/greet/:name\"\n\
     [[capabilities]]\nname = \"device\"\nreason = \"to say the device's name\"\n[limits]\nmemory_mib = 4\n",
    "name = \"all\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nroutes = [{ method = \"*\", path = \"/v3/all/*\" }]\n\
     limits = { memory_mib = 16, cpu_ms = 100, wall_ms = 1000, body_kib = 64, concurrency = 2 }\n",
];
const WORDS: &[&str] = &[
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\"",
    "'''",
    "\\",
    "\\u0000",
    "#",
    "\n",
    "\r",
    "1.0.0",
    "2.0.0",
    "1.99.0",
    "18446744073709551616",
    "-1",
    "0",
    "1e9",
    "nan",
    "true",
    "1979-05-27",
    "[[routes]]\n",
    "[limits]\n",
    "name = ",
    "path = ",
    "\"/v3/*\"",
    "\"/:a/:a\"",
    "\"//\"",
    "\"/v3/../v1\"",
    "\"/%2e\"",
    "*",
    ":x",
    "method = \"GET\"\n",
    "wall_ms = ",
    "provides = [\"identify\"]\n",
    "a.b.c.d = 1\n",
];

fn check(read: Result<Manifest, ManifestError>, given: usize) -> Result<(), TestCaseError> {
    match read {
        Ok(manifest) => {
            prop_assert!(!manifest.name.is_empty() && manifest.name.len() <= NAME);
            prop_assert!(!manifest.routes.is_empty() || !manifest.provides.is_empty());
            prop_assert!(manifest.limits.check().is_ok());
            for route in &manifest.routes {
                let path = route.pattern.as_str();
                let goes_up = path.split('/').any(|segment| segment == "..");
                prop_assert!(path.starts_with('/') && !goes_up, "{}", path);
            }
        }
        Err(error) => {
            let text = model::error_chain(&error).to_string();
            prop_assert!(
                !text.is_empty() && text.len() < 4_000 + 8 * given,
                "{} bytes",
                text.len()
            );
        }
    }
    Ok(())
}

#[test]
fn any_manifest_is_refused_or_within_bounds() {
    let texts = mutated(GOOD.iter().map(|text| (*text).to_owned()).collect(), WORDS);
    let inputs = (
        texts,
        vec(any::<u8>(), 0..40),
        any::<usize>(),
        any::<bool>(),
    );
    fuzz::run(
        "manifests",
        1500,
        &inputs,
        |(text, bytes, at, overwrites)| {
            check(Manifest::parse(&text), text.len())?;
            // A component in which some bytes are changed.
            let mut wasm = COMPONENT.to_vec();
            append_section(&mut wasm, SECTION, text.as_bytes());
            let at = at % (wasm.len() + 1);
            let end = if overwrites {
                wasm.len().min(at + bytes.len())
            } else {
                at
            };
            wasm.splice(at..end, bytes);
            check(Manifest::from_wasm(&wasm), wasm.len())
        },
    );
}
