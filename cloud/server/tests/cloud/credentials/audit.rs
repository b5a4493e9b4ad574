//! The audit log: who did what to which row, from where and when.

use reqwest::header::COOKIE;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::database;
use crate::dashboard::session::{cookie, page};
use crate::fake_device::known;
use crate::harness::{ApiCaller, Cloud, EMAIL, PASSWORD, on_both};

async fn events(who: &ApiCaller<'_>, filter: &str) -> Vec<Value> {
    let filter: String = form_urlencoded::byte_serialize(filter.as_bytes()).collect();
    who.rows(&format!("/v7/audit_event?$filter={filter}&$orderby=id"))
        .await
}

#[tokio::test]
async fn audit_tells_who_did_what_to_which_row_by_which_credential_and_from_where() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let made = ann
            .send(Method::POST, "/api-key/user/full", json!({ "name": "ci" }))
            .await;
        let key = cloud.by(made.1.as_str().expect("a key").to_owned());
        let variable = key
            .create(
                "application_environment_variable",
                json!({ "application": fleet, "name": "DB_PASSWORD", "value": "s3cret" }),
            )
            .await;
        let path = format!("/v7/application_environment_variable({variable})");
        let changed = key
            .send(Method::PATCH, &path, json!({ "value": "s3cret-2" }))
            .await;
        assert_eq!(changed.0, StatusCode::OK);
        assert_eq!(
            key.answer(key.ask(Method::DELETE, &path)).await.0,
            StatusCode::OK
        );
        let found = events(&ann, "resource eq 'application_environment_variable'").await;
        let verbs: Vec<_> = found.iter().map(|event| event["verb"].clone()).collect();
        assert_eq!(verbs, [json!("create"), json!("change"), json!("delete")]);
        let keys = ann.rows("/v7/api_key?$filter=name%20eq%20'ci'").await;
        for event in &found {
            assert_eq!(event["row_id"], json!(variable));
            assert_eq!(event["user_name"], json!("admin"));
            assert_eq!(event["credential"], json!("key"));
            assert_eq!(event["credential_id"], keys[0]["id"]);
            assert_eq!(event["address"], json!("127.0.0.1"));
            assert!(!event.to_string().contains("s3cret"), "{event}");
        }
        assert_eq!(
            found[0]["fields"],
            json!({ "application": fleet, "name": "DB_PASSWORD", "value": "…" })
        );
        let made = events(&ann, "resource eq 'api_key' and verb eq 'create'").await;
        assert!(made.iter().any(|event| event["row_id"] == keys[0]["id"]
            && event["credential"] == json!("session")
            && event["fields"]["key_hash"] == json!("…")));

        // Successful sign-ins, and failed ones, which are combined.
        for _ in 0..3 {
            cloud.sign_in_from([127, 0, 0, 9], EMAIL, "wrong").await;
        }
        let failed = events(&ann, "verb eq 'sign-in-failed'").await;
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0]["times"], json!(3));
        assert_eq!(failed[0]["address"], json!("127.0.0.9"));
        assert!(!events(&ann, "verb eq 'sign-in'").await.is_empty());
        let change = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
        let token = ann
            .send(Method::POST, "/user/v1/change-password", change)
            .await;
        let ann = cloud.by(token.1.as_str().expect("a token").to_owned());
        assert_eq!(events(&ann, "verb eq 'new-password'").await.len(), 1);
        let all = ann.rows("/v7/audit_event").await;
        let all = json!(all).to_string();
        for secret in ["another horse", PASSWORD, "s3cret", &key.token] {
            assert!(!all.contains(secret), "{secret}");
        }
    })
    .await;
}

#[tokio::test]
async fn audit_events_are_written_by_nobody_and_read_by_administrators_alone() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let register = async |name: &str, organization: Value| {
            let mut body = json!({
                "username": name, "email": format!("{name}@acme.example"), "password": "battery horse",
            });
            if !organization.is_null() {
                body["organization"] = organization;
            }
            let made = ann.send(Method::POST, "/user/register", body).await;
            assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
            let token = cloud.sign_in_from([127, 0, 0, 1], name, "battery horse").await;
            cloud.by(token.text().await.expect("a token"))
        };
        let own = ann.rows("/v7/organization?$select=id").await[0]["id"].clone();
        let member = register("carl", own).await;
        let stranger = register("eve", Value::Null).await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let of_fleet = format!("resource eq 'application' and row_id eq {fleet}");
        assert_eq!(events(&ann, &of_fleet).await.len(), 1);
        for other in [&member, &stranger] {
            assert!(events(other, &of_fleet).await.is_empty());
            // They see their own actions.
            assert!(!events(other, "verb eq 'sign-in'").await.is_empty());
        }
        let body = json!({ "verb": "create", "resource": "user", "times": 1 });
        for (method, path) in [
            (Method::POST, "/v7/audit_event"),
            (Method::PATCH, "/v7/audit_event?$filter=true"),
            (Method::DELETE, "/v7/audit_event?$filter=true"),
        ] {
            let refused = ann.send(method.clone(), path, body.clone()).await;
            assert_eq!(refused.0, StatusCode::UNAUTHORIZED, "{method}");
        }
        let guest = cloud.ask(Method::GET, "/v7/audit_event").send().await;
        assert_eq!(guest.expect("an answer").status(), StatusCode::UNAUTHORIZED);
        let cookie = cookie(&cloud).await;
        let (status, shown) = page(&cloud, &cookie, "/dashboard/audit").await;
        assert_eq!(status, StatusCode::OK);
        assert!(shown.contains("create application"), "{shown}");
        let nobody = cloud.ask(Method::GET, "/dashboard/audit").header(COOKIE, "x=y");
        assert!(!nobody.send().await.expect("it").text().await.expect("it").contains("Said"));
    })
    .await;
}

#[tokio::test]
async fn audit_leaves_out_what_devices_report_and_what_was_undone() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let count = async || events(&ann, "id gt 0").await.len();
        let before = count().await;
        let by_device = cloud.by(device.key.clone());
        let report = json!({ device.uuid.as_str(): { "name": "pump-1", "status": "Idle" } });
        let reported = by_device
            .send(Method::PATCH, "/device/v3/state", report)
            .await;
        assert_eq!(reported.0, StatusCode::OK, "{}", reported.1);
        let tag = json!({ "device": device.id, "tag_key": "a", "value": "b" });
        by_device.create("device_tag", tag.clone()).await;
        assert_eq!(count().await, before);
        // The second tag with this key is refused, so nothing was done.
        let again = ann.send(Method::POST, "/v7/device_tag", tag).await;
        assert_eq!(again.0, StatusCode::CONFLICT);
        assert_eq!(count().await, before);
        let path = format!("/v7/device({})", device.id);
        let noted = ann
            .send(Method::PATCH, &path, json!({ "note": "by the door" }))
            .await;
        assert_eq!(noted.0, StatusCode::OK);
        let last = events(&ann, "resource eq 'device' and verb eq 'change'").await;
        let last = last.last().expect("an event");
        assert_eq!(last["row_id"], json!(device.id));
        assert_eq!(last["fields"], json!({ "note": "by the door" }));
        // A request to a disconnected device is sent to nobody.
        let ask = json!({ "deviceId": device.id, "data": { "force": true } });
        let away = ann.send(Method::POST, "/supervisor/v1/reboot", ask).await;
        assert_eq!(away.0, StatusCode::NOT_FOUND);
        assert!(events(&ann, "verb eq 'ask'").await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn audit_keeps_the_configured_number_of_events() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        for name in ["pump", "valve", "press"] {
            ann.fleet(name, "raspberrypi4-64").await;
        }
        let url = cloud.database.clone();
        let database = database(&cloud).await;
        data::audit::tidy(&database, 0, 2).await.expect("deleted");
        assert_eq!(events(&ann, "id gt 0").await.len(), 2);
        data::audit::tidy(&database, i64::MAX, 1000)
            .await
            .expect("deleted");
        assert!(events(&ann, "id gt 0").await.is_empty());
        database.close().await;
        cloud.end().await;
        let limited = Cloud::start_with(&url, "[audit]\ndays = 7\nrows = 10\n").await;
        limited.end().await;
    })
    .await;
}
