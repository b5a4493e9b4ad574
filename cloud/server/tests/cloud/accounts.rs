//! Signing in, keys, and what a credential represents (docs/spec/cloud.md#credentials).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Cloud, EMAIL, PASSWORD, on_both, read};

async fn login(cloud: &Cloud, body: Value) -> StatusCode {
    let request = cloud.ask(Method::POST, "/login_").json(&body);
    request.send().await.expect("an answer").status()
}

#[tokio::test]
async fn a_name_or_an_address_and_the_password_give_a_token() {
    on_both(async |cloud| {
        for username in [EMAIL, "ANN@acme.EXAMPLE", "admin", "Admin"] {
            let given = json!({ "username": username, "password": PASSWORD });
            assert_eq!(login(&cloud, given).await, StatusCode::OK, "{username}");
        }
        for (given, status) in [
            (json!({ "username": EMAIL, "password": "wrong" }), 401),
            (json!({ "username": "nobody", "password": PASSWORD }), 401),
            (json!({ "username": "", "password": "" }), 401),
            (json!({ "username": EMAIL }), 400),
            (json!({ "username": 1, "password": true }), 400),
            (json!([]), 400),
        ] {
            assert_eq!(
                login(&cloud, given.clone()).await.as_u16(),
                status,
                "{given}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn guessing_is_refused_after_some_tries_with_the_time_to_wait() {
    on_both(async |cloud| {
        let given = json!({ "username": "guessed", "password": "wrong" });
        for _ in 0..10 {
            assert_eq!(login(&cloud, given.clone()).await, StatusCode::UNAUTHORIZED);
        }
        let request = cloud.ask(Method::POST, "/login_").json(&given);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        let wait = answer.headers()["retry-after"]
            .to_str()
            .expect("text")
            .to_owned();
        assert!(wait.parse::<u32>().expect("seconds") > 0);
        assert_eq!(read(answer).await.1, json!("Too Many Requests"));
        // Others are not affected.
        let other = json!({ "username": EMAIL, "password": PASSWORD });
        assert_eq!(login(&cloud, other).await, StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn old_clients_put_the_token_into_the_body() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let make = async |token: &str, name: &str| {
            let body = json!({ "_token": token, "name": name, "handle": name });
            let request = cloud.ask(Method::POST, "/v7/organization").json(&body);
            read(request.send().await.expect("an answer")).await
        };
        let (status, made) = make(&ann.token, "pumps").await;
        assert_eq!(
            (status, &made["handle"]),
            (StatusCode::CREATED, &json!("pumps"))
        );
        let (status, _) = make("nobody", "valves").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        // The header takes precedence.
        let body = json!({ "_token": "nobody", "name": "taps", "handle": "taps" });
        let (status, _) = ann.send(Method::POST, "/v7/organization", body).await;
        assert_eq!(status, StatusCode::CREATED);
    })
    .await;
}

#[tokio::test]
async fn a_credential_tells_what_it_stands_for_and_a_bad_one_is_refused() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let (status, who) = ann.get("/actor/v1/whoami").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(who["actorType"], json!("user"));
        assert_eq!(who["email"], json!(EMAIL));
        let (_, user) = ann.get("/user/v1/whoami").await;
        assert_eq!(
            user,
            json!({ "id": who["actorTypeId"], "username": "admin", "email": EMAIL })
        );
        for token in ["nothing", "a.b.c", &format!("{}x", ann.token)] {
            for path in [
                "/actor/v1/whoami",
                "/user/v1/whoami",
                "/v7/application",
                "/v7/device_type",
            ] {
                let (status, body) = cloud.by(token.to_owned()).get(path).await;
                assert_eq!(
                    (status, body),
                    (StatusCode::UNAUTHORIZED, Value::Null),
                    "{token} {path}"
                );
            }
        }
        let (status, _) = read(
            cloud
                .ask(Method::GET, "/actor/v1/whoami")
                .send()
                .await
                .expect("it"),
        )
        .await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "without any");
    })
    .await;
}

#[tokio::test]
async fn keys_are_made_shown_once_and_end_with_their_row() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let named = json!({ "name": "ci", "description": "builds" });
        let (status, key) = ann.send(Method::POST, "/api-key/user/full", named).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        let key = key.as_str().expect("a key").to_owned();
        let by_key = cloud.by(key.clone());
        assert_eq!(
            by_key.rows("/v7/application?$select=id").await,
            [json!({ "id": fleet })]
        );
        let in_query = cloud.ask(
            Method::GET,
            &format!("/v7/application?$select=id&apikey={key}"),
        );
        let (_, rows) = read(in_query.send().await.expect("an answer")).await;
        assert_eq!(rows, json!({ "d": [{ "id": fleet }] }));
        let keys = ann.rows("/v7/api_key?$filter=name eq 'ci'").await;
        assert_eq!(keys.len(), 1);
        assert!(!keys[0].to_string().contains(&key), "{}", keys[0]);

        // A key cannot create keys of users; a name is required; so is a valid session.
        let named = json!({ "name": "more" });
        let (status, _) = by_key.send(Method::POST, "/api-key/user/full", named).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let (status, _) = ann
            .send(Method::POST, "/api-key/user/full", json!({}))
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST);

        let path = format!("/api-key/application/{fleet}/provisioning");
        let (status, provisioning) = ann.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{provisioning}");
        let provisioning = cloud.by(provisioning.as_str().expect("a key").to_owned());
        let (_, who) = provisioning.get("/actor/v1/whoami").await;
        assert_eq!(who["slug"], json!("admin/pump"));
        for id in ["99999", "x"] {
            let path = format!("/api-key/application/{id}/provisioning");
            let (status, _) = ann.send(Method::POST, &path, json!({})).await;
            assert!(status.is_client_error(), "{id}: {status}");
        }

        let id = keys[0]["id"].as_i64().expect("an id");
        let (status, _) = ann
            .answer(ann.ask(Method::DELETE, &format!("/v7/api_key({id})")))
            .await;
        assert_eq!(status, StatusCode::OK);
        let (status, _) = by_key.get("/v7/application").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "at once");
    })
    .await;
}

#[tokio::test]
async fn an_administrator_makes_users_who_see_what_is_theirs() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let register = |who: Option<&str>, body: Value| {
            let request = cloud.ask(Method::POST, "/user/register").json(&body);
            let request = match who {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            async move { read(request.send().await.expect("an answer")).await }
        };
        let new = json!({ "username": "Bob B", "email": "Bob@acme.example", "password": "battery horse" });
        let (status, _) = register(None, new.clone()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "registration is closed");
        let (status, bob) = register(Some(&ann.token), new.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{bob}");
        assert_eq!(bob["username"], json!("bob_b"));
        assert_eq!(bob["email"], json!("bob@acme.example"));
        let (status, body) = register(Some(&ann.token), new).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(body.as_str().expect("text").contains("unique"), "{body}");
        for (field, value) in [("password", "short"), ("email", "nobody"), ("username", "root")] {
            let mut new = json!({ "username": "carl", "email": "c@acme.example", "password": "battery horse" });
            new[field] = json!(value);
            let (status, body) = register(Some(&ann.token), new).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{field}: {body}");
        }
        let given = json!({ "username": "Bob B", "password": "battery horse" });
        let answer = cloud.ask(Method::POST, "/login_").json(&given).send().await.expect("it");
        assert_eq!(answer.status(), StatusCode::OK);
        let bob = cloud.by(answer.text().await.expect("a token"));
        assert_eq!(bob.rows("/v7/application").await, Vec::<Value>::new());
        assert_eq!(bob.rows("/v7/organization?$select=handle").await, [json!({ "handle": "bob_b" })]);

        let carl = json!({
            "username": "carl", "email": "c@acme.example", "password": "battery horse", "organization": 1,
        });
        let (status, _) = register(Some(&bob.token), carl.clone()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "bob is no administrator of the cloud");
        let (status, _) = register(Some(&ann.token), carl).await;
        assert_eq!(status, StatusCode::CREATED);
        let given = json!({ "username": "carl", "password": "battery horse" });
        let answer = cloud.ask(Method::POST, "/login_").json(&given).send().await.expect("it");
        let carl = cloud.by(answer.text().await.expect("a token"));
        assert_eq!(carl.rows("/v7/application?$select=id").await, [json!({ "id": fleet })]);
        // A member is not an administrator.
        let (status, _) = register(Some(&carl.token), json!({})).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn a_new_password_ends_the_sessions_before_it() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let path = "/user/v1/change-password";
        let wrong = json!({ "currentPassword": "wrong", "newPassword": "another horse" });
        assert_eq!(
            ann.send(Method::POST, path, wrong).await.0,
            StatusCode::UNAUTHORIZED
        );
        let short = json!({ "currentPassword": PASSWORD, "newPassword": "short" });
        assert_eq!(
            ann.send(Method::POST, path, short).await.0,
            StatusCode::BAD_REQUEST
        );
        let right = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
        let (status, token) = ann.send(Method::POST, path, right).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(ann.get("/user/v1/whoami").await.0, StatusCode::UNAUTHORIZED);
        let token = token.as_str().expect("a token").to_owned();
        assert_eq!(
            cloud.by(token).get("/user/v1/whoami").await.0,
            StatusCode::OK
        );
        let old = json!({ "username": EMAIL, "password": PASSWORD });
        assert_eq!(login(&cloud, old).await, StatusCode::UNAUTHORIZED);
        let new = json!({ "username": EMAIL, "password": "another horse" });
        assert_eq!(login(&cloud, new).await, StatusCode::OK);
    })
    .await;
}

/// A password may have 1,000 characters, whatever their number of bytes.
#[tokio::test]
async fn the_longest_password_signs_in() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let longest = "é8".repeat(500);
        let change = json!({ "currentPassword": PASSWORD, "newPassword": longest });
        let (status, _) = ann
            .send(Method::POST, "/user/v1/change-password", change)
            .await;
        assert_eq!(status, StatusCode::OK);
        let new = json!({ "username": EMAIL, "password": longest });
        assert_eq!(login(&cloud, new).await, StatusCode::OK);
        let longer = json!({ "username": EMAIL, "password": format!("{longest}8") });
        assert_eq!(login(&cloud, longer).await, StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn where_everybody_may_register_nobody_does_so_without_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("open.sqlite").display());
    let configuration = "registration = 'open'\n[limits]\nfailed_logins = 2\n";
    let cloud = Cloud::start_with(&database, configuration).await;
    let register = async |name: &str| {
        let body = json!({ "username": name, "email": format!("{name}@example.com"), "password": "battery horse" });
        let request = cloud.ask(Method::POST, "/user/register").json(&body);
        request.send().await.expect("an answer")
    };
    for name in ["eve", "mallory"] {
        assert_eq!(register(name).await.status(), StatusCode::CREATED);
    }
    let refused = register("trent").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait = refused.headers()["retry-after"].to_str().expect("text");
    assert!(wait.parse::<u32>().expect("seconds") > 0);
}

#[tokio::test]
async fn users_delete_themselves_by_their_number_once_nothing_is_left_without_them() {
    on_both(async |cloud| {
        let names = crate::scene::scene(&cloud).await;
        let bob = names.by(&cloud, "bob");
        let id = bob.get("/user/v1/whoami").await.1["id"].clone();
        let delete = async |path: &str| bob.answer(bob.ask(Method::DELETE, path)).await;
        let by_name = delete("/v7/user(username='bob')").await;
        assert_eq!(by_name.0, StatusCode::BAD_REQUEST, "{}", by_name.1);
        let filtered = delete(&format!("/v7/user?$filter=id%20eq%20{id}")).await;
        assert_eq!(filtered.0, StatusCode::BAD_REQUEST, "{}", filtered.1);
        let itself = format!("/v7/user({id})");
        let (status, why) = delete(&itself).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let left = "the organization `bob` would be left without an administrator";
        assert!(why.to_string().contains(left), "{why}");
        let key = json!({ "name": "ci" });
        let (_, key) = bob.send(Method::POST, "/api-key/user/full", key).await;
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        let (status, _) = key.answer(key.ask(Method::DELETE, &itself)).await;
        assert_eq!(
            status,
            StatusCode::UNAUTHORIZED,
            "a key is nobody who just signed in"
        );
        assert_eq!(
            delete("/v7/organization(handle='bob')").await.0,
            StatusCode::OK
        );
        assert_eq!(delete(&itself).await.0, StatusCode::OK);
        assert_eq!(bob.get("/user/v1/whoami").await.0, StatusCode::UNAUTHORIZED);
    })
    .await;
}
