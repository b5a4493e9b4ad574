//! Versions 1 to 6 of the data API over HTTP: the same rows, with the names and the form of each version
//! (docs/spec/cloud.md#older-versions).

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, on_both, read};

const OLDER: [&str; 6] = ["v1", "v2", "v3", "v4", "v5", "v6"];
/// Versions that answer like the fifth.
const FIRST_FIVE: [&str; 5] = ["v1", "v2", "v3", "v4", "v5"];

#[tokio::test]
async fn every_version_describes_itself_and_no_other_is_known() {
    on_both(async |cloud| {
        for version in OLDER.into_iter().chain(["v7"]) {
            let request = cloud.ask(Method::GET, &format!("/{version}/$metadata"));
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.status(), StatusCode::OK, "{version}");
            let kind = answer.headers()["content-type"].to_str().expect("text");
            assert_eq!(kind, "application/xml; charset=utf-8");
            let tag = answer.headers()["etag"].to_str().expect("text").to_owned();
            let text = answer.text().await.expect("a text");
            assert!(text.contains("EntityType Name=\"device\""), "{version}");
            let new = "Name=\"changed_api_heartbeat_state_on__date\"";
            assert_eq!(text.contains(new), version == "v7", "{version}");
            let again = cloud.ask(Method::GET, &format!("/{version}/$metadata"));
            let again = again.header("if-none-match", tag).send().await;
            assert_eq!(again.expect("it").status(), StatusCode::NOT_MODIFIED);
        }
        for path in ["/v0/device", "/v8/device", "/v07/device", "/v77/device"] {
            let (status, why) = read(cloud.ask(Method::GET, path).send().await.expect("it")).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
            assert!(why.as_str().expect(path).contains(path), "{path}: {why}");
        }
    })
    .await;
}

#[tokio::test]
async fn rows_and_links_of_older_versions_have_their_addresses() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        for version in OLDER {
            let url = format!("/{version}/application({fleet})?$select=id,organization");
            let row = json!({
                "id": fleet,
                "organization": { "__id": 1,
                    "__deferred": { "uri": format!("/{version}/organization(@id)?@id=1") } },
                "__metadata": { "uri": format!("/{version}/application(@id)?@id={fleet}") },
            });
            let rows = ann.rows(&url).await;
            assert_eq!(rows, Vec::from([row.clone()]), "{url}");
            let place = row["__metadata"]["uri"].as_str().expect("an address");
            assert_eq!(ann.rows(place).await[0]["id"], json!(fleet), "{place}");
            let there = row["organization"]["__deferred"]["uri"].as_str();
            let there = ann.rows(there.expect("an address")).await;
            assert_eq!(there[0]["handle"], json!("admin"));
            // An expanded link is an array of rows, which have addresses too.
            let url = format!(
                "/{version}/application({fleet})?$select=id&$expand=organization($select=handle)"
            );
            let row = &ann.rows(&url).await[0]["organization"][0];
            let address = format!("/{version}/organization(@id)?@id=1");
            assert_eq!(row["__metadata"]["uri"], json!(address), "{row}");
        }
    })
    .await;
}

#[tokio::test]
async fn older_versions_pass_over_names_that_they_do_not_know_where_rows_are_shown_alone() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        for version in OLDER {
            let url = format!("/{version}/application({fleet})?$select=id,nothing&$expand=nowhere");
            let row = &ann.rows(&url).await[0];
            assert_eq!(row["id"], json!(fleet), "{url}");
            let url = format!("/{version}/application?$filter=nothing eq 1");
            assert_eq!(ann.get(&url).await.0, StatusCode::BAD_REQUEST, "{url}");
        }
        for query in ["$select=id,nothing", "$expand=nowhere"] {
            let url = format!("/v7/application({fleet})?{query}");
            assert_eq!(ann.get(&url).await.0, StatusCode::BAD_REQUEST, "{url}");
        }
    })
    .await;
}

#[tokio::test]
async fn changes_answer_ok_and_creations_return_the_row_in_the_names_of_the_version() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        for version in OLDER {
            let device =
                json!({ "belongs_to__application": fleet, "device_type": "raspberrypi4-64" });
            let request = ann
                .ask(Method::POST, &format!("/{version}/device"))
                .json(&device);
            let answer = request.send().await.expect("an answer");
            let place = answer.headers()["location"]
                .to_str()
                .expect("text")
                .to_owned();
            let (status, row) = read(answer).await;
            assert_eq!(status, StatusCode::CREATED, "{version}: {row}");
            let id = row["id"].as_i64().expect("an id");
            assert_eq!(place, format!("/{version}/device(@id)?@id={id}"));
            assert_eq!(row["__metadata"]["uri"], json!(place));
            assert_eq!(row["should_be_running__release"], Value::Null);
            assert!(row.get("is_pinned_on__release").is_none(), "{row}");
            assert_eq!(row["overall_status"], json!("configuring"));
            assert!(row["actor"].is_i64(), "{row}");
            assert_eq!(row["logs_channel"], Value::Null);
            let tag = json!({ "device": id, "tag_key": "place", "value": "roof" });
            let path = format!("/{version}/device_tag");
            let (status, _) = ann.send(Method::POST, &path, tag.clone()).await;
            assert_eq!(status, StatusCode::CREATED);
            // A second row with a unique value.
            let (status, why) = ann.send(Method::POST, &path, tag.clone()).await;
            let conflict = if version == "v6" { 409 } else { 400 };
            assert_eq!(status.as_u16(), conflict, "{version}: {why}");
            assert_eq!(why, json!("\"device\" and \"tag_key\" must be unique."));
            let at = format!("/{version}/device_tag(device={id},tag_key='place')");
            for (method, body) in [
                (Method::PATCH, json!({ "value": "cellar" })),
                (Method::PUT, json!({ "value": "attic" })),
                (Method::PATCH, json!({ "value": "garden" })),
            ] {
                let answer = ann.send(method.clone(), &at, body).await;
                assert_eq!(answer, (StatusCode::OK, json!("OK")), "{method} {at}");
            }
            assert_eq!(ann.rows(&at).await[0]["value"], json!("garden"));
            let gone = ann.answer(ann.ask(Method::DELETE, &at)).await;
            assert_eq!(gone, (StatusCode::OK, json!("OK")));
            assert_eq!(ann.rows(&at).await, Vec::<Value>::new());
        }
    })
    .await;
}

/// Creates a successful release of a fleet, and returns its id.
async fn release(ann: &ApiCaller<'_>, fleet: i64, commit: &str) -> i64 {
    let body = json!({
        "belongs_to__application": fleet, "commit": commit, "composition": {}, "status": "success",
        "source": "cloud", "start_timestamp": "2026-01-02T03:04:05Z",
    });
    ann.create("release", body).await
}

async fn pump(cloud: &Cloud) -> (ApiCaller<'_>, i64, i64) {
    let ann = cloud.sign_in().await;
    let fleet = ann.fleet("pump", "raspberrypi4-64").await;
    let release = release(&ann, fleet, "f7caf4f000").await;
    (ann, fleet, release)
}

#[tokio::test]
async fn the_pin_of_a_device_had_another_name() {
    on_both(async |cloud| {
        let (ann, fleet, release) = pump(&cloud).await;
        let device_type = ann.rows("/v7/device_type(slug='raspberrypi4-64')?$select=id").await;
        let body = json!({ "belongs_to__application": fleet, "is_of__device_type": device_type[0]["id"] });
        let device = ann.create("device", body).await;
        for version in OLDER {
            let at = format!("/{version}/device({device})");
            // Errors name a field as the version does.
            let wrong = json!({ "should_be_running__release": 4242 });
            let (status, why) = ann.send(Method::PATCH, &at, wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            let named = "`should_be_running__release`: there is no `release` 4242";
            assert_eq!(why, json!(named), "{version}");
            let body = json!({ "should_be_running__release": release });
            assert_eq!(ann.send(Method::PATCH, &at, body).await.1, json!("OK"));
            let past = format!(
                "/{version}/device_history?$filter=tracks__device eq {device} and end_timestamp eq null\
                 &$select=should_be_running__release"
            );
            let pinned = json!({ "__id": release });
            let row = &ann.rows(&past).await[0]["should_be_running__release"];
            assert_eq!(row["__id"], pinned["__id"], "{version}");
            let today = format!("/v7/device({device})?$select=is_pinned_on__release");
            let pinned = json!({ "is_pinned_on__release": { "__id": release } });
            assert_eq!(ann.rows(&today).await, [pinned], "{version}");
            let url = format!("{at}?$select=id&$expand=should_be_running__release($select=commit)");
            let row = &ann.rows(&url).await[0];
            assert_eq!(row["should_be_running__release"][0]["commit"], json!("f7caf4f000"));
            let filtered = format!(
                "/{version}/device?$filter=should_be_running__release/any(r:r/commit eq 'f7caf4f000')"
            );
            let body = json!({ "should_be_running__release": null });
            let answer = ann.send(Method::PATCH, &filtered, body).await;
            assert_eq!(answer, (StatusCode::OK, json!("OK")), "{version}");
            let free = json!({ "is_pinned_on__release": null });
            assert_eq!(ann.rows(&today).await, [free], "{version}: by filter");
        }
        // The current name is unknown in the old version, and the old name cannot be written in the current one.
        for (path, body) in [
            ("/v6/device", json!({ "is_pinned_on__release": release })),
            ("/v5/device", json!({ "is_pinned_on__release": release })),
        ] {
            let (status, _) = ann.send(Method::PATCH, &format!("{path}({device})"), body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        }
        // Fields without an effect may be written; impossible values are refused.
        for (body, status) in [
            (json!({ "is_managed_by__device": null }), 200),
            (json!({ "is_managed_by__device": device }), 400),
            (json!({ "vpn_address": "10.0.0.1" }), 200),
        ] {
            let (got, why) = ann.send(Method::PATCH, &format!("/v6/device({device})"), body.clone()).await;
            assert_eq!(got.as_u16(), status, "{body}: {why}");
        }
    })
    .await;
}

#[tokio::test]
async fn releases_were_of_a_type_and_their_contracts_text() {
    on_both(async |cloud| {
        let (ann, fleet, _) = pump(&cloud).await;
        for (number, version) in OLDER.into_iter().enumerate() {
            let commit = format!("draft{number}");
            let body = json!({
                "belongs_to__application": fleet, "commit": commit, "composition": {},
                "status": "success", "source": "cloud", "start_timestamp": 1_767_323_045_678_i64,
                "release_type": "draft", "contract": "{\"type\":\"sw.application\"}",
            });
            let path = format!("/{version}/release");
            let (status, row) = ann.send(Method::POST, &path, body).await;
            assert_eq!(status, StatusCode::CREATED, "{version}: {row}");
            assert_eq!(row["release_type"], json!("draft"));
            assert_eq!(row["contract"], json!("{\"type\":\"sw.application\"}"));
            let id = &row["id"];
            let today = format!("/v7/release({id})?$select=is_final,contract");
            let expected = json!({ "is_final": false, "contract": { "type": "sw.application" } });
            assert_eq!(ann.rows(&today).await, [expected], "{version}");
            let at = format!("{path}({id})");
            let both = json!({ "release_type": "final", "is_final": false });
            let (status, why) = ann.send(Method::PATCH, &at, both).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
            let body = json!({ "release_type": "final" });
            assert_eq!(ann.send(Method::PATCH, &at, body).await.1, json!("OK"));
            let found = format!("{path}?$filter=release_type eq 'final' and commit eq '{commit}'");
            assert_eq!(ann.rows(&found).await.len(), 1, "{found}");
            let (status, _) = ann.get(&format!("/{version}/release_asset")).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "not there");
        }
    })
    .await;
}

#[tokio::test]
async fn fleets_were_found_by_whom_they_belong_to_and_by_names() {
    on_both(async |cloud| {
        let (ann, pump, release) = pump(&cloud).await;
        for (number, version) in FIRST_FIVE.into_iter().enumerate() {
            // The user's own organization is used if none is given.
            let body = json!({ "app_name": format!("valve{number}"), "device_type": "intel-nuc" });
            let path = format!("/{version}/application");
            let (status, row) = ann.send(Method::POST, &path, body).await;
            assert_eq!(status, StatusCode::CREATED, "{version}: {row}");
            assert_eq!(row["slug"], json!(format!("admin/valve{number}")));
            assert_eq!(row["device_type"], json!("intel-nuc"));
            assert_eq!(row["user"]["__id"], json!(1), "{row}");
            let url = format!("/{version}/user(1)?$select=id&$expand=application($select=app_name;$filter=app_name eq 'pump')");
            assert_eq!(ann.rows(&url).await[0]["application"][0]["app_name"], json!("pump"));
            let url = format!("{path}?$select=id,commit&$filter=device_type eq 'raspberrypi4-64' and commit eq 'f7caf4f000'");
            let rows = ann.rows(&url).await;
            assert_eq!((&rows[0]["id"], rows.len()), (&json!(pump), 1), "{url}");

            let at = format!("{path}({pump})");
            let other = format!("other{number}");
            self::release(&ann, pump, &other).await;
            let body = json!({ "commit": "f7caf4f000", "should_track_latest_release": false });
            assert_eq!(ann.send(Method::PATCH, &at, body).await, (StatusCode::OK, json!("OK")));
            let today = format!("/v7/application({pump})?$select=should_be_running__release");
            assert_eq!(ann.rows(&today).await[0]["should_be_running__release"]["__id"], json!(release));
            let (status, why) = ann.send(Method::PATCH, &at, json!({ "commit": "nothing" })).await;
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(why.as_str().expect("text").contains("`nothing`"), "{why}");
        }
        let body = json!({ "app_name": "more", "device_type": "nothing", "organization": 1 });
        for version in OLDER {
            let (status, why) = ann.send(Method::POST, &format!("/{version}/application"), body.clone()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{version}");
            assert_eq!(why, json!("`device_type`: there is no device type `nothing`"));
        }
        let body = json!({ "app_name": "more", "device_type": "intel-nuc" });
        let (status, why) = ann.send(Method::POST, "/v6/application", body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(why, json!("`organization` is required"));
    })
    .await;
}

#[tokio::test]
async fn resources_of_then_are_rows_of_today() {
    on_both(async |cloud| {
        let (ann, fleet, _) = pump(&cloud).await;
        let public = ann.fleet("open", "raspberrypi4-64").await;
        let nobody = |path: String| cloud.ask(Method::GET, &path);
        ann.send(Method::PATCH, &format!("/v7/application({public})"), json!({ "is_public": true })).await;
        for version in OLDER {
            let own = ann.rows(&format!("/{version}/my_application?$select=id")).await;
            assert_eq!(own.len(), 2, "{version}: {own:?}");
            // Public fleets do not count as anybody's own.
            let path = format!("/{version}/my_application");
            let (status, _) = read(nobody(path.clone()).send().await.expect("it")).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            let body = json!({ "app_name": format!("mine-{version}"), "organization": 1, "device_type": "intel-nuc" });
            let (status, row) = ann.send(Method::POST, &path, body).await;
            assert_eq!(status, StatusCode::CREATED, "{row}");
            let at = format!("{path}({})", row["id"]);
            let body = json!({ "app_name": format!("yours-{version}") });
            assert_eq!(ann.send(Method::PATCH, &at, body).await, (StatusCode::OK, json!("OK")));
            assert_eq!(ann.answer(ann.ask(Method::DELETE, &at)).await, (StatusCode::OK, json!("OK")));

            let device = json!({ "belongs_to__application": fleet, "device_type": "raspberrypi4-64" });
            let (_, device) = ann.send(Method::POST, &format!("/{version}/device"), device).await;
            let device = device["id"].as_i64().expect("an id");
            let url = format!("/{version}/device({device})?$select=id&$expand=gateway_download,manages__device");
            let row = &ann.rows(&url).await[0];
            assert_eq!((&row["gateway_download"], &row["manages__device"]), (&json!([]), &json!([])));
            assert_eq!(ann.rows(&format!("/{version}/gateway_download")).await, Vec::<Value>::new());
            assert_eq!(ann.rows(&format!("/{version}/supervisor_release")).await, Vec::<Value>::new());
            // Configuration variables had a second name.
            let body = json!({ "device": device, "name": "PLATFORM_HOST_CONFIG_gpu_mem", "value": "16" });
            let (status, row) = ann.send(Method::POST, &format!("/{version}/device__has__name"), body).await;
            assert_eq!(status, StatusCode::CREATED, "{row}");
            let url = format!("/{version}/device_config_variable?$filter=device eq {device}&$select=name");
            assert_eq!(ann.rows(&url).await[0]["name"], json!("PLATFORM_HOST_CONFIG_gpu_mem"));
            let body = json!({ "action": "tunnel-22222" });
            let at = format!("/{version}/device({device})/canAccess");
            let answer = ann.send(Method::POST, &at, body).await;
            assert_eq!(answer, (StatusCode::OK, json!({ "d": [{ "id": device }] })));
        }
        let (status, _) = ann.get("/v7/my_application").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "no such resource any more");
    })
    .await;
}

/// Reads every resource of every version, with all its fields.
#[tokio::test]
async fn every_resource_of_every_version_is_read_in_its_shape() {
    on_both(async |cloud| {
        let (ann, fleet, _) = pump(&cloud).await;
        let device = json!({ "belongs_to__application": fleet, "device_type": "raspberrypi4-64" });
        ann.send(Method::POST, "/v6/device", device).await;
        // The first four use the model of the fifth.
        for version in [
            resources::Version::V5,
            resources::Version::V6,
            resources::Version::V7,
        ] {
            let shape = version.shape();
            // Nobody may read actors.
            let resources = version.model().resources().iter();
            for resource in resources.filter(|one| one.name != "actor") {
                let links = resource.navigations.iter().filter(|one| one.to != "actor");
                let links: Vec<&str> = links.map(|one| one.name).collect();
                let url = format!(
                    "{}/{}?$expand={}",
                    version.path(),
                    resource.name,
                    links.join(",")
                );
                let (status, body) = ann.get(&url).await;
                assert_eq!(status, StatusCode::OK, "{url}: {body}");
                for row in body["d"].as_array().expect("rows") {
                    // Rows without an id have no address.
                    let addressed = shape.addressed && !row["id"].is_null();
                    assert_eq!(
                        row["__metadata"]["uri"].is_string(),
                        addressed,
                        "{url}: {row}"
                    );
                    for link in row.as_object().expect("a row").values() {
                        if link.get("__id").is_some() {
                            let deferred = link["__deferred"]["uri"].is_string();
                            assert_eq!(deferred, shape.addressed, "{url}: {link}");
                        }
                    }
                }
            }
        }
    })
    .await;
}
