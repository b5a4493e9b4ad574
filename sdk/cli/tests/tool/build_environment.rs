//! The environment of the programs that a build starts.

use std::fs;

use tests::guest;

use crate::author::{Author, TOOL};

/// A program that records its environment and fails; as rustup, it says that the target is there, so that cargo runs too.
const STAND_IN: &str = "#!/bin/sh
env > \"$RECORDS/$(basename \"$0\")\"
case \"$0\" in */rustup) echo wasm32-wasip2 ;; *) exit 1 ;; esac
";

/// Attack: a package, a build script or a compiler that reads the password of the author's key, or the key of a device.
#[test]
fn no_program_of_a_build_gets_the_authors_secrets() {
    let author = Author::new();
    author.run("keygen acme.key --no-password").succeeds();
    author.write("stand-in", STAND_IN);
    // By another process: a program cannot be started while this one holds its file open, or a thread of it starts another
    // program meanwhile.
    let install = "mkdir bin\nfor name in cargo componentize-py go node npm python3 rustup; do install -m 755 stand-in bin/$name; done";
    author.shell(install, &[]).succeeds();
    fs::copy(guest("wasi_http_guests"), author.path("component.wasm")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let programs = author.path("bin").display().to_string();
    for (language, expected) in [
        ("rust", "cargo rustup"),
        ("c", "python3"),
        ("go", "go"),
        ("javascript", "npm"),
        ("python", "componentize-py"),
        ("component", "sh"),
    ] {
        let project = format!("rails-{language}");
        if language == "component" {
            let new = format!("new {project} --component component.wasm");
            author.run(&new).succeeds();
            author.edit(
                &format!("{project}/plugin.toml"),
                "# command = \"…\"",
                "command = 'env > \"$RECORDS/sh\"; exit 1'",
            );
        } else {
            let new = format!("new {project} --lang {language}");
            author.run(&new).succeeds();
        }
        let records = author.path(&format!("records-{language}"));
        fs::create_dir(&records).unwrap();
        let variables = [
            ("PATH", format!("{programs}:{path}")),
            ("CARGO", format!("{programs}/cargo")),
            ("RECORDS", records.display().to_string()),
            // Nothing is installed in it.
            ("XDG_CACHE_HOME", author.path("cache").display().to_string()),
            (
                "SUPERVISOR_PLUGIN_KEY_PASSWORD",
                "secret-of-the-key".to_owned(),
            ),
            (
                "SUPERVISOR_PLUGIN_DEVICE_KEY",
                "secret-of-a-device".to_owned(),
            ),
        ];
        let build = format!("cd {project}\n{TOOL} build --key ../acme.key");
        let built = author.shell(&build, &variables).fails();
        let mut names = Vec::new();
        for entry in fs::read_dir(&records).unwrap().flatten() {
            let environment = fs::read_to_string(entry.path()).unwrap();
            let name = entry.file_name().into_string().unwrap();
            assert!(environment.contains("RECORDS="), "{name}: {environment}");
            assert!(!environment.contains("secret-of-"), "{name} has a secret");
            names.push(name);
        }
        for name in expected.split(' ') {
            let is_recorded = names.iter().any(|recorded| recorded == name);
            assert!(is_recorded, "{name} in {names:?}: {}", built.err);
        }
    }
}
