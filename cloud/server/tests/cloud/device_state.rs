//! The target state of a device: `GET /device/v3/:uuid/state` and its other forms (docs/spec/cloud.md#device-state,
//! docs/spec/cloud.md#pitfall-gone-devices).

use data::testing::sql;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{on_both, read};
use crate::shop::{Shop, uuid};

#[tokio::test]
async fn the_state_has_the_form_that_devices_read() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let name = shop.fields(&device, "device_name").await["device_name"].clone();
        let (state, tag) = device.state().await;
        let image = |at: usize| {
            let hash = format!("sha256:{:064x}", shop.services[at]);
            format!("{}@{hash}", shop.release.locations[at])
        };
        let expected = json!({
            "name": name,
            "config": { "PLATFORM_SUPERVISOR_POLL_INTERVAL": "600000" },
            "apps": { &shop.uuid: {
                "id": shop.fleet, "name": "shop", "is_host": false, "class": "fleet",
                "releases": { "shop-one": {
                    "id": shop.release.id,
                    "services": {
                        "main": {
                            "id": shop.services[0], "image_id": shop.release.images[0], "image": image(0),
                            "environment": {}, "labels": {},
                            "composition": { "image": "x", "restart": "always" },
                        },
                        "side": {
                            "id": shop.services[1], "image_id": shop.release.images[1], "image": image(1),
                            "environment": {}, "labels": {}, "composition": { "privileged": true },
                        },
                    },
                    "networks": { "inner": {} }, "volumes": { "data": {} },
                } },
            } },
        });
        assert_eq!(state, expected);

        // The same bytes for the same state, and none for a client that has them already.
        let bytes = |answer: reqwest::Response| async { answer.bytes().await.expect("a body") };
        assert_eq!(bytes(device.poll(None).await).await, bytes(device.poll(None).await).await);
        for tags in [tag.clone(), format!("\"x\", {tag}"), "*".to_owned()] {
            let answer = device.poll(Some(&tags)).await;
            assert_eq!(answer.status(), StatusCode::NOT_MODIFIED, "{tags}");
            assert_eq!(answer.headers()["etag"].to_str().expect("text"), tag);
            assert!(bytes(answer).await.is_empty());
        }
        assert_eq!(device.poll(Some("\"other\"")).await.status(), StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn a_variable_set_closer_to_the_service_wins() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let ann = &shop.ann;
        let main = shop.services[0];
        let part = ann
            .rows(&format!(
                "/v7/release_image(image={},is_part_of__release={})?$select=id",
                shop.release.images[0], shop.release.id
            ))
            .await[0]["id"]
            .clone();
        let path = format!(
            "/v7/service_install(device={},installs__service={main})?$select=id",
            device.id
        );
        let install = ann.rows(&path).await[0]["id"].clone();
        let levels = [
            ("image_environment_variable", "release_image", part.clone()),
            (
                "application_environment_variable",
                "application",
                json!(shop.fleet),
            ),
            ("service_environment_variable", "service", json!(main)),
            ("device_environment_variable", "device", json!(device.id)),
            (
                "device_service_environment_variable",
                "service_install",
                install,
            ),
        ];
        // The first level sets all five, the next one all but the first, and so on.
        for (at, (resource, parent, id)) in levels.iter().enumerate() {
            for name in ["A", "B", "C", "D", "E"].iter().skip(at) {
                let body = json!({ *parent: id, "name": name, "value": resource });
                ann.create(resource, body).await;
            }
        }
        for (resource, parent, id, name, value) in [
            ("image_label", "release_image", part, "a", "image"),
            ("service_label", "service", json!(main), "b", "service"),
            ("service_label", "service", json!(main), "a", "service"),
        ] {
            ann.create(
                resource,
                json!({ parent: id, "label_name": name, "value": value }),
            )
            .await;
        }
        let (state, _) = device.state().await;
        let services = &state["apps"][&shop.uuid]["releases"]["shop-one"]["services"];
        let expected: serde_json::Map<String, Value> = ["A", "B", "C", "D", "E"]
            .iter()
            .zip(levels)
            .map(|(name, (resource, _, _))| ((*name).to_owned(), json!(resource)))
            .collect();
        assert_eq!(services["main"]["environment"], Value::Object(expected));
        assert_eq!(
            services["main"]["labels"],
            json!({ "a": "service", "b": "service" })
        );
        let side = &services["side"]["environment"];
        assert_eq!(
            side["B"],
            json!("application_environment_variable"),
            "{side}"
        );
        assert_eq!(side["D"], json!("device_environment_variable"), "{side}");
        assert_eq!(side.get("A"), None, "{side}");
    })
    .await;
}

#[tokio::test]
async fn configuration_of_the_device_wins_and_older_prefixes_mean_the_same() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let fleet = ("application_config_variable", "application", shop.fleet);
        let own = ("device_config_variable", "device", device.id);
        for ((resource, parent, id), name, value) in [
            (fleet, "PLATFORM_HOST_CONFIG_gpu_mem", "16"),
            (fleet, "PLATFORM_HOST_CONFIG_x", "fleet"),
            (own, "LEGACY_HOST_CONFIG_x", "device"),
            (fleet, "LEGACY_SUPERVISOR_DELTA", "older"),
            (fleet, "PLATFORM_SUPERVISOR_DELTA", "current"),
            (fleet, "PLATFORM_UI_COLOUR", "blue"),
            (fleet, "LEGACY_HOST_LOG_TO_DISPLAY", "1"),
            (fleet, "PLATFORM_SUPERVISOR_UPDATE_STRATEGY", "hand-over"),
            (own, "PLATFORM_SUPERVISOR_HANDOVER_TIMEOUT", "60000"),
            (fleet, "PLATFORM_SUPERVISOR_POLL_INTERVAL", "1"),
        ] {
            shop.ann.create(resource, json!({ parent: id, "name": name, "value": value })).await;
        }
        let label = json!({
            "service": shop.services[1], "label_name": "io.legacy.update.strategy", "value": "kill-then-download",
        });
        shop.ann.create("service_label", label).await;
        let (state, _) = device.state().await;
        let expected = json!({
            "PLATFORM_HOST_CONFIG_gpu_mem": "16", "PLATFORM_HOST_CONFIG_x": "device",
            "PLATFORM_SUPERVISOR_DELTA": "current", "PLATFORM_SUPERVISOR_HANDOVER_TIMEOUT": "60000",
            "PLATFORM_SUPERVISOR_POLL_INTERVAL": "600000", "PLATFORM_SUPERVISOR_UPDATE_STRATEGY": "hand-over",
        });
        assert_eq!(state["config"], expected);
        let services = &state["apps"][&shop.uuid]["releases"]["shop-one"]["services"];
        let labels = json!({
            "io.platform.update.handover-timeout": "60000", "io.platform.update.strategy": "hand-over",
        });
        assert_eq!(services["main"]["labels"], labels);
        let labels = json!({
            "io.legacy.update.strategy": "kill-then-download", "io.platform.update.handover-timeout": "60000",
        });
        assert_eq!(services["side"]["labels"], labels, "what a service says is left alone");
        let slower = json!({ "value": "900000" });
        let path = "/v7/application_config_variable?$filter=name eq 'PLATFORM_SUPERVISOR_POLL_INTERVAL'";
        shop.ann.send(Method::PATCH, path, slower).await;
        let (state, _) = device.state().await;
        assert_eq!(state["config"]["PLATFORM_SUPERVISOR_POLL_INTERVAL"], json!("900000"));
    })
    .await;
}

#[tokio::test]
async fn a_composition_of_any_form_is_no_error() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "x": deep });
        }
        let odd = [
            ("[]", json!(["main"])),
            ("text", json!("services")),
            ("number", json!(12)),
            ("null services", json!({ "services": null, "networks": null, "volumes": 1 })),
            ("list of services", json!({ "services": ["main"], "networks": [], "volumes": "x" })),
            ("services of text", json!({ "services": { "main": "x", "side": null } })),
            ("deep", json!({ "services": { "main": { "a": deep, "build": 1 }, "side": {} }, "networks": deep })),
        ];
        for (what, composition) in odd {
            let select = sql("UPDATE release SET composition = ? WHERE id = ?")
                .with(composition.to_string())
                .with(shop.release.id);
            assert_eq!(shop.execute(select).await, 1);
            let touched = json!({ "commit": what.replace(' ', "-").replace(['[', ']'], "e") });
            let path = format!("/v7/release({})", shop.release.id);
            let (status, body) = shop.ann.send(Method::PATCH, &path, touched).await;
            assert_eq!(status, StatusCode::OK, "{what}: {body}");
            let (state, _) = device.state().await;
            let releases = state["apps"][&shop.uuid]["releases"].as_object().expect("releases");
            let release = releases.values().next().expect("one");
            assert_eq!(release["services"].as_object().expect("services").len(), 2, "{what}");
            for part in ["networks", "volumes"] {
                assert!(release.get(part).is_none_or(Value::is_object), "{what}: {release}");
            }
            let older = device.signed.get(&format!("/device/v2/{}/state", device.uuid)).await;
            assert_eq!(older.0, StatusCode::OK, "{what}");
        }
        // Text that is not JSON at all.
        for text in ["{", "", "\u{1}"] {
            let select = sql("UPDATE release SET composition = ? WHERE id = ?").with(text).with(shop.release.id);
            shop.execute(select).await;
            let path = format!("/v7/release({})", shop.release.id);
            let touched = json!({ "commit": format!("c{}", text.len()) });
            let _ = shop.ann.send(Method::PATCH, &path, touched).await;
            assert_eq!(device.poll(None).await.status(), StatusCode::OK, "{text:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_supervisor_and_the_operating_system_are_apps_of_their_own() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let system = Shop::named(&cloud, "system").await;
        let manager = Shop::named(&cloud, "manager").await;
        let device = shop.device(1).await;
        let host = sql("UPDATE application SET is_host = TRUE WHERE id = ?").with(system.fleet);
        shop.execute(host).await;
        let target = sql("UPDATE device SET should_be_operated_by__release = ?, should_be_managed_by__release = ? WHERE id = ?")
            .with(system.release.id)
            .with(manager.release.id)
            .with(device.id);
        shop.execute(target).await;
        shop.ann.create("application_environment_variable", json!({ "application": system.fleet, "name": "S", "value": "1" })).await;
        shop.ann.create("application_environment_variable", json!({ "application": shop.fleet, "name": "F", "value": "1" })).await;
        shop.ann.create("device_environment_variable", json!({ "device": device.id, "name": "D", "value": "1" })).await;
        let (state, tag) = device.state().await;
        let apps = state["apps"].as_object().expect("apps");
        assert_eq!(apps.len(), 3, "{state}");
        let main = |shop: &Shop<'_>, commit: &str| apps[&shop.uuid]["releases"][commit]["services"]["main"].clone();
        let of_system = main(&system, "system-one");
        assert_eq!(of_system["environment"], json!({ "D": "1", "S": "1" }));
        assert_eq!(of_system["labels"], json!({ "io.platform.image.store": "root" }));
        assert_eq!(apps[&system.uuid]["is_host"], json!(true));
        let of_manager = main(&manager, "manager-one");
        assert_eq!(of_manager["environment"], json!({ "D": "1" }));
        assert_eq!(of_manager["labels"], json!({}));
        assert_eq!(main(&shop, "shop-one")["environment"], json!({ "D": "1", "F": "1" }));
        // A change by them reaches the device.
        shop.ann.create("application_environment_variable", json!({ "application": manager.fleet, "name": "M", "value": "1" })).await;
        assert_eq!(device.poll(Some(&tag)).await.status(), StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn a_fleet_has_a_state_for_any_of_its_devices() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let first = shop.release.commit.clone();
        let second = shop.release("shop-two", json!({ "services": {} })).await;
        let device = shop.device(1).await;
        let at = format!("/device/v3/fleet/{}/state", shop.uuid);
        for (path, commit) in [
            (format!("{at}/"), "shop-two"),
            (at.clone(), "shop-two"),
            (format!("{at}/?releaseUuid="), "shop-two"),
            (format!("{at}/?releaseUuid={first}"), "shop-one"),
        ] {
            let (status, body) = shop.ann.get(&path).await;
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
            let state = &body[&shop.uuid];
            assert_eq!(state["name"], json!("shop"), "{path}");
            assert!(state["config"].is_object());
            let releases = state["apps"][&shop.uuid]["releases"].as_object().expect("releases");
            assert_eq!(releases.keys().collect::<Vec<_>>(), [commit], "{path}");
        }
        let failed = json!({ "status": "failed", "belongs_to__application": shop.fleet, "commit": "broken",
            "composition": {}, "source": "cloud", "start_timestamp": "2026-11-21T10:00:00Z" });
        shop.ann.create("release", failed).await;
        for path in [
            format!("{at}/?releaseUuid=unknown"),
            format!("{at}/?releaseUuid=broken"),
            format!("/device/v3/fleet/{}/state/", uuid(9)),
        ] {
            assert_eq!(shop.ann.get(&path).await.0, StatusCode::UNAUTHORIZED, "{path}");
        }
        let nobody = cloud.ask(Method::GET, &at).send().await.expect("an answer");
        assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(device.signed.get(&at).await.0, StatusCode::OK, "a device reads its fleet");
        let _ = second.id;
    })
    .await;
}

#[tokio::test]
async fn a_signed_statement_reaches_devices_unchanged_and_no_device_writes_it() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let release = format!("/v7/release({})", shop.release.id);
        let text = "untrusted comment: \u{e4}\nRW\ntrusted comment:\nxx\n{ \"a\":\t1 }\n";
        let signed = json!({ "signed_statement": text });
        shop.ann.send(Method::PATCH, &release, signed).await;
        let statement = async || {
            let (state, _) = device.state().await;
            state["apps"][&shop.uuid]["releases"][&shop.release.commit]["signed_statement"].clone()
        };
        assert_eq!(statement().await, json!(text));
        let long = "x".repeat((256 << 10) + 1);
        for (by, value) in [(&device.signed, "other"), (&shop.ann, &long)] {
            let request = by.ask(Method::PATCH, &release);
            let request = request.json(&json!({ "signed_statement": value }));
            let (status, answer) = by.answer(request).await;
            assert!(status.is_client_error(), "{status}: {answer}");
        }
        assert_eq!(statement().await, json!(text));
    })
    .await;
}

#[tokio::test]
async fn settings_of_a_public_fleet_are_not_a_guests() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let ann = &shop.ann;
        for (resource, of, id, name) in [
            (
                "application_environment_variable",
                "application",
                shop.fleet,
                "DB_PASSWORD",
            ),
            (
                "application_config_variable",
                "application",
                shop.fleet,
                "PLATFORM_WIFI_KEY",
            ),
            (
                "service_environment_variable",
                "service",
                shop.services[0],
                "TOKEN",
            ),
        ] {
            let body = json!({ of: id, "name": name, "value": "s3cret" });
            ann.create(resource, body).await;
        }
        let fleet = format!("/v7/application({})", shop.fleet);
        let public = json!({ "is_public": true });
        assert_eq!(
            ann.send(Method::PATCH, &fleet, public).await.0,
            StatusCode::OK
        );

        let eve = json!({
            "username": "eve", "email": "eve@other.example", "password": "battery horse",
        });
        assert_eq!(
            ann.send(Method::POST, "/user/register", eve).await.0,
            StatusCode::CREATED
        );
        let given = json!({ "username": "eve", "password": "battery horse" });
        let token = cloud.ask(Method::POST, "/login_").json(&given).send().await;
        let eve = cloud.by(token.expect("an answer").text().await.expect("a token"));
        let named = eve
            .send(Method::POST, "/api-key/user/full", json!({ "name": "ci" }))
            .await
            .1;
        let named = cloud.by(named.as_str().expect("a key").to_owned());
        // A device of another fleet, and the provisioning key of this one.
        let other = ann.fleet("other", "raspberrypi4-64").await;
        let key = async |fleet: i64| {
            let path = format!("/api-key/application/{fleet}/provisioning");
            let key = ann.send(Method::POST, &path, json!({})).await.1;
            cloud.by(key.as_str().expect("a key").to_owned())
        };
        let stranger = json!({
            "application": other, "device_type": "raspberrypi4-64", "uuid": uuid(7),
        });
        let stranger = key(other)
            .await
            .send(Method::POST, "/device/register", stranger)
            .await
            .1;
        let stranger = cloud.by(stranger["api_key"].as_str().expect("a key").to_owned());
        let provisioning = key(shop.fleet).await;
        let own = shop.device(1).await;

        for path in [
            format!("/device/v3/fleet/{}/state", shop.uuid),
            format!(
                "/device/v3/fleet/{}/state/?releaseUuid={}",
                shop.uuid, shop.release.commit
            ),
        ] {
            let guest = cloud
                .ask(Method::GET, &path)
                .send()
                .await
                .expect("an answer");
            assert_eq!(
                read(guest).await,
                (StatusCode::UNAUTHORIZED, Value::Null),
                "{path}"
            );
            for (who, signed) in [
                ("a stranger", &eve),
                ("a stranger's key", &named),
                ("a device of another fleet", &stranger),
                ("the provisioning key", &provisioning),
            ] {
                assert_eq!(
                    signed.get(&path).await.0,
                    StatusCode::UNAUTHORIZED,
                    "{who} {path}"
                );
            }
            let (status, state) = ann.get(&path).await;
            assert_eq!(status, StatusCode::OK);
            assert!(state.to_string().contains("s3cret"), "{state}");
            assert_eq!(own.signed.get(&path).await.0, StatusCode::OK, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_shows_its_variables_to_those_who_may_change_its_fleet() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let (ann, device) = (&shop.ann, shop.device(1).await);
        let body = json!({ "application": shop.fleet, "name": "DB_PASSWORD", "value": "s3cret" });
        ann.create("application_environment_variable", body).await;
        let eve = json!({
            "username": "eve", "email": "eve@other.example", "password": "battery horse",
        });
        assert_eq!(ann.send(Method::POST, "/user/register", eve).await.0, StatusCode::CREATED);
        let given = json!({ "username": "eve", "password": "battery horse" });
        let token = cloud.ask(Method::POST, "/login_").json(&given).send().await;
        let eve = cloud.by(token.expect("an answer").text().await.expect("a token"));
        for (number, role, expected) in [
            (2, "observer", StatusCode::UNAUTHORIZED),
            (3, "operator", StatusCode::UNAUTHORIZED),
            (4, "developer", StatusCode::OK),
        ] {
            // A refusal is cached for a while, so each request uses a separate device.
            let device = shop.device(number).await;
            let share = sql(
                "INSERT INTO user_application_membership (created_at, modified_at, \"user\", is_member_of__application, \
                 application_membership_role) SELECT 1, 1, u.id, ?, r.id FROM \"user\" AS u, \
                 application_membership_role AS r WHERE u.username = 'eve' AND r.name = ?",
            );
            shop.execute(share.with(shop.fleet).with(role)).await;
            let path = format!("/v7/device({})?$select=id", device.id);
            assert_eq!(eve.rows(&path).await.len(), 1, "{role}");
            for version in ["v2", "v3"] {
                let path = format!("/device/{version}/{}/state", device.uuid);
                let (status, state) = eve.get(&path).await;
                assert_eq!(status, expected, "{role} {path}: {state}");
            }
            let path = format!("/device/v3/fleet/{}/state", shop.uuid);
            assert_eq!(eve.get(&path).await.0, expected, "{role}");
            shop.execute(sql("DELETE FROM user_application_membership")).await;
        }
        let (state, _) = device.state().await;
        assert!(state.to_string().contains("s3cret"));
    })
    .await;
}

#[tokio::test]
async fn version_2_tells_the_same_by_numbers() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let path = format!("/device/v2/{}/state", device.uuid);
        let answer = device
            .signed
            .ask(Method::GET, &path)
            .send()
            .await
            .expect("an answer");
        let tag = answer.headers()["etag"].to_str().expect("text").to_owned();
        let (_, body) = read(answer).await;
        assert_eq!(body["dependent"], json!({ "apps": {}, "devices": {} }));
        let app = &body["local"]["apps"][shop.fleet.to_string()];
        assert_eq!(app["name"], json!("shop"));
        assert_eq!(app["commit"], json!("shop-one"));
        assert_eq!(app["releaseId"], json!(shop.release.id));
        assert_eq!(app["volumes"], json!({ "data": {} }));
        let main = &app["services"][shop.services[0].to_string()];
        for (field, value) in [
            ("imageId", json!(shop.release.images[0])),
            ("serviceName", json!("main")),
            ("running", json!(true)),
            ("environment", json!({})),
            ("restart", json!("always")),
        ] {
            assert_eq!(main[field], value, "{field}: {main}");
        }
        assert_eq!(main.get("build"), None);
        let again = device
            .signed
            .ask(Method::GET, &path)
            .header("if-none-match", tag);
        assert_eq!(
            again.send().await.expect("an answer").status(),
            StatusCode::NOT_MODIFIED
        );
    })
    .await;
}
