//! Files attached to releases (docs/spec/cloud.md#model-release-asset): uploaded as forms, stored in the database, and
//! downloaded completely or in ranges by anybody who may read the row, or has the address in it.

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, on_both, read};
use crate::scene::scene;

const BOUNDARY: &str = "----part-of-a-form";

/// Creates a form like clients: texts, and the file last or first.
fn form(texts: &[(&str, &str)], file: Option<(&str, &str, &[u8])>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, text) in texts {
        let head =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend(head.bytes().chain(text.bytes()).chain(*b"\r\n"));
    }
    if let Some((filename, kind, bytes)) = file {
        let head = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"asset\"; filename=\"{filename}\"\r\n\
             Content-Type: {kind}\r\n\r\n"
        );
        body.extend(head.bytes());
        body.extend(bytes);
        body.extend(*b"\r\n");
    }
    body.extend(format!("--{BOUNDARY}--\r\n").bytes());
    body
}

fn with_form(request: RequestBuilder, form: Vec<u8>) -> RequestBuilder {
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    request.header("content-type", kind).body(form)
}

/// Returns varying bytes, so that a misplaced piece would be detected.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from(at.wrapping_mul(2_654_435_761) >> 7 & 0xff).expect("a byte"))
        .collect()
}

async fn sent(request: RequestBuilder) -> Response {
    request.send().await.expect("an answer")
}

/// Uploads a file for a release, and returns the row.
async fn uploaded(by: &ApiCaller<'_>, release: &str, key: &str, content: &[u8]) -> Value {
    let texts = [("release", release), ("asset_key", key)];
    let file = ("firmware.bin", "application/octet-stream", content);
    let request = by.ask(Method::POST, "/v7/release_asset");
    let (status, row) = by
        .answer(with_form(request, form(&texts, Some(file))))
        .await;
    assert_eq!(status, StatusCode::CREATED, "{row}");
    row
}

/// Returns the path of a file's address in a row.
fn href(cloud: &Cloud, row: &Value) -> String {
    let href = row["asset"]["href"].as_str().expect("an address");
    href.strip_prefix(&cloud.url)
        .expect("at this cloud")
        .to_owned()
}

#[tokio::test]
async fn a_file_that_was_uploaded_comes_back_whole_and_in_ranges() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let release = names.filled("<1.2.3>");
        // Three pieces in the database, the last of them incomplete.
        let content = bytes(600_000);
        let row = uploaded(&ann, &release, "firmware", &content).await;
        let asset = &row["asset"];
        assert_eq!(asset["filename"], "firmware.bin");
        assert_eq!(asset["content_type"], "application/octet-stream");
        assert_eq!(
            asset["content_disposition"],
            "attachment; filename=\"firmware.bin\""
        );
        assert_eq!(asset["size"], 600_000);
        let at = href(&cloud, &row);
        let answer = sent(ann.ask(Method::GET, &at)).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let headers = answer.headers().clone();
        assert_eq!(headers["content-length"], "600000");
        assert_eq!(headers["accept-ranges"], "bytes");
        assert_eq!(
            headers["content-disposition"],
            "attachment; filename=\"firmware.bin\""
        );
        // An uploaded file is not treated as a page of this cloud.
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["content-security-policy"], "sandbox");
        assert!(answer.bytes().await.expect("a body") == content);
        for (range, expected) in [
            ("bytes=0-0", 0..1),
            ("bytes=262143-262144", 262_143..262_145),
            ("bytes=599990-", 599_990..600_000),
            ("bytes=-7", 599_993..600_000),
        ] {
            let part = sent(ann.ask(Method::GET, &at).header("range", range)).await;
            assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT, "{range}");
            let place = format!("bytes {}-{}/600000", expected.start, expected.end - 1);
            assert_eq!(part.headers()["content-range"], place.as_str());
            assert!(
                part.bytes().await.expect("a body") == content[expected],
                "{range}"
            );
        }
        let beyond = sent(ann.ask(Method::GET, &at).header("range", "bytes=600000-")).await;
        assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(beyond.headers()["content-range"], "bytes */600000");
        let known = ann
            .ask(Method::GET, &at)
            .header("if-none-match", &headers["etag"]);
        assert_eq!(sent(known).await.status(), StatusCode::NOT_MODIFIED);
        let head = sent(ann.ask(Method::HEAD, &at)).await;
        assert_eq!(head.headers()["content-length"], "600000");
        // Any key of the row leads to it, as does an expansion of the release.
        let found = ann
            .rows(&format!(
                "/v7/release({release})?$select=id&$expand=release_asset($select=asset)"
            ))
            .await;
        assert_eq!(found[0]["release_asset"][0]["asset"], *asset);
        let empty = uploaded(&ann, &release, "empty", b"").await;
        let answer = sent(ann.ask(Method::GET, &href(&cloud, &empty))).await;
        assert_eq!(answer.headers()["content-length"], "0");
        assert!(answer.bytes().await.expect("a body").is_empty());
    })
    .await;
}

#[tokio::test]
async fn another_file_takes_the_place_of_the_first_and_what_is_deleted_is_gone() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let release = names.filled("<1.2.3>");
        let first = uploaded(&ann, &release, "notes", b"one").await;
        let row = format!("/v7/release_asset({})", first["id"]);
        let key = format!("/v7/release_asset(release={release},asset_key='notes')");
        let other = form(
            &[],
            Some(("notes.txt", "text/plain; charset=utf-8", b"two")),
        );
        let (status, body) = ann
            .answer(with_form(ann.ask(Method::PATCH, &row), other))
            .await;
        assert_eq!((status, body), (StatusCode::OK, Value::Null));
        let second = ann.rows(&key).await[0].clone();
        assert_eq!(second["asset"]["filename"], "notes.txt");
        assert_eq!(second["asset"]["content_type"], "text/plain; charset=utf-8");
        assert_ne!(href(&cloud, &first), href(&cloud, &second));
        let gone = sent(ann.ask(Method::GET, &href(&cloud, &first))).await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
        let (status, _) = ann
            .send(Method::PATCH, &row, json!({ "asset_key": "changes" }))
            .await;
        assert_eq!(status, StatusCode::OK);
        let there = sent(ann.ask(Method::GET, &href(&cloud, &second))).await;
        assert_eq!(there.bytes().await.expect("a body"), "two");
        // Null removes a file, and the row may have none.
        let (status, _) = ann
            .send(Method::PATCH, &row, json!({ "asset": null }))
            .await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(ann.rows(&row).await[0]["asset"], Value::Null);
        let gone = sent(ann.ask(Method::GET, &href(&cloud, &second))).await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
        let bare = json!({ "release": release, "asset_key": "bare" });
        assert!(ann.create("release_asset", bare).await > 0);
        // Deleting a release deletes its file.
        let draft = names.filled("<draft>");
        let third = uploaded(&ann, &draft, "notes", b"three").await;
        let (status, why) = ann
            .answer(ann.ask(Method::DELETE, &format!("/v7/release({draft})")))
            .await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let gone = sent(ann.ask(Method::GET, &href(&cloud, &third))).await;
        assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    })
    .await;
}

#[tokio::test]
async fn a_file_is_for_those_who_may_read_its_release() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let bob = names.by(&cloud, "bob");
        let hidden = uploaded(&ann, &names.filled("<1.2.3>"), "notes", b"mine").await;
        let public = uploaded(&ann, &names.filled("<16.0.0>"), "notes", b"everybody's").await;
        let at = href(&cloud, &hidden);
        // Clients send no credential to the address in the row; anybody who may read the row has the complete address.
        let by_address = sent(cloud.ask(Method::GET, &at)).await;
        assert_eq!(by_address.status(), StatusCode::OK);
        assert_eq!(by_address.bytes().await.expect("a body"), "mine");
        let (bare, key) = at.split_once("?key=").expect("a key");
        let other_key = href(&cloud, &public);
        let other_key = other_key.split_once("?key=").expect("a key").1;
        assert_ne!(key, other_key);
        for guessed in [
            bare.to_owned(),
            format!("{bare}?key="),
            format!("{bare}?key={other_key}"),
        ] {
            for request in [
                bob.ask(Method::GET, &guessed),
                cloud.ask(Method::GET, &guessed),
            ] {
                let status = sent(request).await.status();
                assert_eq!(status, StatusCode::NOT_FOUND, "{guessed}");
            }
        }
        let with_token =
            sent(cloud.ask(Method::GET, &format!("{bare}?apikey={}", ann.token))).await;
        assert_eq!(with_token.bytes().await.expect("a body"), "mine");
        let open = sent(cloud.ask(Method::GET, &href(&cloud, &public))).await;
        assert_eq!(open.bytes().await.expect("a body"), "everybody's");
        // Nor can anybody else upload, for a release of others or without a credential.
        let texts = [
            ("release", names.filled("<1.2.3>")),
            ("asset_key", "x".to_owned()),
        ];
        let texts = texts.each_ref().map(|(name, text)| (*name, text.as_str()));
        let upload = || form(&texts, Some(("x", "text/plain", b"x")));
        let refused = bob.ask(Method::POST, "/v7/release_asset");
        let refused = sent(with_form(refused, upload())).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        let refused = cloud.ask(Method::POST, "/v7/release_asset");
        let refused = sent(with_form(refused, upload())).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        let changed = bob.ask(
            Method::PATCH,
            &format!("/v7/release_asset({})", hidden["id"]),
        );
        sent(with_form(
            changed,
            form(&[], Some(("x", "text/plain", b"x"))),
        ))
        .await;
        let same = sent(ann.ask(Method::GET, &at)).await;
        assert_eq!(same.bytes().await.expect("a body"), "mine");
    })
    .await;
}

#[tokio::test]
async fn a_form_that_is_none_and_a_file_that_is_too_large_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("limits.sqlite").display());
    let cloud = Cloud::start_with(&database, "[limits]\nrelease_asset = 300_000\n").await;
    let names = scene(&cloud).await;
    let ann = names.by(&cloud, "ann");
    let release = names.filled("<1.2.3>");
    let texts = [("release", release.as_str()), ("asset_key", "large")];
    let post = |body: Vec<u8>| with_form(ann.ask(Method::POST, "/v7/release_asset"), body);
    let large = bytes(300_001);
    let file = Some(("large.bin", "application/octet-stream", large.as_slice()));
    let (status, why) = read(sent(post(form(&texts, file))).await).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{why}");
    // If the size is announced, nothing is read.
    let huge = bytes(700_000);
    let file = Some(("huge.bin", "application/octet-stream", huge.as_slice()));
    let (status, _) = read(sent(post(form(&texts, file))).await).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    for (body, expected) in [
        (b"no form".to_vec(), "the form cannot be read"),
        (
            form(&texts, Some(("a", "text/plain", b"a")))[..200].to_vec(),
            "the form cannot be read",
        ),
        (
            form(&[("release", &release)], None),
            "`asset_key` is required",
        ),
        (
            form(&[("asset", "a"), ("asset", "b")], None),
            "the form contains `asset` twice",
        ),
    ] {
        let (status, why) = read(sent(post(body)).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
        assert!(why.to_string().contains(expected), "{why}");
    }
    let json = json!({ "release": release, "asset_key": "x", "asset": { "href": "/x" } });
    let (status, why) = ann.send(Method::POST, "/v7/release_asset", json).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(why.to_string().contains("multipart/form-data"), "{why}");
    let other = with_form(ann.ask(Method::POST, "/v7/device_tag"), form(&texts, None));
    assert_eq!(
        sent(other).await.status(),
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    // Nothing that was refused is stored.
    let kept = data::Database::open(&database, &data::Options::default()).await;
    let rows = kept
        .expect("the database")
        .rows(&data::testing::sql("SELECT id FROM release_asset_file"))
        .await;
    assert_eq!(rows.expect("rows").len(), 0);
    let twice = form(&texts, Some(("a", "text/plain", b"a")));
    assert_eq!(
        sent(post(twice.clone())).await.status(),
        StatusCode::CREATED
    );
    let (status, why) = read(sent(post(twice)).await).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(why.to_string().contains("must be unique"), "{why}");
}
