//! `supervisor plugins install FILE`: what the command checks before it changes anything, and the verdict of the running
//! supervisor that it waits for.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use minisign::KeyPair;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::{ProgramExit, Supervisor, distribution, guest, subcommand};

/// As long as tests wait for anything on a busy machine.
const PATIENTLY: [&str; 2] = ["--wait", "240"];

/// The folder of an owner: plugins, a policy, and a file `new.wasm` to be installed.
struct Owner(TempDir);

impl Owner {
    fn new() -> Owner {
        let folder = tempfile::tempdir().unwrap();
        for below in ["plugins", "state"] {
            fs::create_dir(folder.path().join(below)).unwrap();
        }
        fs::write(folder.path().join("policy.toml"), "").unwrap();
        Owner(folder)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    fn text(&self, below: &str) -> String {
        self.path(below).display().to_string()
    }

    /// Starts a supervisor that reads the folder and the policy.
    async fn start(&self) -> Supervisor {
        Supervisor::on_wasm()
            .argument("--plugin-dir")
            .argument(self.text("plugins"))
            .argument("--policy")
            .argument(self.text("policy.toml"))
            .start()
            .await
    }

    fn words(&self, more: &[&str]) -> Vec<String> {
        let words = ["plugins", "install", &self.text("new.wasm"), "--policy"].map(str::to_owned);
        let mut words = words.to_vec();
        words.extend([
            self.text("policy.toml"),
            "--plugin-dir".to_owned(),
            self.text("plugins"),
        ]);
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    }

    /// Installs `new.wasm` for the supervisor with this state folder.
    fn install(&self, state_dir: &Path, more: &[&str]) -> ProgramExit {
        let words = self.words(more);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        subcommand(&words, state_dir)
    }

    fn installed(&self) -> usize {
        fs::read_dir(self.path("plugins")).unwrap().count()
    }

    fn policy(&self) -> String {
        fs::read_to_string(self.path("policy.toml")).unwrap()
    }
}

fn greeter() -> Vec<u8> {
    fs::read(guest("greeter")).unwrap()
}

/// Returns the same plugin in other bytes: with a custom section of one byte.
fn other_greeter() -> Vec<u8> {
    [&greeter()[..], &[0, 2, 1, b'x']].concat()
}

/// Returns a plugin whose code imports what its manifest does not ask for: only the compiled code shows that.
fn undeclared() -> Vec<u8> {
    let mut plugin = fs::read(guest("plugin_guests")).unwrap();
    let manifest = "name = \"undeclared\"\nversion = \"2.0.0\"\ninterface = \"1.0.0\"\n\
                    [[routes]]\nmethod = \"GET\"\npath = \"/v3/undeclared\"\n";
    plugin_manifest::append_section(&mut plugin, plugin_manifest::SECTION, manifest.as_bytes());
    plugin
}

#[tokio::test]
async fn install_waits_for_the_verdict_of_the_running_supervisor() {
    let owner = Owner::new();
    let device = owner.start().await;
    let state = device.state_dir().to_owned();
    fs::write(owner.path("new.wasm"), greeter()).unwrap();
    let installed = owner.install(&state, &PATIENTLY);
    assert!(installed.status.success(), "{installed:?}");
    assert!(
        installed.stdout.ends_with("\ngreeter 0.1.0 runs\n"),
        "{installed:?}"
    );
    assert!(
        installed.stderr.starts_with(
            "waiting for at most 240 s until the supervisor has loaded or refused greeter 0.1.0"
        ),
        "{installed:?}"
    );
    assert_eq!(device.get("/v3/greet/Ada?greeting=Hi").await.status, 200);

    // Only its compiled code shows that the device refuses this one.
    fs::write(owner.path("new.wasm"), undeclared()).unwrap();
    let refused = owner.install(&state, &PATIENTLY);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    for expected in [
        "error: the supervisor refuses undeclared 2.0.0: ",
        "its manifest does not ask for that",
        "this removes it: `rm ",
    ] {
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
    assert_eq!(owner.installed(), 2);

    let ignored = owner.install(&state, &["--wait", "0"]);
    assert!(ignored.status.success(), "{ignored:?}");
    assert!(
        ignored
            .stdout
            .contains("this shows whether it has: `supervisor plugins list --state-dir "),
        "{ignored:?}"
    );
    assert_eq!(ignored.stderr, "");
}

#[tokio::test]
async fn without_a_running_supervisor_the_code_is_checked_before_anything_changes() {
    let owner = Owner::new();
    let state = owner.path("state");
    fs::write(owner.path("new.wasm"), undeclared()).unwrap();
    let refused = owner.install(&state, &[]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    for expected in [
        "nothing is changed, because the device would refuse `undeclared` 2.0.0: ",
        "its manifest does not ask for that",
    ] {
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
    assert_eq!((owner.installed(), owner.policy()), (0, String::new()));

    fs::write(owner.path("new.wasm"), greeter()).unwrap();
    let installed = owner.install(&state, &[]);
    assert!(installed.status.success(), "{installed:?}");
    assert!(
        installed
            .stdout
            .contains("it will load the plugin at its next start"),
        "{installed:?}"
    );
    assert_eq!(owner.installed(), 1);
}

#[tokio::test]
async fn an_interrupted_wait_leaves_the_plugin_installed() {
    let owner = Owner::new();
    // It reads another folder, so it never gives a verdict.
    let device = Supervisor::on_wasm().start().await;
    fs::write(owner.path("new.wasm"), greeter()).unwrap();
    let mut command = Command::new(distribution().join("bin/supervisor"));
    let mut install = command
        .args(owner.words(&[]))
        .arg("--state-dir")
        .arg(device.state_dir())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(install.stderr.take().unwrap());
    let id = Pid::from_child(&install);
    let stderr = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        stderr.read_line(&mut text).unwrap();
        assert!(text.starts_with("waiting for at most 120 s"), "{text}");
        kill_process(id, Signal::INT).unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    });
    let stderr = stderr.await.unwrap();
    assert_eq!(install.wait().unwrap().code(), Some(1), "{stderr}");
    for expected in [
        "interrupted while waiting: greeter 0.1.0 stays installed in `",
        "`supervisor plugins list --state-dir ",
    ] {
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert_eq!(owner.installed(), 1);

    // It gives up earlier, once the supervisor has had the time to find a file in one of its folders.
    let unlisted = owner.install(device.state_dir(), &["--wait", "240"]);
    assert_eq!(unlisted.status.code(), Some(1), "{unlisted:?}");
    assert!(
        unlisted
            .stderr
            .contains("reads other plugin folders than this command"),
        "{unlisted:?}"
    );
}

#[tokio::test]
async fn the_next_version_without_a_signature_needs_the_section_that_install_prints() {
    let owner = Owner::new();
    let device = owner.start().await;
    let state = device.state_dir().to_owned();
    fs::write(owner.path("new.wasm"), greeter()).unwrap();
    assert!(owner.install(&state, &PATIENTLY).status.success());
    let before = (
        owner.policy(),
        fs::read(owner.path("plugins/greeter.wasm")).unwrap(),
    );

    fs::write(owner.path("new.wasm"), other_greeter()).unwrap();
    let refused = owner.install(&state, &PATIENTLY);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let after = (
        owner.policy(),
        fs::read(owner.path("plugins/greeter.wasm")).unwrap(),
    );
    assert_eq!(after, before);

    let (reason, section) = refused.stderr.split_once(":\n\n").unwrap();
    assert!(
        reason.contains("[plugins.greeter] of the policy"),
        "{reason}"
    );
    fs::write(owner.path("policy.toml"), section).unwrap();
    let installed = owner.install(&state, &PATIENTLY);
    assert!(installed.status.success(), "{installed:?}");
    assert!(
        installed.stdout.ends_with("\ngreeter 0.1.0 runs\n"),
        "{installed:?}"
    );
    let plugins = device.json("/v3/plugins").await;
    assert_eq!(plugins["plugins"][0]["refused"], Value::Null);
}

#[tokio::test]
async fn a_program_reads_what_install_and_rollback_have_done() {
    let owner = Owner::new();
    let read = |exit: &ProgramExit| serde_json::from_str::<Value>(&exit.stdout).unwrap();
    fs::write(owner.path("new.wasm"), greeter()).unwrap();
    let installed = owner.install(&owner.path("state"), &["--json"]);
    assert!(installed.status.success(), "{installed:?}");
    let report = read(&installed);
    assert_eq!(report["state"], "no-supervisor", "{report}");
    let lines = report["addedLines"].as_str().unwrap();
    assert!(lines.contains("[plugins.greeter]"), "{report}");
    assert_eq!(report["policy"], owner.text("policy.toml"));

    let device = owner.start().await;
    let state = device.state_dir().to_owned();
    let options = ["--json", "--wait", "240"];
    let first = read(&owner.install(&state, &options));
    let expected = json!({
        "name": "greeter", "version": "0.1.0", "file": owner.text("plugins/greeter.wasm"),
        "digest": first["digest"], "previousVersion": "0.1.0", "policy": owner.text("policy.toml"),
        "addedLines": "", "state": "running",
    });
    assert_eq!(first, expected);

    // Standard output is empty if nothing has changed.
    fs::write(owner.path("new.wasm"), other_greeter()).unwrap();
    let refused = owner.install(&state, &options);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(refused.stdout, "");
    let (_, section) = refused.stderr.split_once(":\n\n").unwrap();
    fs::write(owner.path("policy.toml"), section).unwrap();
    let second = read(&owner.install(&state, &options));
    assert_eq!(second["state"], "running", "{second}");
    assert_ne!(second["digest"], first["digest"]);

    let (policy, plugins) = (owner.text("policy.toml"), owner.text("plugins"));
    let mut words = vec!["plugins", "rollback", "greeter", "--policy", &policy];
    words.extend(["--plugin-dir", &plugins]);
    words.extend(options);
    let restored = subcommand(&words, &state);
    assert!(restored.status.success(), "{restored:?}");
    let expected = json!({
        "name": "greeter", "version": "0.1.0", "file": owner.text("plugins/greeter.wasm"),
        "digest": first["digest"], "previousVersion": "0.1.0", "state": "running",
    });
    assert_eq!(read(&restored), expected);

    fs::write(owner.path("new.wasm"), undeclared()).unwrap();
    let refused = owner.install(&state, &options);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let report = read(&refused);
    assert_eq!(report["state"], "not-running", "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with("the supervisor refuses undeclared 2.0.0: "));
    assert!(refused.stderr.contains(error.lines().next().unwrap()));
}

#[tokio::test]
async fn a_file_that_the_key_did_not_sign_is_refused_with_both_keys() {
    let owner = Owner::new();
    let (maker, stranger) = (
        KeyPair::generate_unencrypted_keypair().unwrap(),
        KeyPair::generate_unencrypted_keypair().unwrap(),
    );
    let id = |pair: &KeyPair| {
        let text = pair.pk.to_box().unwrap().to_string();
        let first = text.lines().next().unwrap();
        first.rsplit(' ').next().unwrap().to_owned()
    };
    let content = greeter();
    let signature = minisign::sign(None, &maker.sk, &content[..], None, None).unwrap();
    let key = owner.text("stranger.pub");
    fs::write(&key, stranger.pk.to_box().unwrap().to_string()).unwrap();
    fs::write(owner.path("new.wasm"), &content).unwrap();
    let refused = |expected: &[String]| {
        let refused = owner.install(&owner.path("state"), &["--key", &key]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        for expected in expected {
            assert!(refused.stderr.contains(expected), "{expected}: {refused:?}");
        }
        assert_eq!((owner.installed(), owner.policy()), (0, String::new()));
    };
    let given = format!("is not signed with the key {} of `{key}`", id(&stranger));
    refused(&[
        given.clone(),
        "it has no signature".to_owned(),
        "supervisor-plugin sign ".to_owned(),
    ]);
    fs::write(owner.path("new.wasm.minisig"), signature.to_string()).unwrap();
    refused(&[
        given,
        format!(
            "it is signed with the key {}; to trust that key",
            id(&maker)
        ),
    ]);
}
