//! Every operation of the page, in every version (docs/spec/cloud.md#older-versions): the forms of addresses and query
//! options are the same in all of them.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::on_both;
use crate::scene::scene;

const VERSIONS: [&str; 7] = ["v1", "v2", "v3", "v4", "v5", "v6", "v7"];

#[tokio::test]
async fn every_operation_of_the_page_is_done_in_every_version() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        for version in VERSIONS {
            let at = |path: &str| format!("/{version}{}", names.filled(path));
            let rows = async |path: &str| ann.rows(&at(path)).await;
            // Additional fields of a version's rows are irrelevant here.
            let one = async |path: &str, field: &str| -> Value {
                let rows = rows(path).await;
                assert_eq!(rows.len(), 1, "{version} {path}: {rows:?}");
                rows[0][field].clone()
            };
            let pump: i64 = names.filled("<pump>").parse().expect("a number");
            for path in [
                "/application(<pump>)?$select=id",
                "/application(slug='acme/pump')?$select=id",
                "/application(slug='acme%2Fpump')?$select=id",
                "/application?$select=id&$filter=app_name%20eq%20'pump'",
                "/application?$select=id&$filter=slug%20eq%20'acme/pump'%20and%20is_public%20eq%20false",
                "/application?$select=id&$filter=organization/any(o:o/handle%20eq%20'acme')&$orderby=id&$top=1",
                "/application?$select=id&$filter=is_directly_accessible_by__user/any(u:true)&$orderby=id&$top=1",
            ] {
                assert_eq!(one(path, "id").await, json!(pump), "{version} {path}");
            }
            let listed = rows("/application?$select=slug&$orderby=slug").await;
            let slugs: Vec<&Value> = listed.iter().map(|row| &row["slug"]).collect();
            assert!(slugs.contains(&&json!("bob/open")), "public ones too: {slugs:?}");
            assert!(!slugs.contains(&&json!("bob/secret")), "{slugs:?}");
            let devices = one("/application(<pump>)?$expand=owns__device", "owns__device").await;
            assert_eq!(devices.as_array().expect("an array").len(), 2, "{version}");
            let path = "/application(<pump>)?$select=id&$expand=is_for__device_type($select=slug)";
            let expanded = one(path, "is_for__device_type").await;
            assert_eq!(expanded[0]["slug"], "raspberrypi4-64", "{version}");
            let path = "/device(uuid='7cf02a62bdc94e6fa4d5cb9b1d94a5c1')?$select=device_name";
            assert_eq!(one(path, "device_name").await, "calm-river");
            let path = "/device?$select=id&$filter=belongs_to__application/any(a:a/slug%20eq%20'acme/valve')";
            let lone: i64 = names.filled("<lone>").parse().expect("a number");
            assert_eq!(one(path, "id").await, json!(lone));
            let path = "/device_tag(device=<calm>,tag_key='env')?$select=value";
            assert_eq!(one(path, "value").await, "prod");
            let (status, counted) = ann
                .get(&at("/device/$count?$filter=belongs_to__application%20eq%20<pump>"))
                .await;
            assert_eq!((status, &counted["d"]), (StatusCode::OK, &json!(2)));

            let app_name = format!("of_{version}");
            let body = json!({
                "app_name": app_name, "organization": names.filled("<acme>").parse::<i64>().expect("a number"),
                "is_for__device_type": names.filled("<pi>").parse::<i64>().expect("a number"),
            });
            let (status, made) = ann.send(Method::POST, &at("/application"), body).await;
            assert_eq!(status, StatusCode::CREATED, "{version}: {made}");
            let fleet = &made["id"];
            let release = json!({
                "belongs_to__application": fleet, "commit": format!("c{version}"), "composition": {},
                "status": "success", "source": "cloud", "start_timestamp": "2026-01-02T03:04:05.678Z",
            });
            let (status, release) = ann.send(Method::POST, &at("/release"), release).await;
            assert_eq!(status, StatusCode::CREATED, "{version}: {release}");
            let by_id = format!("/application({fleet})");
            let by_slug = format!("/application(slug='acme/{app_name}')");
            let expected = match version {
                "v7" => Value::Null,
                _ => json!("OK"),
            };
            for (path, body, tracks) in [
                (&by_id, json!({ "should_track_latest_release": "false" }), false),
                (&by_slug, json!({ "should_track_latest_release": true }), true),
                (
                    &by_slug,
                    json!({ "should_be_running__release": release["id"], "should_track_latest_release": "false" }),
                    false,
                ),
                (&by_id, json!({ "should_track_latest_release": "true" }), true),
            ] {
                let answer = ann.send(Method::PATCH, &at(path), body.clone()).await;
                assert_eq!(answer, (StatusCode::OK, expected.clone()), "{version} {body}");
                let path = format!("{by_id}?$select=should_track_latest_release,should_be_running__release");
                let row = rows(&path).await.remove(0);
                assert_eq!(row["should_track_latest_release"], tracks, "{version} {body}");
                assert_eq!(row["should_be_running__release"]["__id"], release["id"], "{version} {body}");
            }
            let answer = ann.answer(ann.ask(Method::DELETE, &at(&by_id))).await;
            assert_eq!(answer, (StatusCode::OK, expected), "{version}");
            assert_eq!(rows(&by_id).await, Vec::<Value>::new());
        }
    })
    .await;
}
