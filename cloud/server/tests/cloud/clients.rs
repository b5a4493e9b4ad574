//! Endpoints for existing clients and devices outside the data API
//! (docs/spec/cloud.md#other-endpoints).

use data::testing::{on_fresh, sql};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, on_both, read};
use crate::shop::{Shop, uuid};

async fn public(cloud: &Cloud, path: &str) -> (StatusCode, Value) {
    read(
        cloud
            .ask(Method::GET, path)
            .send()
            .await
            .expect("an answer"),
    )
    .await
}

#[tokio::test]
async fn clients_learn_what_they_need_to_know_without_a_credential() {
    on_both(async |cloud| {
        assert_eq!(public(&cloud, "/ping").await, (StatusCode::OK, json!("OK")));
        for method in [Method::GET, Method::HEAD, Method::POST] {
            let answer = cloud
                .ask(method, "/connectivity-check")
                .send()
                .await
                .expect("an answer");
            assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        }
        let (status, config) = public(&cloud, "/config").await;
        assert_eq!(
            (status, &config["apiUrl"]),
            (StatusCode::OK, &json!(cloud.url))
        );
        let (status, rules) = public(&cloud, "/config/vars?deviceType=raspberrypi4-64").await;
        assert_eq!(status, StatusCode::OK);
        for name in [
            "reservedNames",
            "reservedNamespaces",
            "invalidRegex",
            "configVarInvalidRegex",
            "whiteListedNames",
            "whiteListedNamespaces",
            "blackListedNames",
            "configVarSchema",
        ] {
            assert!(!rules[name].is_null(), "{name}");
        }
        let (status, config) = public(&cloud, "/os/v1/config/").await;
        assert_eq!(
            (status, &config["schema_version"]),
            (StatusCode::OK, &json!("1.0.0"))
        );
    })
    .await;
}

#[tokio::test]
async fn boards_are_listed_and_found_by_any_of_their_names() {
    on_both(async |cloud| {
        let (status, all) = public(&cloud, "/device-types/v1").await;
        assert_eq!(status, StatusCode::OK);
        let all = all.as_array().expect("an array");
        let board = all
            .iter()
            .find(|one| one["slug"] == json!("raspberrypi4-64"))
            .expect("it");
        assert_eq!(board["arch"], json!("aarch64"));
        for one in all {
            let aliases = one["aliases"].as_array().expect("names");
            assert!(aliases.contains(&one["slug"]), "{one}");
        }
        let aliased = all.iter().find_map(|one| {
            let mut aliases = one["aliases"].as_array().expect("names").iter();
            let alias = aliases.find(|alias| **alias != one["slug"])?;
            Some((alias.as_str().expect("text").to_owned(), one))
        });
        if let Some((alias, one)) = aliased {
            assert_eq!(
                &public(&cloud, &format!("/device-types/v1/{alias}")).await.1,
                one
            );
        }
        for path in [
            "/device-types/v1/toaster",
            "/device-types/v1/raspberrypi4-64/images/2.0.0/download-size",
        ] {
            assert_eq!(
                public(&cloud, path).await.0,
                StatusCode::NOT_FOUND,
                "{path}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn the_configuration_of_a_fleet_lets_devices_register() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let path = "/download-config";
        let given = json!({ "appId": shop.fleet, "appUpdatePollInterval": 15, "wifiSsid": "net", "developmentMode": true });
        let (status, made) = shop.ann.send(Method::POST, path, given).await;
        assert_eq!(status, StatusCode::OK, "{made}");
        for (field, value) in [
            ("applicationId", json!(shop.fleet)),
            ("deviceType", json!("raspberrypi4-64")),
            ("apiEndpoint", json!(cloud.url)),
            ("appUpdatePollInterval", json!(900_000)),
            ("wifiSsid", json!("net")),
            ("developmentMode", json!(true)),
        ] {
            assert_eq!(made[field], value, "{field}: {made}");
        }
        let by_key = cloud.by(made["apiKey"].as_str().expect("a key").to_owned());
        let body = json!({ "application": shop.fleet, "device_type": made["deviceType"], "uuid": uuid(1) });
        let (status, answer) = by_key.send(Method::POST, "/device/register", body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");

        let in_query = format!("{path}?appId={}&deviceType=raspberrypi3", shop.fleet);
        let (status, made) = shop.ann.get(&in_query).await;
        assert_eq!((status, &made["deviceType"]), (StatusCode::OK, &json!("raspberrypi3")));
        for (given, status) in [
            (json!({}), 400),
            (json!({ "appId": "x" }), 400),
            (json!({ "appId": shop.fleet, "appUpdatePollInterval": -1 }), 400),
            (json!({ "appId": shop.fleet, "deviceType": "toaster" }), 404),
            (json!({ "appId": 99_999 }), 401),
        ] {
            let (got, answer) = shop.ann.send(Method::POST, path, given.clone()).await;
            assert_eq!(got.as_u16(), status, "{given}: {answer}");
        }
        let body = json!({ "appId": shop.fleet });
        assert_eq!(by_key.send(Method::POST, path, body.clone()).await.0, StatusCode::UNAUTHORIZED);
        let nobody = cloud.ask(Method::POST, path).json(&body).send().await.expect("an answer");
        assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn only_the_host_of_a_device_learns_who_may_access_it() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let user = shop.ann.get("/user/v1/whoami").await.1["id"].clone();
        for (title, key) in [
            ("laptop", "ssh-ed25519 AAAA a"),
            ("desk", "ssh-ed25519 BBBB b"),
        ] {
            shop.ann
                .create(
                    "user__has__public_key",
                    json!({ "user": user, "title": title, "public_key": key }),
                )
                .await;
        }
        let keys = |username: &str| format!("/auth/v1/public-keys/{username}");
        let (status, text) = one.signed.get(&keys("Admin")).await;
        assert_eq!(
            (status, text),
            (
                StatusCode::OK,
                json!("ssh-ed25519 AAAA a\nssh-ed25519 BBBB b\n")
            )
        );
        assert_eq!(
            one.signed.get(&keys("nobody")).await,
            (StatusCode::OK, Value::Null)
        );
        assert_eq!(
            shop.ann.get(&keys("admin")).await.0,
            StatusCode::UNAUTHORIZED
        );
        assert_eq!(
            public(&cloud, &keys("admin")).await.0,
            StatusCode::UNAUTHORIZED
        );

        let host = format!("/access/v1/hostos/{}", one.uuid);
        assert_eq!(shop.ann.get(&host).await.0, StatusCode::OK);
        assert_eq!(two.signed.get(&host).await.0, StatusCode::UNAUTHORIZED);
        assert_eq!(public(&cloud, &host).await.0, StatusCode::UNAUTHORIZED);
        let unknown = format!("/access/v1/hostos/{}", uuid(9));
        assert_eq!(shop.ann.get(&unknown).await.0, StatusCode::UNAUTHORIZED);

        let tunnel = format!("/services/vpn/auth/{}", one.uuid);
        assert_eq!(one.signed.get(&tunnel).await.0, StatusCode::OK);
        assert_eq!(two.signed.get(&tunnel).await.0, StatusCode::UNAUTHORIZED);
        assert_eq!(shop.ann.get(&tunnel).await.0, StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn a_disabled_user_reaches_no_device() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let user = shop.ann.get("/user/v1/whoami").await.1["id"].clone();
        let key = json!({ "user": user, "title": "laptop", "public_key": "ssh-ed25519 AAAA a" });
        shop.ann.create("user__has__public_key", key).await;
        let keys = "/auth/v1/public-keys/admin";
        let expected = json!("ssh-ed25519 AAAA a\n");
        assert_eq!(device.signed.get(keys).await, (StatusCode::OK, expected));
        shop.execute(sql(
            "UPDATE \"user\" SET is_disabled = TRUE WHERE username = 'admin'",
        ))
        .await;
        assert_eq!(device.signed.get(keys).await, (StatusCode::OK, Value::Null));
    })
    .await;
}

#[tokio::test]
async fn a_device_reads_the_ssh_keys_of_those_alone_who_may_get_to_its_host() {
    let names = ["nobody", "observer", "operator", "developer"];
    on_fresh(async |database| {
        let cloud = Cloud::start_with(&database, "registration = 'open'").await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let ssh = async |who: &ApiCaller<'_>, name: &str| {
            let user = who.get("/user/v1/whoami").await.1["id"].clone();
            let key = json!({ "user": user, "title": name, "public_key": "ssh-ed25519 AAAA" });
            who.create("user__has__public_key", key).await;
            user
        };
        ssh(&shop.ann, "member").await;
        for name in names {
            let user = ssh(&cloud.register(name).await, name).await;
            if name == "nobody" {
                continue;
            }
            let share = sql(
                "INSERT INTO user_application_membership (created_at, modified_at, \"user\", \
                 is_member_of__application, application_membership_role) \
                 SELECT 0, 0, ?, ?, id FROM application_membership_role WHERE name = ?",
            );
            let share = share.with(user.as_i64().expect("an id")).with(shop.fleet);
            shop.execute(share.with(name)).await;
        }
        let read = async || {
            let keys = "/v7/user__has__public_key?$select=title&$orderby=id";
            device.signed.rows(keys).await
        };
        let expected = [
            json!({ "title": "member" }),
            json!({ "title": "developer" }),
        ];
        assert_eq!(read().await, expected);
        let disabled = "UPDATE \"user\" SET is_disabled = TRUE WHERE username <> 'admin'";
        shop.execute(sql(disabled)).await;
        assert_eq!(read().await, expected[..1]);
    })
    .await;
}

#[tokio::test]
async fn a_tunnel_server_beside_the_cloud_tells_which_devices_it_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("vpn.sqlite").display());
    let key = "a-key-of-tunnel-servers";
    let configuration = format!("tunnel_server_key = '{key}'\n");
    let cloud = Cloud::start_with(&database, &configuration).await;
    let shop = Shop::open(&cloud).await;
    let device = shop.device(1).await;
    let server = cloud.by(key.to_owned());
    let mut instances = Vec::new();
    for address in ["10.0.0.1", "10.0.0.2"] {
        let body = json!({ "service_type": "vpn", "ip_address": address, "last_heartbeat": 1_767_323_045_678_i64 });
        instances.push(server.create("service_instance", body).await);
    }
    let fields = "is_connected_to_vpn,is_online,is_managed_by__service_instance";
    let tell = async |what: &str, instance: i64| {
        let path = format!("/services/vpn/client-{what}");
        let body = json!({ "uuids": [uuid(1), uuid(99), "none"], "serviceId": instance });
        server.send(Method::POST, &path, body).await.0
    };
    assert_eq!(tell("connect", instances[0]).await, StatusCode::OK);
    let held = json!({ "is_connected_to_vpn": true, "is_online": true,
        "is_managed_by__service_instance": { "__id": instances[0] } });
    assert_eq!(shop.fields(&device, fields).await, held);
    // The device moved to the second server, which the first does not know yet.
    assert_eq!(tell("connect", instances[1]).await, StatusCode::OK);
    assert_eq!(tell("disconnect", instances[0]).await, StatusCode::OK);
    let moved = shop.fields(&device, fields).await;
    assert_eq!(moved["is_connected_to_vpn"], true);
    assert_eq!(tell("disconnect", instances[1]).await, StatusCode::OK);
    let away = json!({ "is_connected_to_vpn": false, "is_online": false, "is_managed_by__service_instance": null });
    assert_eq!(shop.fields(&device, fields).await, away);
    assert_eq!(tell("connect", 4242).await, StatusCode::BAD_REQUEST);
    // The key gives access to nothing else, and nobody else may report.
    let (status, _) = server.get("/v7/device").await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let body = json!({ "uuids": [], "serviceId": instances[0] });
    let path = "/services/vpn/client-connect";
    let (status, _) = shop.ann.send(Method::POST, path, body).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn the_size_of_an_operating_system_is_that_of_its_images() {
    on_both(async |cloud| {
        let names = crate::scene::scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let at = "/device-types/v1/intel-nuc/images";
        let of = async |version: &str| public(&cloud, &format!("{at}/{version}/download-size")).await;
        assert_eq!(of("latest").await.0, StatusCode::NOT_FOUND, "it has no images yet");
        let os: i64 = names.filled("<os>").parse().expect("a number");
        let release: i64 = names.filled("<system>").parse().expect("a number");
        let time = "2026-01-02T03:04:05.678Z";
        for (name, size) in [("boot", 1000), ("root", 234)] {
            let service = json!({ "application": os, "service_name": name });
            let service = ann.create("service", service).await;
            let image = json!({ "is_a_build_of__service": service, "status": "success", "image_size": size,
                "start_timestamp": time, "push_timestamp": time });
            let image = ann.create("image", image).await;
            let part = json!({ "image": image, "is_part_of__release": release });
            ann.create("release_image", part).await;
        }
        let sum = (StatusCode::OK, json!({ "size": 1234 }));
        assert_eq!(of("2.88.4%2Bprod").await, sum);
        assert_eq!(of("latest").await, sum);
        for other in ["2.88.5", "2.88.4'%20or%20true", "%25"] {
            assert_eq!(of(other).await.0, StatusCode::NOT_FOUND, "{other}");
        }
    })
    .await;
}
