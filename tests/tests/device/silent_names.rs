//! A device whose name server never answers.
//!
//! The device has only as many threads for blocking work as images are pulled at a time, so if each name were looked up
//! on one of them, none would be left for anything else.
//!
//! The name server is a socket of the test's, and the device has its own resolv.conf, in a mount namespace. That needs
//! root; without it these tests do nothing.

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tests::{DEADLINE, Supervisor, distribution, target, until};

/// An address of the loopback network that no other test uses.
const NAME_SERVER: &str = "127.53.6.6";

/// Far longer than the requests take, and less than the C library waits for one name server.
const SOON: Duration = Duration::from_secs(8);

/// How often each request is sent while names are looked up.
const ROUNDS: usize = 6;

/// The number of images that are pulled at the same time, and of threads for blocking work
/// (`SUPERVISOR_TEST_BLOCKING_THREADS`, which only the layout for tests reads).
const PULLS: usize = 4;

struct SilentNames {
    /// Receives questions and never answers.
    server: UdpSocket,
    _folder: tempfile::TempDir,
    /// Runs the supervisor with this server as the only one.
    program: PathBuf,
}

impl SilentNames {
    fn make() -> Option<SilentNames> {
        let server = match UdpSocket::bind((NAME_SERVER, 53)) {
            Ok(server) => server,
            Err(error) => {
                println!("SKIPPED: no name server of the test's own ({error})");
                return None;
            }
        };
        server.set_read_timeout(Some(DEADLINE)).unwrap();
        let unshare = Command::new("unshare").args(["--mount", "true"]).status();
        if !unshare.is_ok_and(|status| status.success()) {
            println!("SKIPPED: no mount namespace (unshare --mount)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let resolv_conf = folder.path().join("resolv.conf");
        // Two tries of 5 s each, which is the default.
        fs::write(&resolv_conf, format!("nameserver {NAME_SERVER}\n")).unwrap();
        let program = folder.path().join("supervisor");
        let script = format!(
            "#!/bin/sh\nexec unshare --mount sh -ec '\n\
             mount --bind \"{}\" /etc/resolv.conf\n\
             exec \"{}\" \"$@\"' supervisor \"$@\"\n",
            resolv_conf.display(),
            distribution().join("bin/supervisor").display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Some(SilentNames {
            server,
            _folder: folder,
            program,
        })
    }

    /// Waits until this many names were requested. No request is answered, so all of them are requested at the same
    /// time.
    fn until_requested(&self, count: usize) {
        let mut names = BTreeSet::new();
        while names.len() < count {
            let mut question = [0; 512];
            let length = self.server.recv(&mut question).expect("a question");
            names.insert(name_of(&question[..length]));
        }
    }
}

/// Returns the first label of the name in a question: it follows the header of 12 bytes and its own length.
fn name_of(question: &[u8]) -> String {
    let length = usize::from(question[12]);
    String::from_utf8(question[13..13 + length].to_vec()).unwrap()
}

fn image(number: u8) -> Value {
    json!({
        "serviceName": format!("pump-{number}"),
        "imageId": number,
        "image": format!("registry-{number}.silent.example/shop/pump:1"),
        "environment": {},
        "labels": {},
        "running": true,
    })
}

#[tokio::test]
async fn a_silent_name_server_holds_up_nothing_else() {
    let Some(names) = SilentNames::make() else {
        return;
    };
    let device = Supervisor::on_wasm()
        .program(&names.program)
        .environment("SUPERVISOR_TEST_BLOCKING_THREADS", PULLS.to_string())
        .start()
        .await;
    // Until the plugins are loaded.
    until("the plugins", || async {
        let answer = device.get("/v1/device/host-config").await;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    let images: Vec<Value> = (1..=12).map(image).collect();
    device.set_target(&target(7, &images)).await;
    names.until_requested(PULLS);
    for round in 0..ROUNDS {
        // A plugin with `files`, and endpoints that read files and the store itself.
        for path in ["/v1/device/host-config", "/metrics", "/v3/locks"] {
            let answer = tokio::time::timeout(SOON, device.get(path)).await;
            let answer = answer.unwrap_or_else(|_| panic!("round {round}: {path} waits"));
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        // The next questions find the device as busy as it gets.
        names.until_requested(PULLS);
    }
}
