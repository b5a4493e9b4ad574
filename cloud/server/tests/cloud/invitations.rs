//! Invites are accepted by their token, by the owner of the address (docs/spec/cloud.md#model-invites).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{on_both, read};
use crate::scene::scene;

#[tokio::test]
async fn an_invited_person_accepts_once_and_only_under_the_address() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let (ann, bob) = (names.by(&cloud, "ann"), names.by(&cloud, "bob"));
        let fill = |body: Value| -> Value {
            serde_json::from_str(&names.filled(&body.to_string())).expect("JSON")
        };
        for (place, resource, link, to, answer, reached) in [
            (
                "user",
                "invitee__is_invited_to__application",
                "is_invited_to__application",
                "<pump>",
                "application",
                "/v7/application(<pump>)?$select=app_name",
            ),
            (
                "org",
                "invitee__is_invited_to__organization",
                "is_invited_to__organization",
                "<acme>",
                "organization",
                "/v7/organization(<acme>)?$select=name",
            ),
        ] {
            let reached = names.filled(reached);
            assert_eq!(bob.rows(&reached).await.len(), 0);
            let mut body = json!({ "invitee": "Bob@other.example", "message": "join us" });
            body[link] = json!(to);
            let path = format!("/v7/{resource}");
            let (status, invite) = ann.send(Method::POST, &path, fill(body)).await;
            assert_eq!(status, StatusCode::CREATED, "{invite}");
            let token = invite["invitation_token"].as_str().expect("a token");
            let at = format!("/{place}/v1/invitation/{token}");
            // The token is only for one address, and a signed-in person.
            let (status, why) = ann.send(Method::POST, &at, json!({})).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{why}");
            let nobody = cloud.ask(Method::POST, &at).send().await;
            let (status, _) = read(nobody.expect("an answer")).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            let (status, response) = bob.send(Method::POST, &at, json!({})).await;
            assert_eq!(status, StatusCode::OK, "{response}");
            assert_eq!(response[answer], invite[link]["__id"], "{response}");
            assert_eq!(bob.rows(&reached).await.len(), 1);
            let (status, _) = bob.send(Method::POST, &at, json!({})).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "it was accepted");
            assert_eq!(ann.rows(&path).await.len(), 0);
        }
    })
    .await;
}

#[tokio::test]
async fn an_invite_that_was_revoked_or_is_over_makes_nobody_a_member() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let (ann, bob) = (names.by(&cloud, "ann"), names.by(&cloud, "bob"));
        let acme: i64 = names.filled("<acme>").parse().expect("a number");
        let body = json!({ "invitee": "bob@other.example", "is_invited_to__organization": acme });
        let path = "/v7/organization_invite";
        let (_, revoked) = ann.send(Method::POST, path, body.clone()).await;
        let at = format!("{path}({})", revoked["id"]);
        let (status, _) = ann.answer(ann.ask(Method::DELETE, &at)).await;
        assert_eq!(status, StatusCode::OK);
        let (_, over) = ann.send(Method::POST, path, body).await;
        let database = data::Database::open(&cloud.database, &data::Options::default())
            .await
            .expect("the database");
        let expire =
            data::testing::sql("UPDATE organization_invite SET expiry_date = ?").with(1_i64);
        assert_eq!(database.execute(&expire).await.expect("a change"), 1);
        database.close().await;
        for invite in [revoked, over] {
            let token = invite["invitation_token"].as_str().expect("a token");
            let at = format!("/user/v1/invitation/{token}");
            let (status, why) = bob.send(Method::POST, &at, json!({})).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{why}");
        }
        assert_eq!(
            bob.rows(&format!("/v7/organization({acme})")).await.len(),
            0
        );
    })
    .await;
}
