//! Uploads of release files in parts, in the way the reference's client sends files of more than 5 MiB.

mod at_once;
mod hostile;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, on_both, read};
use crate::release_assets::bytes;
use crate::scene::scene;

const CHUNK: usize = 5 << 20;
const SIZE: usize = 2 * CHUNK + 70_000;

async fn post(by: &ApiCaller<'_>, path: &str, body: &Value) -> (StatusCode, Value) {
    by.send(Method::POST, path, body.clone()).await
}

/// Creates an asset without a file, and returns its address.
async fn asset(by: &ApiCaller<'_>, release: &str, key: &str) -> String {
    let release: i64 = release.parse().expect("a number");
    let row = json!({ "release": release, "asset_key": key, "asset": null });
    let (status, row) = post(by, "/v7/release_asset", &row).await;
    assert_eq!(status, StatusCode::CREATED, "{row}");
    format!("/v7/release_asset({})", row["id"])
}

fn announced(size: usize, chunk: usize) -> Value {
    json!({ "asset": {
        "filename": "../firmware.bin", "content_type": "application/x-firmware", "size": size, "chunk_size": chunk,
    } })
}

async fn begun(by: &ApiCaller<'_>, asset: &str, size: usize) -> Value {
    let (status, begun) = post(by, &format!("{asset}/beginUpload"), &announced(size, CHUNK)).await;
    assert_eq!(status, StatusCode::OK, "{begun}");
    begun["asset"].clone()
}

/// Sends a part to its address, without any credential; returns the status, and the ETag as clients read it.
async fn put(cloud: &Cloud, part: &Value, content: &[u8]) -> (StatusCode, String) {
    let url = part["url"].as_str().expect("an address");
    let path = url.strip_prefix(&cloud.url).expect("at this cloud");
    let request = cloud.ask(Method::PUT, path).body(content.to_vec());
    let answer = request.send().await.expect("an answer");
    let etag = answer.headers().get("etag");
    let etag = etag.map(|etag| etag.to_str().expect("a text").trim_matches('"').to_owned());
    (answer.status(), etag.unwrap_or_default())
}

/// Sends all parts, the last one first; returns the body for `commitUpload`.
async fn all_put(cloud: &Cloud, upload: &Value, content: &[u8]) -> Value {
    let mut parts = Vec::new();
    let list = upload["uploadParts"].as_array().expect("parts");
    for (at, part) in list.iter().enumerate().rev() {
        let end = content.len().min((at + 1) * CHUNK);
        let (status, etag) = put(cloud, part, &content[at * CHUNK..end]).await;
        assert_eq!(status, StatusCode::OK, "{part}");
        parts.push(json!({ "PartNumber": part["partNumber"], "ETag": etag }));
    }
    json!({ "uuid": upload["uuid"], "providerCommitData": { "Parts": parts } })
}

#[tokio::test]
async fn a_file_in_parts_comes_back_whole() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let asset = asset(&ann, &names.filled("<1.2.3>"), "firmware").await;
        let content = bytes(SIZE);
        let upload = begun(&ann, &asset, SIZE).await;
        let parts = upload["uploadParts"].as_array().expect("parts");
        let shape: Vec<_> = parts
            .iter()
            .map(|part| (part["partNumber"].clone(), part["chunkSize"].clone()))
            .collect();
        assert_eq!(
            shape,
            [
                (json!(1), json!(CHUNK)),
                (json!(2), json!(CHUNK)),
                (json!(3), json!(70_000))
            ]
        );
        // A part that is sent again replaces the earlier one.
        let (status, first) = put(&cloud, &parts[1], &vec![7; CHUNK]).await;
        assert_eq!(status, StatusCode::OK);
        let commit = all_put(&cloud, &upload, &content).await;
        assert_ne!(commit["providerCommitData"]["Parts"][1]["ETag"], first);
        let (status, file) = post(&ann, &format!("{asset}/commitUpload"), &commit).await;
        assert_eq!(status, StatusCode::OK, "{file}");
        assert_eq!(file["filename"], "firmware.bin");
        assert_eq!(file["content_type"], "application/x-firmware");
        assert_eq!(file["size"], SIZE);
        let href = file["href"].as_str().expect("an address");
        let path = href.strip_prefix(&cloud.url).expect("at this cloud");
        let answer = cloud
            .ask(Method::GET, path)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(answer.bytes().await.expect("a body") == content);
        let ranged = cloud
            .ask(Method::GET, path)
            .header("range", format!("bytes={}-{}", CHUNK - 1, CHUNK));
        let part = ranged.send().await.expect("an answer");
        assert!(part.bytes().await.expect("a body") == content[CHUNK - 1..=CHUNK]);
        let (status, row) = ann.get(&asset).await;
        assert_eq!((status, &row["d"][0]["asset"]), (StatusCode::OK, &file));
        // The upload has ended: nothing more is accepted.
        let (status, _) = put(&cloud, &parts[0], &content[..CHUNK]).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, _) = post(&ann, &format!("{asset}/commitUpload"), &commit).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn invalid_announcements_and_missing_parts_make_no_file() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let one = asset(&ann, &names.filled("<1.2.3>"), "one").await;
        let two = asset(&ann, &names.filled("<1.2.3>"), "two").await;
        let content = bytes(SIZE);
        for (body, why) in [
            (announced(0, CHUNK), "`size` is 0"),
            (announced(SIZE, CHUNK - 1), "`chunk_size`"),
            (announced(SIZE, CHUNK + 1), "multiple of 262144"),
            (json!({ "file": {} }), "file"),
            (json!({ "asset": { "filename": "a" } }), "content_type"),
        ] {
            let (status, answer) = post(&ann, &format!("{one}/beginUpload"), &body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
            assert!(answer.to_string().contains(why), "{body}: {answer}");
        }
        let (status, _) = post(
            &ann,
            &format!("{one}/beginUpload"),
            &announced(1 << 40, CHUNK),
        )
        .await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        for path in [
            "/v7/release_asset",
            "/v7/device(1)",
            &format!("{one}/release"),
        ] {
            let (status, answer) = post(
                &ann,
                &format!("{path}/beginUpload"),
                &announced(SIZE, CHUNK),
            )
            .await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {answer}");
        }
        let upload = begun(&ann, &one, SIZE).await;
        let part = &upload["uploadParts"][0];
        for wrong in [&content[..CHUNK - 1], &content[..=CHUNK], &[]] {
            let (status, _) = put(&cloud, part, wrong).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{}", wrong.len());
        }
        let at = part["url"].as_str().expect("an address");
        for other in ["0", "4", "99999999999999999999", "x"] {
            let url = format!("{}{other}", at.strip_suffix('1').expect("the first"));
            let (status, _) = put(&cloud, &json!({ "url": url }), b"x").await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{other}");
        }
        let mut commit = all_put(&cloud, &upload, &content).await;
        let whole = commit.clone();
        let parts = commit["providerCommitData"]["Parts"].as_array_mut();
        parts.expect("parts")[0]["ETag"] = json!("0".repeat(64));
        let (status, answer) = post(&ann, &format!("{one}/commitUpload"), &commit).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(answer.to_string().contains("part 3"), "{answer}");
        let (status, _) = post(&ann, &format!("{two}/commitUpload"), &whole).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "it is another asset's");
        // A part that is being sent again does not exist until it is complete.
        let (status, _) = put(&cloud, part, &content[..CHUNK - 1]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let (status, _) = post(&ann, &format!("{one}/commitUpload"), &whole).await;
        assert_eq!(
            status,
            StatusCode::OK,
            "what was refused at once changed nothing"
        );
        // Of two uploads, the later one continues.
        let first = begun(&ann, &two, SIZE).await;
        let second = begun(&ann, &two, SIZE).await;
        let (status, _) = put(&cloud, &first["uploadParts"][2], &content[2 * CHUNK..]).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, etag) = put(&cloud, &second["uploadParts"][2], &content[2 * CHUNK..]).await;
        assert_eq!(status, StatusCode::OK);
        let parts = json!([{ "PartNumber": 3, "ETag": etag }]);
        let half = json!({ "uuid": second["uuid"], "providerCommitData": { "Parts": parts } });
        let (status, answer) = post(&ann, &format!("{two}/commitUpload"), &half).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(
            answer.to_string().contains("part 1 did not come"),
            "{answer}"
        );
        let cancel = json!({ "uuid": second["uuid"] });
        let (status, _) = post(&ann, &format!("{two}/cancelUpload"), &cancel).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let (status, _) = put(&cloud, &second["uploadParts"][0], &content[..CHUNK]).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (_, row) = ann.get(&two).await;
        assert_eq!(row["d"][0]["asset"], Value::Null);
    })
    .await;
}

#[tokio::test]
async fn only_those_who_may_change_an_asset_upload_it_and_within_the_quota() {
    data::testing::on_fresh(async |url| {
        let settings = format!("[quotas]\nrelease_asset_bytes = {}", SIZE + CHUNK);
        let cloud = Cloud::start_with(&url, &settings).await;
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let release = names.filled("<1.2.3>");
        let one = asset(&ann, &release, "one").await;
        let two = asset(&ann, &release, "two").await;
        let upload = begun(&ann, &one, SIZE).await;
        let cancel = json!({ "uuid": upload["uuid"] });
        for who in ["bob", "calm"] {
            let other = names.by(&cloud, who);
            for (action, body) in [
                ("beginUpload", announced(SIZE, CHUNK)),
                ("cancelUpload", cancel.clone()),
            ] {
                let (status, answer) = post(&other, &format!("{one}/{action}"), &body).await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{who} {action}: {answer}");
            }
        }
        let guest = cloud.ask(Method::POST, &format!("{one}/beginUpload"));
        let (status, _) = read(
            guest
                .json(&announced(SIZE, CHUNK))
                .send()
                .await
                .expect("an answer"),
        )
        .await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        // An upload counts from its beginning, before any of it arrives.
        let (status, answer) = post(
            &ann,
            &format!("{two}/beginUpload"),
            &announced(CHUNK + 1, CHUNK),
        )
        .await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(
            answer.to_string().contains("`release_asset_bytes`"),
            "{answer}"
        );
        begun(&ann, &two, CHUNK).await;
        let content = bytes(SIZE);
        let commit = all_put(&cloud, &upload, &content).await;
        let (status, answer) = post(&ann, &format!("{one}/commitUpload"), &commit).await;
        assert_eq!(status, StatusCode::OK, "counted once: {answer}");
    })
    .await;
}
