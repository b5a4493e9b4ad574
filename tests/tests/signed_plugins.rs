//! A plugin of a maker whose key the owner trusts, and files that somebody else could have written, on a running
//! supervisor.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use minisign::KeyPair;
use serde_json::Value;
use tests::{Supervisor, guest, until};

/// A supervisor with a folder of plugins and a policy of the test's own.
struct Device {
    supervisor: Supervisor,
    folder: tempfile::TempDir,
}

impl Device {
    async fn start() -> Device {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("plugins")).unwrap();
        fs::write(folder.path().join("policy.toml"), "").unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let builder = Supervisor::on_wasm()
            .argument("--plugin-dir")
            .argument(path("plugins"))
            .argument("--policy")
            .argument(path("policy.toml"));
        Device {
            supervisor: builder.start().await,
            folder,
        }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Writes a file in one step.
    fn put(&self, below: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path("new"), content).unwrap();
        fs::rename(self.path("new"), self.path(below)).unwrap();
    }

    /// Waits until the greeter's part of the report fits.
    async fn until(&self, what: &str, fits: impl Fn(&Value) -> bool) {
        until(what, || async {
            let all = self.supervisor.json("/v3/plugins").await;
            if fits(&all["plugins"][0]) {
                Ok(())
            } else {
                Err(all)
            }
        })
        .await;
    }

    async fn until_refused(&self, reason: &str) {
        self.until(reason, |greeter| {
            let refused = greeter["refused"].as_str().unwrap_or_default();
            greeter["state"] == "refused" && refused.contains(reason)
        })
        .await;
    }

    fn trust(&self, file: &Path) -> String {
        let policy = self.path("policy.toml").display().to_string();
        let file = file.display().to_string();
        let words = ["plugins", "trust", &file, "--policy", &policy];
        let shown = self.supervisor.subcommand(&words);
        assert!(shown.status.success(), "{shown:?}");
        shown.stdout
    }
}

const GREETING: &str = "/v3/greet/Ada?greeting=Hi";

#[tokio::test]
async fn an_owner_trusts_a_maker_by_a_key_until_it_is_revoked() {
    let device = Device::start().await;
    let maker = KeyPair::generate_unencrypted_keypair().unwrap();
    let content = fs::read(guest("greeter")).unwrap();
    let signature = minisign::sign(None, &maker.sk, &content[..], None, None).unwrap();

    // The maker ships one file.
    let shipped = device.path("greeter.wasm");
    fs::write(&shipped, &content).unwrap();
    fs::write(device.path("greeter.wasm.minisig"), signature.to_string()).unwrap();
    let embed = ["plugins", "embed-signature", shipped.to_str().unwrap()];
    let embedded = device.supervisor.subcommand(&embed);
    assert!(embedded.status.success(), "{embedded:?}");
    assert!(!device.path("greeter.wasm.minisig").exists());

    // The owner names the key, and adds the output of `trust`.
    let public = maker.pk.to_base64();
    let key = format!("[keys.acme]\npublic = \"{public}\"\n");
    device.put("policy.toml", &key);
    let lines = device.trust(&shipped);
    assert!(lines.contains("\nkeys = [\"acme\"]\n"), "{lines}");
    device.put("policy.toml", format!("{key}{lines}"));
    device.put("plugins/greeter.wasm", fs::read(&shipped).unwrap());
    device
        .until("it to run", |greeter| {
            greeter["state"] == "running" && greeter["signedBy"] == "acme"
        })
        .await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 200);

    // The same content without a signature, and the key that is no longer trusted.
    fs::remove_file(device.path("plugins/greeter.wasm")).unwrap();
    device.put("plugins/other.wasm", &content);
    device
        .until_refused("signed with `acme`: it has no signature")
        .await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 404);
    fs::remove_file(device.path("plugins/other.wasm")).unwrap();
    device.put("plugins/greeter.wasm", fs::read(&shipped).unwrap());
    device
        .until("it to run again", |greeter| greeter["state"] == "running")
        .await;
    device.put("policy.toml", format!("{key}revoked = true\n{lines}"));
    device
        .until_refused("it is signed with `acme`, which is revoked")
        .await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 404);
}

/// The steps of docs/plugins-on-a-device.md, from the key to the next version.
#[tokio::test]
async fn an_owner_who_grants_by_a_makers_key_accepts_the_next_version_without_a_new_line() {
    let device = Device::start().await;
    let maker = KeyPair::generate_unencrypted_keypair().unwrap();
    fs::write(
        device.path("acme.key.pub"),
        maker.pk.to_box().unwrap().to_string(),
    )
    .unwrap();
    let first = fs::read(guest("greeter")).unwrap();
    // A custom section of one byte turns the same plugin into other bytes.
    let second = [&first[..], &[0, 2, 1, b'x']].concat();
    let install = |content: &[u8]| {
        let signature = minisign::sign(None, &maker.sk, content, None, None).unwrap();
        device.put("plugins/greeter.wasm.minisig", signature.to_string());
        device.put("plugins/greeter.wasm", content);
    };
    let shipped = device.path("plugins/greeter.wasm").display().to_string();
    let policy = device.path("policy.toml").display().to_string();
    let key = device.path("acme.key.pub").display().to_string();
    let grant = [
        "plugins", "grant", &shipped, "--policy", &policy, "--key", &key,
    ];

    // Without a signature nothing is granted.
    device.put("plugins/greeter.wasm", &first);
    let refused = device.supervisor.subcommand(&grant);
    assert!(!refused.status.success(), "{refused:?}");
    assert!(
        refused.stderr.contains("it has no signature"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&policy).unwrap(), "");

    install(&first);
    let granted = device.supervisor.subcommand(&grant);
    assert!(granted.status.success(), "{granted:?}");
    let is_signed =
        |greeter: &Value| greeter["state"] == "running" && greeter["signedBy"] == "acme";
    device.until("it to run", is_signed).await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 200);

    let granted = fs::read_to_string(&policy).unwrap();
    let before = device.supervisor.json("/v3/plugins").await["plugins"][0]["digest"].clone();
    install(&second);
    device
        .until("the next version to run", |greeter| {
            is_signed(greeter) && greeter["digest"] != before
        })
        .await;
    assert_eq!(fs::read_to_string(&policy).unwrap(), granted);
}

/// `supervisor plugins install FILE --key KEY`
#[tokio::test]
async fn an_owner_installs_a_plugin_and_its_next_version_with_one_command() {
    let device = Device::start().await;
    let maker = KeyPair::generate_unencrypted_keypair().unwrap();
    let path = |below: &str| device.path(below).display().to_string();
    fs::write(path("acme.key.pub"), maker.pk.to_box().unwrap().to_string()).unwrap();
    let (shipped, key, policy) = (
        path("shipped.wasm"),
        path("acme.key.pub"),
        path("policy.toml"),
    );
    let folder = path("plugins");
    let install = || {
        device.supervisor.subcommand(&[
            "plugins",
            "install",
            &shipped,
            "--key",
            &key,
            "--policy",
            &policy,
            "--plugin-dir",
            &folder,
            "--wait",
            "240",
        ])
    };
    let first = fs::read(guest("greeter")).unwrap();
    // A custom section of one byte turns the same plugin into other bytes.
    let second = [&first[..], &[0, 2, 1, b'x']].concat();
    let ship = |content: &[u8]| {
        let signature = minisign::sign(None, &maker.sk, content, None, None).unwrap();
        device.put("shipped.wasm", content);
        device.put("shipped.wasm.minisig", signature.to_string());
    };

    // A file that the key did not sign changes nothing.
    device.put("shipped.wasm", &first);
    let refused = install();
    assert!(!refused.status.success(), "{refused:?}");
    assert!(
        refused.stderr.contains("it has no signature"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&policy).unwrap(), "");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);

    ship(&first);
    let installed = install();
    assert!(installed.status.success(), "{installed:?}");
    for expected in [
        "[plugins.greeter]",
        "\ninstalled greeter ",
        "greeter.wasm`\n",
        "\ngreeter 0.1.0 runs\n",
    ] {
        assert!(installed.stdout.contains(expected), "{installed:?}");
    }
    let is_signed =
        |greeter: &Value| greeter["state"] == "running" && greeter["signedBy"] == "acme";
    device.until("it to run", is_signed).await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 200);
    let granted = fs::read_to_string(&policy).unwrap();
    let before = device.supervisor.json("/v3/plugins").await["plugins"][0]["digest"].clone();

    ship(&second);
    let installed = install();
    assert!(installed.status.success(), "{installed:?}");
    for expected in [
        "nothing was added: ",
        "\nreplaced greeter ",
        "\ngreeter 0.1.0 runs\n",
    ] {
        assert!(installed.stdout.contains(expected), "{installed:?}");
    }
    device
        .until("the next version to run", |greeter| {
            is_signed(greeter) && greeter["digest"] != before
        })
        .await;
    assert_eq!(fs::read_to_string(&policy).unwrap(), granted);
}

#[tokio::test]
async fn an_owner_puts_the_version_before_back() {
    let device = Device::start().await;
    let first = fs::read(guest("greeter")).unwrap();
    // A custom section of one byte turns the same plugin into other bytes.
    let second = [&first[..], &[0, 2, 1, b'x']].concat();
    let [one, two] = [&first, &second].map(|content| {
        let file = device.path("greeter.wasm");
        fs::write(&file, content).unwrap();
        device.trust(&file)
    });
    let digest = |lines: &str| {
        let (_, rest) = lines.split_once("sha256 = [\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let (digest_of_one, digest_of_two) = (digest(&one), digest(&two));
    let both = format!("\"{digest_of_one}\", \"{digest_of_two}\"");
    device.put(
        "policy.toml",
        one.replace(&format!("\"{digest_of_one}\""), &both),
    );
    let runs = |digest: &str| {
        let digest = digest.to_owned();
        move |greeter: &Value| greeter["state"] == "running" && greeter["digest"] == digest
    };
    for (content, digest) in [(&first, &digest_of_one), (&second, &digest_of_two)] {
        device.put("plugins/greeter.wasm", content);
        device.until("it to run", runs(digest)).await;
        let index = device
            .supervisor
            .state_dir()
            .join("plugin-versions/index.json");
        until("it to be kept", || async {
            let kept = fs::read_to_string(&index).unwrap_or_default();
            let is_latest = kept.contains(&format!("\"latest\":\"{digest}\""));
            if is_latest { Ok(()) } else { Err(kept) }
        })
        .await;
    }
    let policy = device.path("policy.toml").display().to_string();
    let words = [
        "plugins", "rollback", "greeter", "--policy", &policy, "--wait", "240",
    ];
    let done = device.supervisor.subcommand(&words);
    assert!(done.status.success(), "{done:?}");
    for expected in [
        "restored greeter 0.1.0 in place of 0.1.0: `",
        "\ngreeter 0.1.0 runs\n",
    ] {
        assert!(done.stdout.contains(expected), "{done:?}");
    }
    device
        .until("the first to run again", runs(&digest_of_one))
        .await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 200);
    let none = ["plugins", "rollback", "nobody", "--policy", &policy];
    let refused = device.supervisor.subcommand(&none);
    assert!(!refused.status.success());
    for expected in ["the device has no plugin `nobody`; it has ", "`greeter`"] {
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
    // Another state folder than the supervisor's.
    let empty = tempfile::tempdir().unwrap();
    let elsewhere = tests::subcommand(&words, empty.path());
    assert!(!elsewhere.status.success());
    for expected in [
        "no version of any plugin is kept in the state folder",
        "--config",
    ] {
        assert!(elsewhere.stderr.contains(expected), "{elsewhere:?}");
    }
}

#[tokio::test]
async fn files_that_another_user_owns_or_can_write_do_not_run() {
    let device = Device::start().await;
    let file = device.path("plugins/greeter.wasm");
    device.put("policy.toml", device.trust(&guest("greeter")));
    let content = fs::read(guest("greeter")).unwrap();
    device.put("plugins/greeter.wasm", &content);
    device
        .until("it to run", |greeter| greeter["state"] == "running")
        .await;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let cure = format!("`chmod go-w {}`", file.display());
    device.until_refused(&cure).await;
    assert_eq!(device.supervisor.get(GREETING).await.status, 404);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    device
        .until("it to run again", |greeter| greeter["state"] == "running")
        .await;
    // Only root can change the owner of files.
    if std::os::unix::fs::chown(device.path("plugins"), Some(65534), None).is_ok() {
        device.until_refused("belongs to the user 65534").await;
        assert!(
            device
                .supervisor
                .log()
                .contains("belongs to the user 65534"),
            "{}",
            device.supervisor.log()
        );
    }
}
