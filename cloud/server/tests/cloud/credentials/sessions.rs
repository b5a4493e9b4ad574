//! Sessions can be listed and ended, and all of them expire.

use std::time::Instant;

use data::testing::sql;
use reqwest::header::COOKIE;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{claims, execute, saying};
use crate::dashboard::session::{cookie, page};
use crate::harness::{ApiCaller, Cloud, EMAIL, PASSWORD, PATIENCE, on_both};

const WHOAMI: &str = "/user/v1/whoami";

async fn is_good(who: &ApiCaller<'_>) -> bool {
    who.get(WHOAMI).await.0 == StatusCode::OK
}

#[tokio::test]
async fn signing_out_ends_the_session_for_every_copy_of_its_token() {
    on_both(async |cloud| {
        let (ann, other) = (cloud.sign_in().await, cloud.sign_in().await);
        let refreshed = ann
            .send(Method::POST, "/user/v1/refresh-token", json!({}))
            .await;
        let refreshed = refreshed.1.as_str().expect("a token").to_owned();
        let copies = [cloud.by(ann.token.clone()), cloud.by(refreshed)];
        for copy in &copies {
            assert!(is_good(copy).await);
        }
        let (status, _) = ann.answer(ann.ask(Method::POST, "/user/v1/sign-out")).await;
        assert_eq!(status, StatusCode::OK);
        for copy in &copies {
            assert!(!is_good(copy).await);
        }
        let again = ann.ask(Method::POST, "/user/v1/refresh-token");
        assert_eq!(ann.answer(again).await.0, StatusCode::UNAUTHORIZED);
        assert!(is_good(&other).await, "another session goes on");

        let cookie = cookie(&cloud).await;
        let copied = cookie.clone();
        let out = cloud
            .ask(Method::POST, "/dashboard/sign-out")
            .header("sec-fetch-site", "same-origin")
            .header(COOKIE, &cookie);
        out.send().await.expect("an answer");
        let (_, shown) = page(&cloud, &copied, "/dashboard/account").await;
        assert!(!shown.contains("Signed in as"), "{shown}");
    })
    .await;
}

#[tokio::test]
async fn sessions_are_listed_and_ended_one_by_one() {
    on_both(async |cloud| {
        let names = crate::scene::scene(&cloud).await;
        let bob = names.by(&cloud, "bob");
        let stolen = cloud.sign_in_from([127, 0, 0, 7], EMAIL, PASSWORD).await;
        let stolen = cloud.by(stolen.text().await.expect("a token"));
        let ann = cloud.sign_in().await;
        let path = "/v7/user_session?$filter=address%20eq%20'127.0.0.7'";
        let found = ann.rows(path).await;
        assert_eq!(found.len(), 1, "{found:?}");
        let session = &found[0];
        for field in ["created_at", "last_used_at", "expires_at"] {
            assert!(session[field].is_string(), "{field}: {session}");
        }
        assert_eq!(session["is_of_dashboard"], json!(false));
        assert_eq!(bob.rows(path).await, Vec::<Value>::new());
        let one = format!("/v7/user_session({})", session["id"]);
        for refused in [
            bob.answer(bob.ask(Method::DELETE, &one)).await,
            ann.send(Method::PATCH, &one, json!({ "address": "::1" }))
                .await,
            ann.send(Method::POST, "/v7/user_session", json!({ "user": 1 }))
                .await,
        ] {
            assert!(refused.0 == StatusCode::UNAUTHORIZED || refused.0 == StatusCode::OK);
        }
        assert!(is_good(&stolen).await, "nobody else ends it");
        assert_eq!(ann.rows(path).await.len(), 1);
        let (status, _) = ann.answer(ann.ask(Method::DELETE, &one)).await;
        assert_eq!(status, StatusCode::OK);
        assert!(!is_good(&stolen).await);
        assert!(is_good(&ann).await);
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_in_the_end_however_often_it_is_refreshed() {
    on_both(async |cloud| {
        let database = cloud.database.clone();
        cloud.end().await;
        let cloud = Cloud::start_with(&database, "[credentials]\nsession_days = 2\n").await;
        let ann = cloud.sign_in().await;
        let (_, refreshed) = ann.get("/user/v1/refresh-token").await;
        let refreshed = refreshed.as_str().expect("a token");
        for token in [&ann.token, refreshed] {
            let claims = claims(token);
            let left = claims["exp"].as_i64().zip(claims["iat"].as_i64());
            let left = left.map(|(end, begin)| end - begin).expect("seconds");
            assert!(left <= 2 * 24 * 3600, "{claims}");
        }
        let end = sql("UPDATE user_session SET expires_at = ?").with(1_i64);
        assert!(execute(&cloud, end).await >= 1);
        assert!(!is_good(&ann).await);
        assert!(!is_good(&cloud.by(refreshed.to_owned())).await);
        // A token that a program signed without a session is not valid.
        let ann = cloud.sign_in().await;
        let without = saying(&cloud, &ann.token, |claims| {
            claims.as_object_mut().expect("claims").remove("session");
        });
        assert!(!is_good(&cloud.by(without.await)).await);
        let of_nobody = saying(&cloud, &ann.token, |claims| {
            claims["session"] = json!(99_999)
        });
        assert!(!is_good(&cloud.by(of_nobody.await)).await);
    })
    .await;
}

#[tokio::test]
async fn the_use_of_a_session_is_noted_now_and_then() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let old = sql("UPDATE user_session SET last_used_at = ?").with(1_000_000_i64);
        execute(&cloud, old).await;
        let path =
            "/v7/user_session?$filter=last_used_at%20lt%20'2000-01-01T00:00:00.000Z'&$select=id";
        let begun = Instant::now();
        while !ann.rows(path).await.is_empty() {
            assert!(begun.elapsed() < PATIENCE, "it is never noted");
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_new_password_ends_every_session_and_on_request_deletes_the_keys() {
    on_both(async |cloud| {
        let (ann, other) = (cloud.sign_in().await, cloud.sign_in().await);
        let key = json!({ "name": "ci" });
        let (_, key) = ann.send(Method::POST, "/api-key/user/full", key).await;
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        let path = "/user/v1/change-password";
        let change = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
        let (status, token) = ann.send(Method::POST, path, change).await;
        assert_eq!(status, StatusCode::OK, "{token}");
        let ann = cloud.by(token.as_str().expect("a token").to_owned());
        assert!(is_good(&ann).await && !is_good(&other).await);
        assert_eq!(ann.rows("/v7/user_session?$select=id").await.len(), 1);
        assert!(
            is_good(&key).await,
            "keys stay unless the request ends them"
        );
        let change = json!({
            "currentPassword": "another horse", "newPassword": "a third horse", "endKeys": true,
        });
        let (status, token) = ann.send(Method::POST, path, change).await;
        assert_eq!(status, StatusCode::OK, "{token}");
        assert!(!is_good(&key).await && !is_good(&ann).await);
        assert!(is_good(&cloud.by(token.as_str().expect("a token").to_owned())).await);
    })
    .await;
}

#[tokio::test]
async fn the_cookie_of_the_dashboard_is_no_token_of_the_api() {
    on_both(async |cloud| {
        let cookie = cookie(&cloud).await;
        let (_, token) = cookie.split_once('=').expect("a pair");
        assert!(!is_good(&cloud.by(token.to_owned())).await);
        let (status, shown) = page(&cloud, &cookie, "/dashboard/account").await;
        assert_eq!(status, StatusCode::OK);
        assert!(shown.contains("This session"), "{shown}");
    })
    .await;
}
