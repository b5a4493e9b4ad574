//! `keygen`, `sign` and `verify`.

use std::fs;

use compiled_code::digest;
use serde_json::Value;
use tests::guest;

use crate::author::{Author, CommandOutput, TOOL};
use crate::languages::can_build;

#[test]
fn a_signature_counts_for_its_key_and_its_content_alone() {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    author.run("keygen acme.key --no-password").succeeds();
    author.run("keygen other.key --no-password").succeeds();
    let again = author.run("keygen acme.key --no-password").fails();
    assert!(
        again.err.contains(
            "cannot create `acme.key.pub`, the file of the public key, because it exists"
        ),
        "{}",
        again.err
    );
    fs::remove_file(author.path("other.key")).unwrap();
    author.run("keygen other.key --no-password").fails();
    assert!(!author.path("other.key").exists(), "nor half of a pair");
    fs::remove_file(author.path("other.key.pub")).unwrap();
    author.run("keygen other.key --no-password").succeeds();

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
fn an_invalid_key_signs_nothing() {
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

/// Policies may pin its digest.
#[test]
fn a_detached_signature_leaves_the_file_as_it_is_or_there_is_none() {
    let author = Author::new();
    fs::copy(guest("greeter"), author.path("greeter.wasm")).unwrap();
    author.run("keygen acme.key --no-password").succeeds();
    author.run("sign greeter.wasm --key acme.key").succeeds();
    let signed = fs::read(author.path("greeter.wasm")).unwrap();
    let refused = author
        .run("sign greeter.wasm --key acme.key --detached")
        .fails();
    let expected = "`greeter.wasm` contains a signature, and a detached one leaves the file unchanged: sign it without \
                    `--detached`, or build it again";
    assert!(refused.err.contains(expected), "{}", refused.err);
    assert_eq!(fs::read(author.path("greeter.wasm")).unwrap(), signed);
    assert!(!author.path("greeter.wasm.minisig").exists());
    // The signature in the file is replaced, and its content is the same.
    author.run("keygen other.key --no-password").succeeds();
    author.run("sign greeter.wasm --key other.key").succeeds();
    author
        .run("verify greeter.wasm --public-key other.key.pub")
        .succeeds();
    let other = fs::read(author.path("greeter.wasm")).unwrap();
    let content = plugins::signed_content(&signed);
    assert_eq!(plugins::signed_content(&other), content);
    assert_eq!(content, fs::read(guest("greeter")).unwrap());
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

/// The compilers of these languages make the same component of the same sources.
#[test]
fn a_project_that_is_built_again_stays_signed_unless_its_content_changes() {
    // Another name than in other tests: cargo's target folder is for all of them.
    for (language, name, source) in [
        ("c", "rails", "src/plugin.c"),
        ("go", "rails", "src/plugin.go"),
        ("rust", "beams", "src/lib.rs"),
    ] {
        if !can_build(language) {
            continue;
        }
        let author = Author::new();
        author.run("keygen acme.key --no-password").succeeds();
        if language == "rust" {
            author.new_project(name);
        } else {
            let new = format!("new {name} --lang {language}");
            author.run(&new).succeeds();
        }
        author.run_in(name, "build").succeeds();
        let sign = format!("sign {name}.wasm --key ../acme.key");
        author.run_in(name, &sign).succeeds();
        let verify = format!("verify {name}.wasm --public-key ../acme.key.pub");
        let verify = verify.as_str();
        for command in ["inspect", "check", "test", "build"] {
            let run = author.run_in(name, command).succeeds();
            author.run_in(name, verify).succeeds();
            if command != "inspect" {
                assert!(run.err.contains("so it stays signed"), "{}", run.err);
            }
        }
        let source = format!("{name}/{source}");
        author.edit(&source, "This is call", "This was call");
        // Shows the existing component, and builds nothing.
        author.run_in(name, "inspect").succeeds();
        author.run_in(name, verify).succeeds();
        let built = author.run_in(name, "build").succeeds();
        assert!(built.err.contains("sign it again"), "{}", built.err);
        author.run_in(name, verify).fails();
        let built = author.run_in(name, "build --key ../acme.key").succeeds();
        assert!(built.out.contains("signed with the key "), "{}", built.out);
        author.run_in(name, verify).succeeds();
        author.edit(&source, "This was call", "This is call");
        let built = author.run_in(name, "build --key ../acme.key").succeeds();
        assert!(!built.err.contains("sign it again"), "{}", built.err);
        author.run_in(name, verify).succeeds();
        // A key that does not sign is noticed before anything is built.
        let refused = author.run_in(name, "build --key ../acme.key.pub").fails();
        assert!(
            refused.err.contains("is not a secret key"),
            "{}",
            refused.err
        );
        author.run_in(name, verify).succeeds();
    }
}

/// An author with a signed project in a language whose compiler makes another component each time.
struct SignedProject {
    author: Author,
}

impl SignedProject {
    fn new(language: &str) -> SignedProject {
        let author = Author::with_project(language);
        author.run("keygen acme.key --no-password").succeeds();
        let signed = SignedProject { author };
        signed.sign();
        signed
    }

    /// Builds and signs the component.
    fn sign(&self) {
        let built = self.author.run_in("rails", "build --key ../acme.key");
        let built = built.succeeds();
        assert!(built.out.contains("signed with the key "), "{}", built.out);
    }

    fn verify(&self) -> CommandOutput {
        let verify = "verify rails.wasm --public-key ../acme.key.pub";
        self.author.run_in("rails", verify)
    }

    /// Checks that each command leaves the signed component as it is.
    fn stays(&self) {
        let file = self.author.path("rails/rails.wasm");
        let before = fs::read(&file).unwrap();
        for command in ["check", "test", "build"] {
            let run = self.author.run_in("rails", command).succeeds();
            let expected = "\nrails has not changed since the last build, so it stays signed\n";
            assert!(run.err.contains(expected), "{command}: {}", run.err);
            self.verify().succeeds();
        }
        assert!(fs::read(&file).unwrap() == before);
        let built = self.author.run_in("rails", "build --json").succeeds();
        assert_eq!(built.json()["unchanged"], true, "{}", built.out);
        let built = self.author.run_in("rails", "build").succeeds();
        assert!(
            built.out.contains("  unchanged   asks for: store"),
            "{}",
            built.out
        );
    }

    /// Checks that the project is built again, and signs it.
    fn changes(&self, build: &str) {
        let built = self.author.run_in("rails", build).succeeds();
        assert!(built.err.contains("\nbuilt rails in "), "{}", built.err);
        assert!(built.err.contains("sign it again"), "{}", built.err);
        assert!(built.out.contains("  built in "), "{}", built.out);
        self.verify().fails();
        let sign = "sign rails.wasm --key ../acme.key";
        self.author.run_in("rails", sign).succeeds();
        self.verify().succeeds();
    }
}

#[test]
fn a_project_in_javascript_stays_signed_until_something_that_it_imports_changes() {
    if !can_build("javascript") {
        return;
    }
    let signed = SignedProject::new("javascript");
    signed.stays();
    let author = &signed.author;
    for folder in ["node_modules/rail-names", "node_modules/unused"] {
        fs::create_dir_all(author.path("rails").join(folder)).unwrap();
    }
    let package = "rails/node_modules/rail-names/index.js";
    author.write(package, "export const rail = \"5v\";");
    author.write("rails/src/own.js", "export { rail } from \"rail-names\";");
    author.edit(
        "rails/src/plugin.js",
        "import",
        "import { rail } from \"./own\";\nglobalThis.rail = rail;\nimport",
    );
    signed.changes("build");
    author.write(package, "export const rail = \"3v\";");
    signed.changes("build");
    // esbuild prefers it to `own.js`.
    author.write("rails/src/own.ts", "export const rail = \"12v\";");
    signed.changes("build");
    author.edit("rails/plugin.toml", "0.1.0", "0.1.1");
    signed.changes("build");
    // What the plugin does not import is no part of it.
    author.write("rails/src/other.js", "export const other = 1;");
    author.write("rails/node_modules/unused/index.js", "");
    author.append("rails/test/hello.toml", "\n");
    signed.stays();
    signed.changes("build --force");
}

#[test]
fn a_project_in_typescript_stays_signed_until_it_changes() {
    if !can_build("typescript") {
        return;
    }
    let signed = SignedProject::new("typescript");
    signed.stays();
    let source = "rails/src/plugin.ts";
    signed.author.edit(source, "This is call", "This was call");
    signed.changes("build");
}

#[test]
fn a_project_in_python_stays_signed_while_nothing_changes() {
    if can_build("python") {
        SignedProject::new("python").stays();
    }
}

/// A compiler for Python that makes another component each time, at once.
const COMPILER: &str = "#!/bin/sh
if [ \"$1\" = --version ]; then echo componentize-py 0; exit; fi
while [ \"$1\" != --output ]; do shift; done
echo >> runs
cp ../component.wasm \"$2\"
# A section with the number of the run.
printf '\\000\\005\\001n%03d' \"$(wc -l < runs)\" >> \"$2\"
";

/// Each kind of input, with a compiler that takes no time.
#[test]
fn a_project_in_python_is_built_again_after_a_change_of_whatever_an_import_could_find() {
    let author = Author::with_project("python");
    let component = guest("wasi_http_guests");
    fs::copy(component, author.path("component.wasm")).unwrap();
    fs::create_dir(author.path("bin")).unwrap();
    author.write("compiler", COMPILER);
    // By another process: a program cannot be started while this one holds its file open, or a thread of it starts another
    // program meanwhile.
    let install = || {
        let line = "install -m 755 compiler bin/componentize-py";
        author.shell(line, &[]).succeeds();
    };
    install();
    author.run("keygen acme.key --no-password").succeeds();
    author.edit(
        "rails/src/plugin.py",
        "from supervisor_sdk",
        "import own\nfrom supervisor_sdk",
    );
    author.write("rails/src/own.py", "VOLTS = 5\n");
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", author.path("bin").display());
    let run = |command: &str, variables: &[(&str, String)]| {
        let lines = format!("cd rails\nexport PATH={path}\n{TOOL} {command}");
        author.shell(&lines, variables)
    };
    run("build --key ../acme.key", &[]).succeeds();
    let is_signed = || {
        let verify = "verify rails.wasm --public-key ../acme.key.pub";
        run(verify, &[]).code == 0
    };
    let stays = "rails has not changed since the last build, so it stays signed";
    let edit = |file: &'static str, from: &'static str, to: &'static str| {
        let author = &author;
        move || author.edit(file, from, to)
    };
    let write = |file: &'static str, text: &'static str| {
        let author = &author;
        move || author.write(file, text)
    };
    let changes: [(&str, &dyn Fn()); 6] = [
        (
            "source",
            &edit("rails/src/plugin.py", "is call", "was call"),
        ),
        ("imported module", &write("rails/src/own.py", "VOLTS = 3\n")),
        ("plugin.toml", &edit("rails/plugin.toml", "0.1.0", "0.1.1")),
        ("added file", &write("rails/src/own.pyc", "code")),
        ("compiler", &|| {
            author.edit("compiler", "py 0", "py 1");
            install();
        }),
        ("component", &|| {
            fs::remove_file(author.path("rails/rails.wasm")).unwrap();
        }),
    ];
    for (name, change) in changes {
        for command in ["inspect", "build"] {
            let unchanged = run(command, &[]).succeeds();
            let says = unchanged.err.contains(stays);
            assert_eq!(says, command == "build", "{name}: {}", unchanged.err);
        }
        assert!(is_signed(), "{name}");
        change();
        let built = run("build", &[]).succeeds();
        assert!(
            built.err.contains("\nbuilt rails in "),
            "{name}: {}",
            built.err
        );
        assert!(!is_signed(), "{name}");
        run("sign rails.wasm --key ../acme.key", &[]).succeeds();
    }
    // Files that only tests, editors and Python itself read.
    author.append("rails/test/hello.toml", "\n");
    author.append("rails/device.toml", "\n");
    author.write("rails/src/.plugin.py.swp", "");
    fs::create_dir(author.path("rails/src/__pycache__")).unwrap();
    author.write("rails/src/__pycache__/own.cpython-314.pyc", "");
    let unchanged = run("build", &[]).succeeds();
    assert!(unchanged.err.contains(stays), "{}", unchanged.err);
    let variables = [("PYTHONHASHSEED", "1".to_owned())];
    let built = run("build", &variables).succeeds();
    assert!(built.err.contains("sign it again"), "{}", built.err);
    // What the tool cannot know is built each time, and the author learns why.
    std::os::unix::fs::symlink("/etc/hostname", author.path("rails/src/name")).unwrap();
    for _ in 0..2 {
        let built = run("build", &[]).succeeds();
        let reason = "each build makes another component: `";
        assert!(built.err.contains(reason), "{}", built.err);
        assert!(built.err.contains("\nbuilt rails in "), "{}", built.err);
    }
}
