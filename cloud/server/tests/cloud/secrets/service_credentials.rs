//! Keys that systemd gives the service as a credential (`LoadCredentialEncrypted=`).

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use data::testing::on_fresh;

use super::at_rest::{Keys, PROGRAM};
use crate::harness::Cloud;

const FILE: &str = "FLEET_CLOUD_SECRETS_KEY_FILE";
const FOLDER: &str = "CREDENTIALS_DIRECTORY";

/// Creates a file with one key and this mode. An ACL lets the service read it, and the ACL's mask takes the place of
/// the group's rights in the mode.
fn key(folder: &Path, mode: u32) -> PathBuf {
    let path = folder.join("keys");
    let _ = std::fs::remove_file(&path);
    std::fs::write(&path, Keys::line("2026-11")).expect("a file");
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(&path, mode).expect("its mode");
    path
}

fn run(arguments: &[&str], database: &str, file: &Path, credentials: Option<&Path>) -> Output {
    // A start that is not refused would run forever.
    let mut command = Command::new("timeout");
    command.args(["60", PROGRAM]).args(arguments);
    command.args(["--database", database]).env(FILE, file);
    if let Some(folder) = credentials {
        command.env(FOLDER, folder);
    }
    command.output().expect("the program")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cloud_reads_keys_from_the_credentials_of_its_service() {
    on_fresh(async |database| {
        // The secrets created at its first start are not encrypted.
        Cloud::start(&database).await.end().await;
        let folder = tempfile::tempdir().expect("a folder");
        let elsewhere = tempfile::tempdir().expect("a folder");
        for (mode, credentials) in [
            (0o444, Some(folder.path())),
            (0o460, Some(folder.path())),
            (0o440, Some(elsewhere.path())),
            (0o440, None),
        ] {
            let file = key(folder.path(), mode);
            let serve = ["serve", "--listen", "127.0.0.1:0"];
            let refused = run(&serve, &database, &file, credentials);
            let stderr = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(1), "{mode:o}: {stderr}");
            let why = "others than its owner may read or change the file";
            assert!(stderr.contains(why), "{mode:o}: {stderr}");
        }

        let file = key(folder.path(), 0o440);
        let environment = [
            (FILE, file.to_str().expect("text")),
            (FOLDER, folder.path().to_str().expect("text")),
        ];
        let cloud = Cloud::start_in(&database, "", &environment).await;
        let log = cloud.log();
        let warning = "2 secrets in the database are not encrypted yet";
        assert!(log.contains(warning), "{log}");
        let rotate = ["rotate-secrets"];
        let rotated = run(&rotate, &database, &file, Some(folder.path()));
        let stdout = String::from_utf8_lossy(&rotated.stdout);
        assert!(rotated.status.success(), "{rotated:?}");
        assert!(
            stdout.contains("The key 2026-11 encrypts 2 values"),
            "{stdout}"
        );
        cloud.sign_in().await;
        cloud.end().await;

        let cloud = Cloud::start_in(&database, "", &environment).await;
        assert!(!cloud.log().contains("not encrypted"), "{}", cloud.log());
        cloud.sign_in().await;
        cloud.end().await;
    })
    .await;
}
