//! Results of the first start of a cloud: its files, its keys, the administrator and the password; and the cookie of
//! sessions.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use data::testing::sql;
use reqwest::header::SET_COOKIE;
use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{claims, execute};
use crate::harness::{Cloud, EMAIL, PASSWORD, on_both, plain_http};

fn fresh(folder: &tempfile::TempDir) -> String {
    format!("sqlite:{}", folder.path().join("cloud.sqlite").display())
}

fn mode(path: &std::path::Path) -> u32 {
    let about = std::fs::metadata(path).expect("a file");
    about.permissions().mode() & 0o777
}

#[tokio::test]
async fn the_files_of_the_database_are_their_owners_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = fresh(&folder);
    let path = |end: &str| folder.path().join(format!("cloud.sqlite{end}"));
    let cloud = Cloud::start(&database).await;
    cloud.sign_in().await;
    for end in ["", "-wal", "-shm"] {
        assert_eq!(mode(&path(end)), 0o600, "{end}");
    }
    // Files of an older version are changed.
    cloud.kill();
    drop(cloud);
    for end in ["", "-wal", "-shm"] {
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(path(end), open).expect("permissions");
    }
    let cloud = Cloud::start(&database).await;
    cloud.sign_in().await;
    for end in ["", "-wal", "-shm"] {
        assert_eq!(mode(&path(end)), 0o600, "{end}");
    }
}

#[tokio::test]
async fn a_command_replaces_the_signing_keys() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let token = ann.token.clone();
        let database = cloud.database.clone();
        let program = |command: &str| {
            let run = Command::new(env!("CARGO_BIN_EXE_fleet-cloud"))
                .args([command, "--database", &database])
                .output()
                .expect("the program");
            assert!(run.status.success(), "{run:?}");
            run.stdout
        };
        cloud.end().await;
        let certificate = program("registry-certificate");
        program("rotate-signing-keys");
        let cloud = Cloud::start(&database).await;
        let old = cloud.by(token).get("/user/v1/whoami").await;
        assert_eq!(old.0, StatusCode::UNAUTHORIZED);
        assert!(claims(&cloud.sign_in().await.token)["session"].is_number());
        assert_ne!(program("registry-certificate"), certificate);
    })
    .await;
}

#[test]
fn the_first_password_is_held_to_what_others_are() {
    for password in ["a", "password123", "aaaaaaaaaaaa"] {
        let folder = tempfile::tempdir().expect("a folder");
        let run = Command::new(env!("CARGO_BIN_EXE_fleet-cloud"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--database",
                &fresh(&folder),
            ])
            .args(["--admin-password", password])
            .output()
            .expect("the program");
        assert!(!run.status.success(), "{password}");
        let why = String::from_utf8_lossy(&run.stderr);
        assert!(why.contains("`--admin-password`"), "{why}");
    }
}

#[tokio::test]
async fn well_known_passwords_and_keys_of_one_letter_are_refused() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let change = json!({ "currentPassword": PASSWORD, "newPassword": "Password123" });
        let (status, why) = ann
            .send(Method::POST, "/user/v1/change-password", change)
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(why.to_string().contains("guessed first"), "{why}");
        let key = json!({ "name": "ci", "apiKey": "aaaaaaaaaaaaaaaaaaaa" });
        let (status, why) = ann.send(Method::POST, "/api-key/user/full", key).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(why.to_string().contains("different characters"), "{why}");
    })
    .await;
}

#[tokio::test]
async fn an_administrator_is_made_once_and_not_where_all_users_are_gone() {
    on_both(async |cloud| {
        let database = cloud.database.clone();
        execute(&cloud, sql("DELETE FROM organization_membership")).await;
        execute(&cloud, sql("DELETE FROM \"user\"")).await;
        cloud.end().await;
        let cloud = Cloud::start(&database).await;
        let refused = cloud.sign_in_from([127, 0, 0, 1], EMAIL, PASSWORD).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn the_cookie_is_of_this_host_alone_where_there_is_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let configuration = "public_url = 'https://cloud.example.com'\n";
    let cloud = Cloud::start_with(&fresh(&folder), configuration).await;
    let browser = plain_http()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client");
    let form: String = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("username", EMAIL), ("password", PASSWORD)])
        .finish();
    let answer = browser
        .post(format!("{}/dashboard/sign-in", cloud.url))
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .expect("an answer");
    let cookie = answer.headers()[SET_COOKIE].to_str().expect("text");
    assert!(cookie.starts_with("__Host-fleet_session="), "{cookie}");
    for attribute in ["; Path=/;", "; Secure", "; HttpOnly"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
}
