//! Commits of uploads that nobody would send.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{CHUNK, SIZE, all_put, asset, begun, post, put};
use crate::harness::{on_both, read};
use crate::release_assets::bytes;
use crate::scene::scene;

fn naming(uuid: &Value, parts: Vec<Value>) -> Value {
    json!({ "uuid": uuid, "providerCommitData": { "Parts": parts } })
}

#[tokio::test]
async fn commits_of_what_did_not_come_are_refused_and_change_nothing() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let bob = names.by(&cloud, "bob");
        let asset_of_ann = asset(&ann, &names.filled("<1.2.3>"), "firmware").await;
        let release = serde_json::from_str(&names.filled(
            "{\"belongs_to__application\": <secret>, \"commit\": \"b0b0000000000000000000000000000f\", \
             \"status\": \"success\", \"source\": \"cloud\", \"composition\": {}, \
             \"start_timestamp\": \"2026-01-02T03:04:05.678Z\"}",
        ));
        let release = bob.create("release", release.expect("JSON")).await;
        let asset_of_bob = asset(&bob, &release.to_string(), "firmware").await;
        let content = bytes(SIZE);
        let upload = begun(&ann, &asset_of_ann, SIZE).await;
        let right = all_put(&cloud, &upload, &content).await;
        let uuid = &upload["uuid"];
        let parts = right["providerCommitData"]["Parts"].as_array();
        let parts = parts.expect("parts").clone();
        let changed = |at: usize, name: &str, value: Value| {
            let mut parts = parts.clone();
            parts[at][name] = value;
            parts
        };
        let with = |more: Value| [parts.clone(), vec![more]].concat();
        let many = (1..=5_000).map(|number| json!({ "PartNumber": number, "ETag": "0" }));
        let too_many = [parts.clone(), many.clone().collect()].concat();
        let path = format!("{asset_of_ann}/commitUpload");
        for (name, wrong) in [
            ("none", vec![]),
            ("one is missing", parts[1..].to_vec()),
            ("one twice", with(parts[0].clone())),
            ("one twice, in place of another", vec![parts[0].clone(), parts[0].clone(), parts[2].clone()]),
            ("one that is not there", with(json!({ "PartNumber": 4, "ETag": parts[0]["ETag"] }))),
            ("the part 0", with(json!({ "PartNumber": 0, "ETag": "0" }))),
            ("the largest number", with(json!({ "PartNumber": u64::MAX, "ETag": "0" }))),
            ("an ETag of nothing", changed(1, "ETag", json!(""))),
            ("the ETag of another part", changed(1, "ETag", parts[0]["ETag"].clone())),
            ("no ETag", changed(1, "ETag", Value::Null)),
            ("a number that is a text", changed(0, "PartNumber", json!("3"))),
            ("a number below 0", changed(0, "PartNumber", json!(-3))),
            ("a broken number", changed(0, "PartNumber", json!(2.5))),
            ("a number too large", changed(0, "PartNumber", json!(1e30))),
            ("thousands", many.collect()),
            ("thousands behind the right ones", too_many),
        ] {
            let (status, answer) = post(&ann, &path, &naming(uuid, wrong)).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{name}: {answer}");
        }
        for (name, body) in [
            ("nothing", json!({})),
            ("a list", json!([])),
            ("no uuid", json!({ "providerCommitData": { "Parts": parts } })),
            ("a number as uuid", naming(&json!(7), parts.clone())),
            ("no parts", json!({ "uuid": uuid })),
            ("parts as an object", json!({ "uuid": uuid, "providerCommitData": { "Parts": {} } })),
            ("parts as texts", naming(uuid, vec![json!("1"), json!("2"), json!("3")])),
        ] {
            let (status, answer) = post(&ann, &path, &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{name}: {answer}");
        }
        for wrong in ["", "x", "%", "'; DROP TABLE release_asset_upload; --", "\u{0}"] {
            let (status, answer) = post(&ann, &path, &naming(&json!(wrong), parts.clone())).await;
            assert!(status.is_client_error(), "{wrong:?}: {status} {answer}");
        }

        // The uuid is not a credential: no part of another tenant's upload is accepted, neither for their asset nor for
        // one's own.
        for (who, path, expected) in [
            (&bob, format!("{asset_of_bob}/commitUpload"), StatusCode::NOT_FOUND),
            (&bob, path.clone(), StatusCode::UNAUTHORIZED),
            (&bob, format!("{asset_of_bob}/cancelUpload"), StatusCode::NOT_FOUND),
            (&bob, format!("{asset_of_ann}/cancelUpload"), StatusCode::UNAUTHORIZED),
        ] {
            let (status, answer) = post(who, &path, &right).await;
            assert_eq!(status, expected, "{path}: {answer}");
        }
        let guest = cloud.ask(Method::POST, &path).json(&right).send().await;
        let (status, answer) = read(guest.expect("an answer")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer}");
        for asset in [(&ann, &asset_of_ann), (&bob, &asset_of_bob)] {
            let (_, row) = asset.0.get(asset.1).await;
            assert_eq!(row["d"][0]["asset"], Value::Null);
        }

        // A part of the wrong size is invalid, whatever was sent before.
        let first = &upload["uploadParts"][0];
        for wrong in [&content[..1], &content[..CHUNK - 1], &content[..=CHUNK]] {
            let (status, _) = put(&cloud, first, wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{}", wrong.len());
        }

        // After all this, the correct commit is accepted, with the parts in any order.
        let sorted: Vec<_> = parts.iter().rev().cloned().collect();
        assert_ne!(parts, sorted, "the last came first");
        let shuffled = vec![sorted[1].clone(), sorted[0].clone(), sorted[2].clone()];
        let (status, file) = post(&ann, &path, &naming(uuid, shuffled)).await;
        assert_eq!(status, StatusCode::OK, "{file}");
        let href = file["href"].as_str().expect("an address");
        let path = href.strip_prefix(&cloud.url).expect("at this cloud");
        let answer = cloud.ask(Method::GET, path).send().await;
        let answer = answer.expect("an answer").bytes().await;
        assert!(answer.expect("a body") == content);
    })
    .await;
}
