//! When the state of a device changes, and who may read it (docs/spec/cloud.md#device-state-etag,
//! docs/spec/cloud.md#pitfall-stable-etag).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Cloud, PASSWORD, on_both};
use crate::shop::{Shop, uuid};

#[tokio::test]
async fn each_source_of_the_target_state_changes_it_only_for_the_affected_devices() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let other = Shop::named(&cloud, "other").await;
        let [one, two, far] = [
            shop.device(1).await,
            shop.device(2).await,
            other.device(3).await,
        ];
        let ann = &shop.ann;
        let (_, tag_far) = far.state().await;
        let part = ann
            .rows(&format!(
                "/v7/release_image?$filter=image eq {}&$select=id",
                shop.release.images[0]
            ))
            .await;
        let part = part[0]["id"].clone();
        let path = format!(
            "/v7/service_install(device={},installs__service={})",
            one.id, shop.services[0]
        );
        let install = ann.rows(&format!("{path}?$select=id")).await[0]["id"].clone();
        let fleet = format!("/v7/application({})", shop.fleet);
        let device = format!("/v7/device({})", one.id);
        // The change, and whether it also affects the state of the fleet's second device.
        let changes: Vec<(Method, String, Value, bool)> = vec![
            (
                Method::PATCH,
                device.clone(),
                json!({ "device_name": "renamed" }),
                false,
            ),
            (
                Method::PATCH,
                fleet.clone(),
                json!({ "app_name": "shop-renamed" }),
                true,
            ),
            (
                Method::POST,
                "/v7/device_environment_variable".into(),
                json!({ "device": one.id, "name": "A", "value": "1" }),
                false,
            ),
            (
                Method::PATCH,
                "/v7/device_environment_variable?$filter=name eq 'A'".into(),
                json!({ "value": "2" }),
                false,
            ),
            (
                Method::DELETE,
                "/v7/device_environment_variable?$filter=name eq 'A'".into(),
                Value::Null,
                false,
            ),
            (
                Method::POST,
                "/v7/device_config_variable".into(),
                json!({ "device": one.id, "name": "PLATFORM_A", "value": "1" }),
                false,
            ),
            (
                Method::POST,
                "/v7/application_environment_variable".into(),
                json!({ "application": shop.fleet, "name": "A", "value": "1" }),
                true,
            ),
            (
                Method::POST,
                "/v7/application_config_variable".into(),
                json!({ "application": shop.fleet, "name": "PLATFORM_B", "value": "1" }),
                true,
            ),
            (
                Method::POST,
                "/v7/service_environment_variable".into(),
                json!({ "service": shop.services[0], "name": "S", "value": "1" }),
                true,
            ),
            (
                Method::POST,
                "/v7/service_label".into(),
                json!({ "service": shop.services[0], "label_name": "a", "value": "1" }),
                true,
            ),
            (
                Method::POST,
                "/v7/image_environment_variable".into(),
                json!({ "release_image": part, "name": "X", "value": "1" }),
                true,
            ),
            (
                Method::POST,
                "/v7/image_label".into(),
                json!({ "release_image": part, "label_name": "x", "value": "1" }),
                true,
            ),
            (
                Method::POST,
                "/v7/device_service_environment_variable".into(),
                json!({ "service_install": install, "name": "X", "value": "2" }),
                false,
            ),
            (
                Method::PATCH,
                format!("/v7/service({})", shop.services[0]),
                json!({ "service_name": "first" }),
                true,
            ),
            (
                Method::PATCH,
                format!("/v7/release({})", shop.release.id),
                json!({ "commit": "renamed" }),
                true,
            ),
            (
                Method::PATCH,
                format!("/v7/release({})", shop.release.id),
                json!({ "signed_statement": "what the owner signed" }),
                true,
            ),
            (
                Method::PATCH,
                format!("/v7/image({})", shop.release.images[0]),
                json!({ "content_hash": format!("sha256:{}", "0".repeat(64)) }),
                true,
            ),
            (
                Method::PATCH,
                fleet.clone(),
                json!({ "should_be_running__release": null, "should_track_latest_release": false }),
                true,
            ),
            (
                Method::PATCH,
                device.clone(),
                json!({ "is_pinned_on__release": shop.release.id }),
                false,
            ),
            (
                Method::PATCH,
                device.clone(),
                json!({ "is_pinned_on__release": null }),
                false,
            ),
            (
                Method::PATCH,
                device,
                json!({ "belongs_to__application": other.fleet }),
                false,
            ),
        ];
        for (method, path, body, both) in changes {
            let ((_, of_one), (_, of_two)) = (one.state().await, two.state().await);
            let request = ann.ask(method.clone(), &path);
            let request = if body.is_null() {
                request
            } else {
                request.json(&body)
            };
            let (status, answer) = ann.answer(request).await;
            assert!(status.is_success(), "{method} {path} {body}: {answer}");
            assert_eq!(
                one.poll(Some(&of_one)).await.status(),
                StatusCode::OK,
                "{method} {path} {body}"
            );
            let second = if both {
                StatusCode::OK
            } else {
                StatusCode::NOT_MODIFIED
            };
            assert_eq!(
                two.poll(Some(&of_two)).await.status(),
                second,
                "{method} {path} {body}"
            );
            assert_eq!(
                far.poll(Some(&tag_far)).await.status(),
                StatusCode::NOT_MODIFIED,
                "{method} {path}"
            );
        }
        let (state, _) = one.state().await;
        assert!(
            state["apps"][&other.uuid]["releases"]["other-one"].is_object(),
            "{state}"
        );
        let (state, _) = two.state().await;
        assert_eq!(
            state["apps"][&shop.uuid].get("releases"),
            None,
            "no release, no key: {state}"
        );
        // A report of the device does not change its target state.
        let (_, tag) = one.state().await;
        assert_eq!(
            one.report(json!({ "status": "Idle", "cpu_usage": 3 }))
                .await,
            StatusCode::OK
        );
        assert_eq!(
            one.poll(Some(&tag)).await.status(),
            StatusCode::NOT_MODIFIED
        );
    })
    .await;
}

#[tokio::test]
async fn every_replica_answers_with_what_another_one_changed() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        // A second one on the same database.
        let second = Cloud::start(&cloud.database).await;
        let path = format!("/device/v3/{}/state", device.uuid);
        let by_second = second.by(device.signed.token.clone());
        let (_, tag) = device.state().await;
        let same = by_second
            .ask(Method::GET, &path)
            .header("if-none-match", &tag);
        assert_eq!(
            same.send().await.expect("an answer").status(),
            StatusCode::NOT_MODIFIED
        );
        let ann = second.sign_in().await;
        for value in ["1", "2"] {
            let body = json!({ "value": value });
            let variable = json!({ "application": shop.fleet, "name": "A", "value": value });
            match value {
                "1" => drop(
                    ann.create("application_environment_variable", variable)
                        .await,
                ),
                _ => drop(
                    ann.send(
                        Method::PATCH,
                        "/v7/application_environment_variable?$filter=name eq 'A'",
                        body,
                    )
                    .await,
                ),
            }
            let (state, _) = device.state().await;
            let services = &state["apps"][&shop.uuid]["releases"]["shop-one"]["services"];
            assert_eq!(services["main"]["environment"], json!({ "A": value }));
        }
        let (status, _) = ann
            .answer(ann.ask(Method::DELETE, &format!("/v7/device({})", device.id)))
            .await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            device.poll(None).await.status(),
            StatusCode::NOT_MODIFIED,
            "it is gone"
        );
    })
    .await;
}

#[tokio::test]
async fn a_caller_without_access_is_refused_and_a_deleted_device_keeps_its_target() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let paths = ["v3", "v2"].map(|version| format!("/device/{version}/{}/state", one.uuid));
        for path in &paths {
            let nobody = cloud
                .ask(Method::GET, path)
                .send()
                .await
                .expect("an answer");
            assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(
                cloud.by("0123456789abcdef".into()).get(path).await.0,
                StatusCode::UNAUTHORIZED
            );
            for _ in 0..2 {
                assert_eq!(
                    two.signed.get(path).await.0,
                    StatusCode::UNAUTHORIZED,
                    "another device: {path}"
                );
            }
            assert_eq!(
                cloud.by(shop.key.clone()).get(path).await.0,
                StatusCode::UNAUTHORIZED,
                "{path}"
            );
            assert_eq!(shop.ann.get(path).await.0, StatusCode::OK, "{path}");
            assert_eq!(one.signed.get(path).await.0, StatusCode::OK, "{path}");
            let in_query = cloud.ask(Method::GET, &format!("{path}?apikey={}", one.signed.token));
            assert_eq!(
                in_query.send().await.expect("an answer").status(),
                StatusCode::OK
            );
        }
        // A public fleet does not make the states of its devices public.
        shop.ann
            .send(
                Method::PATCH,
                &format!("/v7/application({})", shop.fleet),
                json!({ "is_public": true }),
            )
            .await;
        assert_eq!(two.signed.get(&paths[0]).await.0, StatusCode::UNAUTHORIZED);

        let (status, _) = shop
            .ann
            .answer(
                shop.ann
                    .ask(Method::DELETE, &format!("/v7/device({})", one.id)),
            )
            .await;
        assert_eq!(status, StatusCode::OK);
        for path in paths.iter().map(String::as_str).chain([
            &*format!("/device/v3/{}/state", uuid(77)),
            "/device/v3/nonsense/state",
        ]) {
            let nobody = cloud
                .ask(Method::GET, path)
                .send()
                .await
                .expect("an answer");
            assert_eq!(nobody.status(), StatusCode::NOT_MODIFIED, "{path}");
            let (status, body) = one.signed.get(path).await;
            assert_eq!(
                (status, body),
                (StatusCode::NOT_MODIFIED, Value::Null),
                "{path}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_that_was_refused_its_target_state_gets_it_once_it_may() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let path = format!("/device/v3/{}/state", device.uuid);
        let email = "dora@other.example";
        let user = json!({ "username": "dora", "email": email, "password": PASSWORD });
        let (status, made) = shop.ann.send(Method::POST, "/user/register", user).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let given = json!({ "username": "dora", "password": PASSWORD });
        let token = cloud.ask(Method::POST, "/login_").json(&given).send().await;
        let token = token.expect("an answer").text().await;
        let dora = cloud.by(token.expect("a token"));
        assert_eq!(dora.get(&path).await.0, StatusCode::UNAUTHORIZED);
        let role = "/v7/application_membership_role?$select=id&$filter=name eq 'developer'";
        let role = shop.ann.rows(role).await[0]["id"].clone();
        let invite = json!({
            "invitee": email, "is_invited_to__application": shop.fleet, "application_membership_role": role,
        });
        let (status, invite) = shop
            .ann
            .send(Method::POST, "/v7/application_invite", invite)
            .await;
        assert_eq!(status, StatusCode::CREATED, "{invite}");
        let token = invite["invitation_token"].as_str().expect("a token");
        let invitation = format!("/user/v1/invitation/{token}");
        let (status, why) = dora.send(Method::POST, &invitation, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        assert_eq!(dora.get(&path).await.0, StatusCode::OK);
        // And loses it just as quickly.
        let sharing = "/v7/user_application_membership?$filter=true";
        let (status, why) = shop
            .ann
            .answer(shop.ann.ask(Method::DELETE, sharing))
            .await;
        assert_eq!(status, StatusCode::OK, "{why}");
        assert_eq!(dora.get(&path).await.0, StatusCode::UNAUTHORIZED);
    })
    .await;
}
