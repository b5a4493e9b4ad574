//! Who belongs to organizations, teams and fleets: the requests by which clients make somebody a member.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Signed, on_both};
use crate::scene::scene;

/// The row of a user, by the name.
async fn number(by: &Signed<'_>, resource: &str, name: &str) -> Value {
    let rows = by
        .rows(&format!(
            "/v7/{resource}?$select=id&$filter=name eq '{name}'"
        ))
        .await;
    rows[0]["id"].clone()
}

#[tokio::test]
async fn a_member_is_named_by_the_username() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let (ann, bob) = (names.by(&cloud, "ann"), names.by(&cloud, "bob"));
        let (_, whoami) = bob.get("/user/v1/whoami").await;
        let username = whoami["username"].as_str().expect("a name");
        let fleet: i64 = names.filled("<pump>").parse().expect("a number");
        let organization: i64 = names.filled("<acme>").parse().expect("a number");
        let team = json!({ "name": "night shift", "belongs_to__organization": organization });
        let team = ann.create("team", team).await;
        let operator = number(&ann, "application_membership_role", "operator").await;
        for (path, link, of, role) in [
            (
                "/v7/user_application_membership",
                "is_member_of__application",
                fleet,
                Some(&operator),
            ),
            (
                "/v6/user_application_membership",
                "is_member_of__application",
                fleet,
                Some(&operator),
            ),
            (
                "/v7/organization_membership",
                "is_member_of__organization",
                organization,
                None,
            ),
            (
                "/v6/organization_membership",
                "is_member_of__organization",
                organization,
                None,
            ),
            ("/v7/team_membership", "is_member_of__team", team, None),
        ] {
            let mut body = json!({ "username": username.to_uppercase() });
            body[link] = json!(of);
            if let Some(role) = role {
                body["application_membership_role"] = role.clone();
            }
            let (status, made) = ann.send(Method::POST, path, body.clone()).await;
            assert_eq!(status, StatusCode::CREATED, "{path}: {made}");
            assert_eq!(made["user"]["__id"], whoami["id"], "{path}: {made}");
            let (status, again) = ann.send(Method::POST, path, body.clone()).await;
            assert_eq!(status, StatusCode::CONFLICT, "{path}: {again}");
            body["username"] = json!("nobody-of-this-name");
            let (status, why) = ann.send(Method::POST, path, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {why}");
            assert!(why.to_string().contains("no user of this name"), "{why}");
            let row = format!("{path}({})", made["id"]);
            let (status, why) = ann.answer(ann.ask(Method::DELETE, &row)).await;
            assert_eq!(status, StatusCode::OK, "{path}: {why}");
        }
        // What is not a membership takes no name for a number.
        let other = json!({ "username": username, "name": "x", "description": "y" });
        let (status, _) = ann.send(Method::POST, "/v7/team", other).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    })
    .await;
}

#[tokio::test]
async fn a_team_is_looked_for_among_those_of_its_organization() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let organization: i64 = names.filled("<acme>").parse().expect("a number");
        let team = json!({ "name": "night shift", "belongs_to__organization": organization });
        let team = ann.create("team", team).await;
        // What a client asks before it renames one.
        let path = format!(
            "/v7/team({team})?$select=id&$expand=belongs_to__organization($select=id;\
             $expand=owns__team($top=1;$select=name;$filter=name%20eq%20%27night%20shift%27))"
        );
        let rows = ann.rows(&path).await;
        let found = &rows[0]["belongs_to__organization"][0]["owns__team"];
        assert_eq!(*found, json!([{ "name": "night shift" }]));
    })
    .await;
}
