//! Reports of devices about themselves (docs/spec/cloud.md#device-report, docs/spec/cloud.md#device-tags).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use data::testing::sql;

use crate::harness::{on_both, read};
use crate::shop::{Device, Shop, uuid};

const V3: &str = "/device/v3/state";

#[tokio::test]
async fn reports_of_a_device_are_stored_and_cut_to_their_bounds() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let report = json!({
            "status": "x".repeat(60), "os_version": "Platform OS 2.88.4 (dev)", "supervisor_version": "v1.2.3",
            "provisioning_progress": null, "provisioning_state": "", "ip_address": "10.0.0.1 10.0.0.2",
            "mac_address": "00:11:22:33:44:55", "api_port": 48484, "api_secret": "s".repeat(80),
            "cpu_id": "ABCD", "is_undervolted": true,
            "memory_usage": 5_000_000_000_i64, "memory_total": 2048, "storage_usage": 12, "storage_total": 100,
            "storage_block_device": "/dev/mmcblk0p6", "cpu_temp": 51, "cpu_usage": 7, "unknown": { "x": 1 },
        });
        assert_eq!(device.report(report).await, StatusCode::OK);
        let path = format!("/v7/device({})", device.id);
        let row = shop.ann.rows(&path).await.remove(0);
        for (field, value) in [
            ("status", json!("x".repeat(50))),
            ("os_version", json!("Platform OS 2.88.4")),
            ("os_variant", json!("dev")),
            ("supervisor_version", json!("v1.2.3")),
            ("provisioning_state", json!("")),
            ("ip_address", json!("10.0.0.1 10.0.0.2")),
            ("api_port", json!(48484)),
            ("cpu_id", json!("abcd")),
            ("is_undervolted", json!(true)),
            ("memory_usage", json!(2_147_483_647)),
            ("cpu_temp", json!(51)),
            ("storage_block_device", json!("/dev/mmcblk0p6")),
            ("public_address", json!("127.0.0.1")),
        ] {
            assert_eq!(row[field], value, "{field}");
        }
        let secret = format!("{path}?$select=api_secret");
        assert_eq!(shop.ann.get(&secret).await.0, StatusCode::BAD_REQUEST, "never readable");
        // An identical report changes nothing.
        let before = shop.fields(&device, "modified_at").await;
        assert_eq!(device.report(json!({ "status": "x".repeat(55), "cpu_id": "aBcD" })).await, StatusCode::OK);
        assert_eq!(shop.fields(&device, "modified_at").await, before);
    })
    .await;
}

#[tokio::test]
async fn measurements_alone_are_written_once_a_minute_and_else_with_the_rest() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        for (report, cpu, status) in [
            (json!({ "cpu_usage": 1 }), 1, Value::Null),
            (json!({ "cpu_usage": 2 }), 1, Value::Null),
            (
                json!({ "cpu_usage": 3, "status": "Idle" }),
                3,
                json!("Idle"),
            ),
            (json!({ "cpu_usage": 4 }), 3, json!("Idle")),
            (
                json!({ "cpu_usage": 5, "status": "Idle" }),
                3,
                json!("Idle"),
            ),
        ] {
            assert_eq!(
                device.report(report.clone()).await,
                StatusCode::OK,
                "{report}"
            );
            let expected = json!({ "cpu_usage": cpu, "status": status });
            assert_eq!(
                shop.fields(&device, "cpu_usage,status").await,
                expected,
                "{report}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_report_that_is_wrong_or_not_of_the_caller_is_refused_as_a_whole() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let me = || one.uuid.clone();
        for (body, status) in [
            (json!({}), 400),
            (json!([]), 400),
            (json!({ me(): 1 }), 400),
            (json!({ me(): { "status": 1 } }), 400),
            (json!({ me(): { "apps": [] } }), 400),
            (json!({ me(): { "memory_usage": "x" } }), 400),
            (
                json!({ me(): { "status": "Idle" }, &two.uuid: { "status": "Idle" } }),
                401,
            ),
            (
                json!({ me(): { "status": "Idle" }, uuid(77): { "status": "Idle" } }),
                401,
            ),
            (json!({ "nonsense": { "status": "Idle" } }), 401),
        ] {
            let (got, answer) = one.signed.send(Method::PATCH, V3, body.clone()).await;
            assert_eq!(got.as_u16(), status, "{body}: {answer}");
        }
        let good = json!({ me(): { "status": "Idle" } });
        assert_eq!(shop.fields(&one, "status").await["status"], Value::Null);
        assert_eq!(
            shop.ann.send(Method::PATCH, V3, good.clone()).await.0,
            401,
            "a session is no key"
        );
        let nobody = cloud
            .ask(Method::PATCH, V3)
            .json(&good)
            .send()
            .await
            .expect("an answer");
        assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(
            cloud
                .by(shop.key.clone())
                .send(Method::PATCH, V3, good.clone())
                .await
                .0,
            401
        );
        let broken = one
            .signed
            .ask(Method::PATCH, V3)
            .header("content-type", "application/json")
            .body("{");
        assert_eq!(one.signed.answer(broken).await.0, 400);
        let long = json!({ me(): { "status": "x".repeat(600_000) } });
        assert_eq!(one.signed.send(Method::PATCH, V3, long).await.0, 413);
        assert_eq!(
            one.signed.send(Method::PATCH, V3, good).await,
            (StatusCode::OK, Value::Null)
        );
    })
    .await;
}

/// Creates a report of services of the shop's release.
fn apps(shop: &Shop<'_>, services: &[(&str, usize, &str, Value)]) -> Value {
    let services: serde_json::Map<String, Value> = services
        .iter()
        .map(|(name, at, status, progress)| {
            let image = format!("{}@sha256:00", shop.release.locations[*at]);
            let install =
                json!({ "image": image, "status": status, "download_progress": progress });
            ((*name).to_owned(), install)
        })
        .collect();
    json!({ "apps": { &shop.uuid: { "releases": { "shop-one": { "services": services } } } } })
}

async fn installs(shop: &Shop<'_>, device: &Device<'_>) -> Vec<Value> {
    let path = format!(
        "/v7/image_install?$filter=device eq {}&$orderby=installs__image&$select=status,download_progress",
        device.id
    );
    shop.ann.rows(&path).await
}

fn install(status: &str, progress: Value) -> Value {
    json!({ "status": status, "download_progress": progress })
}

#[tokio::test]
async fn images_follow_what_the_device_reports() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let report = |services: Vec<(&'static str, usize, &'static str, Value)>| {
            let body = apps(&shop, &services);
            device.report(body)
        };
        assert_eq!(
            report(vec![("main", 0, "Downloading", json!(10))]).await,
            200
        );
        assert_eq!(
            installs(&shop, &device).await,
            [install("Downloading", json!(10))]
        );
        // Another step of the same download is delayed.
        assert_eq!(
            report(vec![("main", 0, "Downloading", json!(11))]).await,
            200
        );
        assert_eq!(
            installs(&shop, &device).await,
            [install("Downloading", json!(10))]
        );
        let older =
            sql("UPDATE image_install SET modified_at = modified_at - 31000 WHERE device = ?");
        shop.execute(older.with(device.id)).await;
        assert_eq!(
            report(vec![("main", 0, "Downloading", json!(12))]).await,
            200
        );
        assert_eq!(
            installs(&shop, &device).await,
            [install("Downloading", json!(12))]
        );
        // Its end is not.
        assert_eq!(
            report(vec![("main", 0, "Downloading", json!(100))]).await,
            200
        );
        assert_eq!(
            installs(&shop, &device).await,
            [install("Downloading", json!(100))]
        );
        let both = vec![
            ("main", 0, "Running", Value::Null),
            ("side", 1, "Dancing", json!(3)),
        ];
        assert_eq!(report(both).await, 200);
        let expected = [
            install("Running", Value::Null),
            install("Unknown", json!(3)),
        ];
        assert_eq!(
            installs(&shop, &device).await,
            expected,
            "a word that is none is dropped"
        );
        // A report without apps does not change them; one without an image means that the image is gone.
        assert_eq!(device.report(json!({ "status": "Idle" })).await, 200);
        assert_eq!(installs(&shop, &device).await, expected);
        assert_eq!(report(vec![("main", 0, "Running", Value::Null)]).await, 200);
        let expected = [
            install("Running", Value::Null),
            install("deleted", Value::Null),
        ];
        assert_eq!(installs(&shop, &device).await, expected);
        assert_eq!(device.report(json!({ "apps": {} })).await, 200);
        let gone = [
            install("deleted", Value::Null),
            install("deleted", Value::Null),
        ];
        assert_eq!(installs(&shop, &device).await, gone);
        let path = format!(
            "/v7/image_install?$filter=device eq {}&$select=is_provided_by__release",
            device.id
        );
        for row in shop.ann.rows(&path).await {
            assert_eq!(
                row["is_provided_by__release"]["__id"],
                json!(shop.release.id)
            );
        }
    })
    .await;
}

#[tokio::test]
async fn releases_that_a_device_cannot_have_refuse_its_report() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let other = Shop::named(&cloud, "other").await;
        let device = shop.device(1).await;
        let failed = json!({
            "status": "failed", "belongs_to__application": shop.fleet, "commit": "broken", "composition": {},
            "source": "cloud", "start_timestamp": "2026-11-21T10:00:00Z",
        });
        shop.ann.create("release", failed).await;
        let app = |uuid: &str, commit: &str, image: &str| {
            let services = json!({ "main": { "image": image, "status": "Running" } });
            json!({ "status": "told", "apps": { uuid: { "releases": { commit: { "services": services } } } } })
        };
        let (mine, others) = (&shop.release.locations[0], &other.release.locations[0]);
        for (body, status) in [
            (app(&shop.uuid, "unknown", mine), 401),
            (app(&shop.uuid, "broken", mine), 401),
            (app(&shop.uuid, "other-one", mine), 401),
            (app(&uuid(5), "shop-one", mine), 401),
            (app(&shop.uuid, "shop-one", "registry.example/v2/none"), 401),
            (app(&shop.uuid, "shop-one", others), 401),
            (app(&shop.uuid, "shop-one", ""), 401),
        ] {
            assert_eq!(device.report(body.clone()).await.as_u16(), status, "{body}");
        }
        assert_eq!(shop.fields(&device, "status").await["status"], Value::Null, "nothing was written");
        assert_eq!(device.report(app(&shop.uuid, "shop-one", &mine.to_uppercase())).await, 200);
    })
    .await;
}

#[tokio::test]
async fn a_report_names_what_the_device_may_have_and_nothing_else() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let other = Shop::named(&cloud, "other").await;
        let newer = other.release("other-two", json!({ "services": {} })).await;
        let device = shop.device(1).await;
        let app = |uuid: &str, commit: &str, image: &str| {
            let services = json!({ "main": { "image": image, "status": "Running" } });
            json!({ "apps": { uuid: { "releases": { commit: { "services": services } } } } })
        };
        let installed = async || {
            let path = format!("/v7/image_install/$count?$filter=device eq {}", device.id);
            shop.ann.get(&path).await.1["d"].clone()
        };
        let one = || app(&other.uuid, "other-one", &other.release.locations[0]);
        let two = || app(&other.uuid, "other-two", &newer.locations[0]);
        let nobody = || app(&other.uuid, "nothing", &other.release.locations[0]);
        // The answer is the same as if it did not exist.
        for body in [one(), two(), nobody()] {
            assert_eq!(device.report(body.clone()).await, 401, "{body}");
        }
        assert_eq!(installed().await, json!(0));
        for field in [
            "UPDATE device SET should_be_managed_by__release = ? WHERE id = ?",
            "UPDATE device SET should_be_operated_by__release = ? WHERE id = ?",
        ] {
            let is_to =
                |release: Option<i64>| shop.execute(sql(field).with(release).with(device.id));
            is_to(Some(newer.id)).await;
            assert_eq!(
                device.report(one()).await,
                200,
                "{field}: its fleet is one of the device's"
            );
            assert_eq!(device.report(nobody()).await, 401, "{field}");
            is_to(None).await;
            assert_eq!(
                device.report(one()).await,
                200,
                "{field}: it has that until it has another"
            );
            assert_eq!(device.report(two()).await, 401, "{field}");
            shop.execute(sql("DELETE FROM image_install")).await;
            assert_eq!(device.report(one()).await, 401, "{field}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_runs_no_release_of_another_tenant() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let other = Shop::named(&cloud, "other").await;
        let device = shop.device(1).await;
        let path = format!("/v7/device({})", device.id);
        let says = async |release: i64| {
            let body =
                json!({ "is_running__release": release, "status": format!("runs {release}") });
            assert_eq!(
                device.signed.send(Method::PATCH, &path, body).await.0,
                200,
                "{release}"
            );
            let older = format!("/v5/device({})?$select=is_on__commit,status", device.id);
            let row = device.signed.rows(&older).await.remove(0);
            assert_eq!(
                row["status"],
                json!(format!("runs {release}")),
                "the rest is taken"
            );
            row["is_on__commit"].clone()
        };
        assert_eq!(says(other.release.id).await, Value::Null);
        assert_eq!(says(99_999).await, Value::Null, "as one that is not there");
        assert_eq!(says(shop.release.id).await, json!("shop-one"));
        assert_eq!(
            says(other.release.id).await,
            json!("shop-one"),
            "it is passed over"
        );
        let row = shop.fields(&device, "is_running__release").await;
        assert_eq!(row["is_running__release"]["__id"], json!(shop.release.id));
    })
    .await;
}

#[tokio::test]
async fn a_report_does_not_say_whether_the_device_is_connected() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let fields = "is_online,is_connected_to_vpn,last_connectivity_event,status";
        let before = shop.fields(&device, fields).await;
        assert_eq!(before["is_online"], json!(false));
        let report = json!({ "is_online": true, "status": "Idle" });
        assert_eq!(device.report(report).await, StatusCode::OK);
        let older = json!({ "local": { "is_online": true } });
        let path = format!("/device/v2/{}/state", device.uuid);
        assert_eq!(device.signed.send(Method::PATCH, &path, older).await.0, 200);
        let mut expected = before;
        expected["status"] = json!("Idle");
        assert_eq!(shop.fields(&device, fields).await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_report_names_only_releases_and_images_of_its_own_fleet() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let other = Shop::named(&cloud, "other").await;
        let device = shop.device(1).await;
        let running = || async {
            shop.fields(
                &device,
                "is_running__release,update_status,last_update_status_event",
            )
            .await
        };
        let of = |uuid: &str, body: Value| json!({ "apps": { uuid: body } });
        assert_eq!(
            device
                .report(of(&other.uuid, json!({ "release_uuid": "other-one" })))
                .await,
            200
        );
        assert_eq!(running().await["is_running__release"], Value::Null);
        assert_eq!(
            device
                .report(of(&shop.uuid, json!({ "release_uuid": "shop-one" })))
                .await,
            200
        );
        assert_eq!(
            running().await["is_running__release"]["__id"],
            json!(shop.release.id)
        );
        for commit in ["unknown", "other-one"] {
            assert_eq!(
                device
                    .report(of(&shop.uuid, json!({ "release_uuid": commit })))
                    .await,
                200
            );
            assert_eq!(
                running().await["is_running__release"]["__id"],
                json!(shop.release.id),
                "{commit}"
            );
        }
        shop.release("shop-two", json!({})).await;
        let states = |first: &str, second: &str| {
            let releases = json!({
                "shop-one": { "update_status": first }, "shop-two": { "update_status": second },
            });
            of(&shop.uuid, json!({ "releases": releases }))
        };
        for (first, second, expected) in [
            ("done", "downloading", "downloading"),
            ("done", "applying changes", "applying changes"),
            ("aborted", "downloading", "aborted"),
            ("done", "rejected", "rejected"),
            ("done", "unheard of", "done"),
        ] {
            assert_eq!(device.report(states(first, second)).await, 200);
            let row = running().await;
            assert_eq!(row["update_status"], json!(expected), "{first} {second}");
            assert!(!row["last_update_status_event"].is_null());
        }
    })
    .await;
}

/// Returns the plugin fields of a device, as `PLUGIN.NAME TYPE VALUE UNIT`.
async fn plugin_fields(shop: &Shop<'_>, device: &Device<'_>) -> Vec<String> {
    let path = format!(
        "/v7/device_plugin_field?$filter=device eq {}&$orderby=plugin,name&$select=plugin,name,value,value_type,unit",
        device.id
    );
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let rows = shop.ann.rows(&path).await.into_iter();
    rows.map(|row| {
        let [plugin, name] = ["plugin", "name"].map(|field| text(&row[field]));
        let [value_type, value, unit] =
            ["value_type", "value", "unit"].map(|field| text(&row[field]));
        format!("{plugin}.{name} {value_type} {value} {unit}")
    })
    .collect()
}

#[tokio::test]
async fn fields_of_plugins_are_as_the_device_reports_them_and_go_with_the_device() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [device, beside] = [shop.device(1).await, shop.device(2).await];
        let report = async |fields: Value| device.report(json!({ "plugin_fields": fields })).await;
        let level = |value: Value| json!({ "value": value, "unit": "%" });
        let other = json!({ "plugin_fields": { "gauge": { "level": level(json!(1)) } } });
        assert_eq!(beside.report(other).await, 200);
        let fields = json!({
            "tank-gauge": { "level": level(json!(63.5)), "armed": { "value": true } },
            "meter": { "door": { "value": "open" }, "phase": { "value": -5 } }, "none": {},
        });
        assert_eq!(report(fields.clone()).await, 200);
        let expected = [
            "meter.door text open -",
            "meter.phase number -5 -",
            "tank-gauge.armed boolean true -",
            "tank-gauge.level number 63.5 %",
        ];
        assert_eq!(plugin_fields(&shop, &device).await, expected);
        // An unchanged row keeps its number and the time of its last change.
        let path = format!(
            "/v7/device_plugin_field?$filter=device eq {}&$orderby=id&$select=id,modified_at,name",
            device.id
        );
        let before = shop.ann.rows(&path).await;
        let of_device = shop.fields(&device, "modified_at").await;
        assert_eq!(report(fields).await, 200);
        assert_eq!(shop.ann.rows(&path).await, before, "the same once more");
        assert_eq!(shop.fields(&device, "modified_at").await, of_device);
        let older = sql("UPDATE device_plugin_field SET modified_at = modified_at - 1000 WHERE device = ?");
        shop.execute(older.with(device.id)).await;
        let before = shop.ann.rows(&path).await;
        let changed = json!({
            "tank-gauge": { "level": level(json!(64)), "armed": { "value": true } }, "meter": { "phase": { "value": "-5" } },
        });
        assert_eq!(report(changed).await, 200);
        let expected = ["meter.phase text -5 -", "tank-gauge.armed boolean true -", "tank-gauge.level number 64 %"];
        assert_eq!(plugin_fields(&shop, &device).await, expected);
        for row in shop.ann.rows(&path).await {
            let old = before.iter().find(|old| old["id"] == row["id"]).expect("the same row");
            let is_same = row["modified_at"] == old["modified_at"];
            assert_eq!(is_same, row["name"] == "armed", "{row} {old}");
        }
        // A report without such fields does not change them; neither does null.
        assert_eq!(device.report(json!({ "status": "Idle" })).await, 200);
        assert_eq!(report(Value::Null).await, 200);
        assert_eq!(plugin_fields(&shop, &device).await, expected);
        let expanded = format!(
            "/v7/device({})?$select=id&$expand=device_plugin_field($select=name;$filter=plugin eq 'tank-gauge';$orderby=name)",
            device.id
        );
        let row = shop.ann.rows(&expanded).await.remove(0);
        assert_eq!(row["device_plugin_field"], json!([{ "name": "armed" }, { "name": "level" }]));
        assert_eq!(device.signed.rows("/v7/device_plugin_field?$select=id").await.len(), 3, "its own");
        assert_eq!(report(json!({})).await, 200);
        assert_eq!(plugin_fields(&shop, &device).await, [] as [&str; 0]);
        assert_eq!(plugin_fields(&shop, &beside).await, ["gauge.level number 1 %"]);
        let path = format!("/v7/device({})", beside.id);
        assert_eq!(shop.ann.answer(shop.ann.ask(Method::DELETE, &path)).await.0, StatusCode::OK);
        assert_eq!(shop.ann.rows("/v7/device_plugin_field").await, [] as [Value; 0]);
    })
    .await;
}

#[tokio::test]
async fn fields_of_plugins_that_are_hostile_are_cut_or_refused_and_nobody_else_writes_them() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let report = async |fields: Value| {
            let report = json!({ "status": "told", "plugin_fields": fields });
            device.report(report).await.as_u16()
        };
        let many = |count: usize| -> Value {
            let fields = (0..count).map(|number| (format!("f{number}"), json!({ "value": 1 })));
            json!({ "gauge": Value::Object(fields.collect()) })
        };
        let plugins = (0..65).map(|number| (format!("p{number}"), json!({ "f": { "value": 1 } })));
        let long = "a".repeat(65);
        for fields in [
            many(65),
            many(20_000),
            Value::Object(plugins.collect()),
            json!([]),
            json!("x"),
            json!({ "gauge": 1 }),
            json!({ "gauge": { "level": 1 } }),
            json!({ "gauge": { "level": { "value": null } } }),
            json!({ "gauge": { "level": { "value": { "$ref": 1 } } } }),
            json!({ "gauge": { "level": { "value": 1, "unit": 7 } } }),
            json!({ "gauge": { &long: { "value": 1 } } }),
            json!({ "gauge": { "<b>": { "value": 1 } } }),
            json!({ "gauge": { "a/b": { "value": 1 } } }),
            json!({ "gauge/level": { "a": { "value": 1 } } }),
            json!({ &long: { "level": { "value": 1 } } }),
        ] {
            assert_eq!(report(fields.clone()).await, 400, "{:.200}", fields.to_string());
        }
        assert_eq!(shop.fields(&device, "status").await["status"], Value::Null, "nothing was written");
        assert_eq!(report(json!({ "gauge": { "f": { "value": "x".repeat(600_000) } } })).await, 413);
        let hostile = json!({ "gauge": {
            "html": { "value": "<script>alert(1)</script>" },
            "long": { "value": "\u{e9}".repeat(5000), "unit": "u".repeat(5000) },
            "number": { "value": 1e300 },
            "terminal": { "value": "\u{1b}[2J\u{0}gone\u{202e}\r\n" },
        } });
        assert_eq!(report(hostile).await, 200);
        let expected = [
            "gauge.html text <script>alert(1)</script> -".to_owned(),
            format!("gauge.long text {} {}", "\u{e9}".repeat(256), "u".repeat(16)),
            format!("gauge.number number {} -", json!(1e300)),
            "gauge.terminal text [2Jgone -".to_owned(),
        ];
        assert_eq!(plugin_fields(&shop, &device).await, expected);
        assert_eq!(report(many(64)).await, 200);
        let row = json!({
            "device": device.id, "plugin": "gauge", "name": "mine", "value": "x", "value_type": "text",
        });
        for by in [&shop.ann, &device.signed] {
            let (status, why) = by.send(Method::POST, "/v7/device_plugin_field", row.clone()).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{why}");
        }
        assert_eq!(plugin_fields(&shop, &device).await.len(), 64);
    })
    .await;
}

#[tokio::test]
async fn reports_of_one_device_at_once_leave_the_fields_of_one_of_them() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let reports = (0..8).map(|number| {
            let fields =
                (0..64).map(|field| (format!("r{number}_{field}"), json!({ "value": field })));
            let fields = Value::Object(fields.collect());
            device.report(json!({ "plugin_fields": { "gauge": fields } }))
        });
        for status in futures::future::join_all(reports).await {
            assert_eq!(status, 200);
        }
        let fields = plugin_fields(&shop, &device).await;
        assert_eq!(fields.len(), 64);
        let winner = fields[0].split('_').next().expect("a name");
        assert!(
            fields
                .iter()
                .all(|field| field.split('_').next() == Some(winner)),
            "{fields:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn version_2_reports_by_numbers_and_a_device_that_is_gone_is_left_in_peace() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let path = format!("/device/v2/{}/state", device.uuid);
        let service = json!({ "status": "Downloading", "releaseId": shop.release.id, "download_progress": 5 });
        let body = json!({ "local": {
            "name": "pump-house", "note": "by the lake", "status": "Idle", "download_progress": 5,
            "is_on__commit": "shop-one",
            "apps": { shop.fleet.to_string(): { "services": { shop.release.images[0].to_string(): service } } },
        } });
        let (status, answer) = device.signed.send(Method::PATCH, &path, body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let row = shop.fields(&device, "device_name,note,status,download_progress,is_running__release").await;
        let expected = json!({
            "device_name": "pump-house", "note": "by the lake", "status": "Idle", "download_progress": 5,
            "is_running__release": row["is_running__release"],
        });
        assert_eq!(row, expected);
        assert_eq!(row["is_running__release"]["__id"], json!(shop.release.id));
        assert_eq!(installs(&shop, &device).await, [install("Downloading", json!(5))]);
        for (body, status) in [
            (json!({}), 400),
            (json!({ "local": [] }), 400),
            (json!({ "local": { "status": 1 } }), 400),
            (json!({ "local": { "apps": { "1": { "services": { "x": {} } } } } }), 400),
            (json!({ "local": { "apps": { "1": { "services": { "99999": { "releaseId": 1 } } } } } }), 401),
        ] {
            let (got, answer) = device.signed.send(Method::PATCH, &path, body.clone()).await;
            assert_eq!(got.as_u16(), status, "{body}: {answer}");
        }
        let good = json!({ "local": { "status": "Idle" } });
        assert_eq!(shop.ann.send(Method::PATCH, &path, good.clone()).await.0, 401, "a session is no key");
        let (status, _) = shop.ann.answer(shop.ann.ask(Method::DELETE, &format!("/v7/device({})", device.id))).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(device.signed.send(Method::PATCH, &path, good).await.0, 200, "version 2");
        assert_eq!(device.report(json!({ "status": "Idle" })).await, 401, "version 3");
    })
    .await;
}

#[tokio::test]
async fn a_device_labels_itself() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let path = "/device/v3/tags";
        let tags = || async {
            let path = format!(
                "/v7/device_tag?$filter=device eq {}&$orderby=tag_key&$select=tag_key,value",
                one.id
            );
            shop.ann.rows(&path).await
        };
        for (change, expected) in [
            (json!({ "place": "cellar" }), vec![("place", "cellar")]),
            (
                json!({ "place": "roof", "a": "" }),
                vec![("a", ""), ("place", "roof")],
            ),
            (json!({ "a": "1" }), vec![("a", "1"), ("place", "roof")]),
        ] {
            let answer = one
                .signed
                .send(Method::PATCH, path, json!({ &one.uuid: change }))
                .await;
            assert_eq!(answer, (StatusCode::OK, Value::Null), "{change}");
            let expected: Vec<Value> = expected
                .iter()
                .map(|(key, value)| json!({ "tag_key": key, "value": value }))
                .collect();
            assert_eq!(tags().await, expected, "{change}");
        }
        for (body, status) in [
            (json!({}), 400),
            (json!({ &one.uuid: {} }), 400),
            (json!({ &one.uuid: [] }), 400),
            (json!({ &one.uuid: { "a": 1 } }), 400),
            (json!({ &one.uuid: { "b": "new", "has space": "x" } }), 400),
            (json!({ &one.uuid: { "io.platform.x": "x" } }), 400),
            (
                json!({ &one.uuid: { "b": "new" }, &two.uuid: { "b": "new" } }),
                401,
            ),
            (json!({ uuid(9): { "b": "new" } }), 401),
        ] {
            let (got, answer) = one.signed.send(Method::PATCH, path, body.clone()).await;
            assert_eq!(got.as_u16(), status, "{body}: {answer}");
        }
        assert_eq!(tags().await.len(), 2, "nothing of what was refused");
        let body = json!({ &one.uuid: { "c": "x" } });
        assert_eq!(
            shop.ann.send(Method::PATCH, path, body.clone()).await.0,
            401,
            "a session is no key"
        );
        let nobody = cloud
            .ask(Method::PATCH, path)
            .json(&body)
            .send()
            .await
            .expect("an answer");
        assert_eq!(read(nobody).await.0, StatusCode::UNAUTHORIZED);
    })
    .await;
}
