//! Membership of organizations, teams and fleets: the requests by which clients add members.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, on_both};
use crate::scene::scene;

/// Returns the row of a user, by name.
async fn number(by: &ApiCaller<'_>, resource: &str, name: &str) -> Value {
    let rows = by
        .rows(&format!(
            "/v7/{resource}?$select=id&$filter=name eq '{name}'"
        ))
        .await;
    rows[0]["id"].clone()
}

/// Invites somebody to a fleet, and lets them accept.
async fn shared(by: &ApiCaller<'_>, with: &ApiCaller<'_>, address: &str, fleet: i64) {
    let invite = json!({ "invitee": address, "is_invited_to__application": fleet });
    let (status, invite) = by
        .send(Method::POST, "/v7/application_invite", invite)
        .await;
    assert_eq!(status, StatusCode::CREATED, "{invite}");
    let token = invite["invitation_token"].as_str().expect("a token");
    let at = format!("/user/v1/invitation/{token}");
    assert_eq!(
        with.send(Method::POST, &at, json!({})).await.0,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_member_is_named_by_the_username_who_accepted_an_invite() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let (ann, bob) = (names.by(&cloud, "ann"), names.by(&cloud, "bob"));
        let (_, whoami) = bob.get("/user/v1/whoami").await;
        let username = whoami["username"].as_str().expect("a name");
        let fleet: i64 = names.filled("<pump>").parse().expect("a number");
        let known: i64 = names.filled("<valve>").parse().expect("a number");
        let organization: i64 = names.filled("<acme>").parse().expect("a number");
        let team = json!({ "name": "night shift", "belongs_to__organization": organization });
        let team = ann.create("team", team).await;
        let operator = number(&ann, "application_membership_role", "operator").await;
        let paths = [
            (
                "/v7/user_application_membership",
                "is_member_of__application",
                fleet,
            ),
            (
                "/v6/user_application_membership",
                "is_member_of__application",
                fleet,
            ),
            ("/v7/team_membership", "is_member_of__team", team),
        ];
        let of_organization = ["/v7/organization_membership", "/v6/organization_membership"];
        // Nobody is added without consent, by name or number, nor does an answer reveal who exists.
        for (path, link, of) in paths {
            for (field, value) in [
                ("username", json!(username)),
                ("user", whoami["id"].clone()),
                ("username", json!("nobody-of-this-name")),
                ("user", json!(99_999)),
            ] {
                let (status, why) = ann
                    .send(Method::POST, path, json!({ field: value, link: of }))
                    .await;
                assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {why}");
            }
        }
        assert_eq!(
            ann.rows("/v7/user?$filter=username eq 'bob'").await,
            Vec::<Value>::new()
        );
        shared(&ann, &bob, "bob@other.example", known).await;
        for (path, link, of) in paths {
            let mut body = json!({ "username": username.to_uppercase(), link: of });
            if link == "is_member_of__application" {
                body["application_membership_role"] = operator.clone();
            }
            let (status, made) = ann.send(Method::POST, path, body.clone()).await;
            assert_eq!(status, StatusCode::CREATED, "{path}: {made}");
            assert_eq!(made["user"]["__id"], whoami["id"], "{path}: {made}");
            let (status, again) = ann.send(Method::POST, path, body.clone()).await;
            assert_eq!(status, StatusCode::CONFLICT, "{path}: {again}");
            body["username"] = json!("nobody-of-this-name");
            let (status, why) = ann.send(Method::POST, path, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {why}");
            assert!(why.to_string().contains("invite them"), "{why}");
            let row = format!("{path}({})", made["id"]);
            let (status, why) = ann.answer(ann.ask(Method::DELETE, &row)).await;
            assert_eq!(status, StatusCode::OK, "{path}: {why}");
        }
        // Only an invite leads into an organization.
        for path in of_organization {
            let body = json!({ "username": username, "is_member_of__organization": organization });
            let (status, _) = ann.send(Method::POST, path, body).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
        }
        let put = format!(
            "/v7/organization_membership(user={},is_member_of__organization={organization})",
            whoami["id"]
        );
        let (status, _) = ann.send(Method::PUT, &put, json!({ "id": 1 })).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let address = format!("/v7/user({})?$select=username,email", whoami["id"]);
        assert_eq!(
            ann.rows(&address).await,
            [json!({ "username": "bob", "email": null })]
        );
        // Outside of memberships, a name is not accepted in place of a number.
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
        // The request of a client before it renames a team.
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
