//! Requests and expected answers of the reference's clients, for cases that the cloud once handled
//! differently.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{on_both, read};
use crate::scene::scene;

#[tokio::test]
async fn actors_are_nobodys_to_read_and_a_way_through_them_is_refused() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let own = ann.get("/actor/v1/whoami").await.1["id"].clone();
        let (status, key) = ann
            .send(Method::POST, "/api-key/user/full", json!({ "name": "a2" }))
            .await;
        assert_eq!(status, StatusCode::OK);
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        let device = names.by(&cloud, "calm");
        for (who, by) in [("a user", &ann), ("a key", &key), ("a device", &device)] {
            for path in [
                "/v7/actor".to_owned(),
                format!("/v7/actor({own})"),
                "/v7/actor/$count".to_owned(),
                "/v7/device?$select=id&$expand=actor".to_owned(),
                "/v7/device?$select=id&$filter=actor/any(a:a/id gt 0)".to_owned(),
                format!("/v6/actor({own})"),
            ] {
                let (status, body) = by.get(&path).await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{who} {path}: {body}");
            }
        }
        // Numbers can be compared, but give no access to actors.
        let rows = ann
            .rows("/v7/device?$select=actor&$filter=actor gt 0")
            .await;
        assert!(rows[0]["actor"]["__id"].is_i64(), "{rows:?}");
    })
    .await;
}

#[tokio::test]
async fn only_users_have_fleets_of_their_own() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let (ann, calm) = (names.by(&cloud, "ann"), names.by(&cloud, "calm"));
        let filter = "is_directly_accessible_by__user/any(u:true)";
        for version in ["v1", "v2", "v3", "v4", "v5", "v6", "v7"] {
            let path = match version {
                "v7" => format!("/v7/application?$select=id&$filter={filter}"),
                older => format!("/{older}/my_application?$select=id"),
            };
            assert!(!ann.rows(&path).await.is_empty(), "{path}");
            let guest = cloud.ask(Method::GET, &path).send().await;
            let guest = guest.expect("an answer").status();
            assert_eq!(guest, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(calm.get(&path).await.0, StatusCode::UNAUTHORIZED, "{path}");
        }
        let counted = "/v6/my_application/$count";
        let guest = cloud.ask(Method::GET, counted).send().await;
        assert_eq!(guest.expect("an answer").status(), StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn parts_of_a_prerelease_that_are_of_digits_are_numbers() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let fleet: i64 = names.filled("<pump>").parse().expect("a number");
        for (number, (semver, parts)) in [
            ("2.0.0-beta.1", json!(["beta", 1])),
            ("2.0.0-1.x-2.0", json!([1, "x-2", 0])),
            ("2.0.0-99999999999999999", json!(["99999999999999999"])),
            ("2.0.0", json!([])),
        ]
        .into_iter()
        .enumerate()
        {
            let body = json!({
                "belongs_to__application": fleet, "commit": format!("c{number}"), "composition": {}, "semver": semver,
                "status": "success", "source": "cloud", "start_timestamp": "2026-01-02T03:04:05.678Z",
            });
            let release = ann.create("release", body).await;
            let rows = ann.rows(&format!("/v7/release({release})?$select=version,raw_version")).await;
            assert_eq!(rows[0]["version"]["prerelease"], parts, "{semver}: {}", rows[0]);
            assert_eq!(rows[0]["raw_version"], json!(semver));
        }
        let draft = names.filled("/v7/release(<draft>)?$select=version");
        let version = &ann.rows(&draft).await[0]["version"]["prerelease"];
        assert!(version[0].is_i64(), "{version}");
    })
    .await;
}

#[tokio::test]
async fn links_lead_from_one_record() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        for path in [
            "/v7/application/owns__device",
            "/v7/application/owns__device/$count",
            "/v7/application/$links/owns__device",
            "/v7/application/owns__device(<calm>)",
            "/v6/application/owns__device",
        ] {
            let (status, body) = ann.get(&names.filled(path)).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {body}");
            assert!(body.to_string().contains("a key in parentheses"), "{body}");
        }
        for path in [
            "/v7/application(<pump>)/owns__device",
            "/v7/application(<pump>)/owns__device/$count",
            "/v7/application(<pump>)/$links/owns__device",
            "/v7/device(<calm>)/belongs_to__application/owns__device",
            "/v7/device/$count",
        ] {
            let (status, body) = ann.get(&names.filled(path)).await;
            assert_eq!(status, StatusCode::OK, "{path}: {body}");
        }
    })
    .await;
}

#[tokio::test]
async fn values_of_options_without_an_effect_are_checked() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        for (option, expected) in [
            ("$count=true", 200),
            ("$count=maybe", 400),
            ("$inlinecount=allpages", 200),
            ("$inlinecount=all", 400),
            ("$format=json", 200),
            ("$format=json;odata.metadata=full", 200),
            ("$format=application/json;odata.metadata=none", 200),
            ("$format=xml", 400),
            ("$format=json;odata.metadata=some", 400),
            ("returnResource=false", 200),
            ("returnResource=perhaps", 400),
            (
                "$select=id&$expand=organization($select=id;$count=true)",
                200,
            ),
        ] {
            let (status, body) = ann.get(&format!("/v7/application?{option}")).await;
            assert_eq!(status.as_u16(), expected, "{option}: {body}");
            if expected == 400 {
                assert!(body.to_string().contains("at character"), "{body}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_expansion_may_ask_for_the_number_inline() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        for (value, expected) in [("allpages", 200), ("none", 200), ("all", 400)] {
            let path = format!(
                "/v7/organization?$select=id&$expand=application($select=id;$inlinecount={value})"
            );
            let (status, body) = ann.get(&path).await;
            assert_eq!(status.as_u16(), expected, "{value}: {body}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_part_of_a_text_from_nowhere_is_nothing_on_both_databases() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        for part in [
            "substring(device_name,null)",
            "substring(device_name,0,null)",
            "substring(null,1)",
        ] {
            let path = format!("/v7/device?$select=id&$filter={part} eq 'x'");
            assert_eq!(ann.rows(&path).await.len(), 0, "{part}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_whose_name_is_removed_gets_a_generated_one() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let path = names.filled("/v7/device(<calm>)");
        let (status, body) = ann
            .send(Method::PATCH, &path, json!({ "device_name": "" }))
            .await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let name = ann.rows(&format!("{path}?$select=device_name")).await[0]["device_name"].clone();
        assert_ne!(name, json!("calm-river"));
        assert_eq!(
            name.as_str().map(|it| it.split('-').count()),
            Some(2),
            "{name}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_body_that_is_compressed_or_in_other_letters_is_refused_as_such() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        for (header, value, expected) in [
            ("content-encoding", "gzip", 415),
            ("content-encoding", "nonsense", 415),
            ("content-encoding", "identity", 201),
            ("content-type", "application/json; charset=utf-16", 415),
            ("content-type", "application/json; charset=\"UTF-8\"", 201),
        ] {
            let body = json!({ "name": format!("{value} {expected}") }).to_string();
            let request = ann.ask(Method::POST, "/v7/organization").body(body);
            let request = match header {
                "content-type" => request.header(header, value),
                _ => request
                    .header(header, value)
                    .header("content-type", "application/json"),
            };
            let (status, why) = read(request.send().await.expect("an answer")).await;
            assert_eq!(status.as_u16(), expected, "{header}: {value}: {why}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_organization_without_a_handle_gets_one_made_from_its_name() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        for (name, handle) in [
            ("Big Pumps & Co.", "big_pumps_co"),
            ("Big pumps, co", "big_pumps_co_2"),
            ("BIG PUMPS CO", "big_pumps_co_3"),
            ("水", "organization"),
            ("Platform OS", "organization_2"),
        ] {
            let (status, made) = ann
                .send(Method::POST, "/v7/organization", json!({ "name": name }))
                .await;
            assert_eq!(
                (status, &made["handle"]),
                (StatusCode::CREATED, &json!(handle)),
                "{name}: {made}"
            );
        }
        let (status, made) = ann
            .send(
                Method::POST,
                "/v7/organization",
                json!({ "handle": "nameless" }),
            )
            .await;
        assert_eq!(
            (status, made),
            (StatusCode::BAD_REQUEST, json!("`name` is required"))
        );
        let (status, made) = ann
            .send(Method::POST, "/v6/organization", json!({ "name": "Old" }))
            .await;
        assert_eq!(
            (status, &made["handle"]),
            (StatusCode::CREATED, &json!("old"))
        );
        assert_ne!(made["id"], Value::Null);
    })
    .await;
}
