//! Parts that several clients send at the same time, and commits and cancellations during a part.

use data::testing::text;
use data::{Database, Options};
use futures::StreamExt as _;
use futures::channel::mpsc::{self, UnboundedSender};
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{announced, asset, post, put};
use crate::harness::{ApiCaller, Cloud, on_both};
use crate::release_assets::bytes;
use crate::scene::scene;
use crate::shop::until;

/// Three pieces in the database.
const SIZE: usize = 600_000;
/// More than one piece, and less than two.
const BEGIN: usize = 300_000;

/// The content of the cloud's database.
struct CloudDatabase(Database);

impl CloudDatabase {
    async fn open(cloud: &Cloud) -> Self {
        let options = Options::default().with_connections(2);
        let database = Database::open(&cloud.database, &options).await;
        CloudDatabase(database.expect("the database"))
    }

    async fn number(&self, select: &'static str) -> i64 {
        let row = self.0.row(&text(select)).await.expect("an answer");
        let number = row.map(|row| row.number(0).expect("a number"));
        number.flatten().unwrap_or_default()
    }

    async fn pieces(&self) -> i64 {
        self.number("SELECT count(*) FROM release_asset_piece")
            .await
    }

    async fn files(&self) -> i64 {
        self.number("SELECT count(*) FROM release_asset_file").await
    }

    async fn attempt(&self) -> i64 {
        self.number("SELECT max(attempt) FROM release_asset_part")
            .await
    }
}

/// A part whose beginning has been sent, but not the rest.
struct PartialUpload {
    rest: UnboundedSender<Vec<u8>>,
    left: Vec<u8>,
    answer: JoinHandle<reqwest::Result<reqwest::Response>>,
}

impl PartialUpload {
    /// Returns once the cloud has stored the first piece of it, as this attempt.
    async fn begun(
        cloud: &Cloud,
        kept: &CloudDatabase,
        part: &Value,
        content: &[u8],
        attempt: i64,
    ) -> Self {
        let (rest, body) = mpsc::unbounded::<Vec<u8>>();
        let url = part["url"].as_str().expect("an address");
        let path = url.strip_prefix(&cloud.url).expect("at this cloud");
        let request = cloud
            .ask(Method::PUT, path)
            .header("content-length", content.len())
            .body(Body::wrap_stream(body.map(Ok::<_, std::io::Error>)));
        let (begin, left) = content.split_at(BEGIN);
        rest.unbounded_send(begin.to_vec()).expect("a reader");
        let answer = tokio::spawn(request.send());
        until("the first piece is kept", || async {
            kept.attempt().await == attempt && kept.pieces().await == 1
        })
        .await;
        PartialUpload {
            rest,
            left: left.to_vec(),
            answer,
        }
    }

    async fn ended(self) -> (StatusCode, String) {
        self.rest.unbounded_send(self.left).expect("a reader");
        drop(self.rest);
        let answer = self.answer.await.expect("the task").expect("an answer");
        let etag = answer.headers().get("etag");
        let etag = etag.map(|etag| etag.to_str().expect("a text").trim_matches('"').to_owned());
        (answer.status(), etag.unwrap_or_default())
    }
}

/// Begins an upload of one part.
async fn begun(by: &ApiCaller<'_>, asset: &str) -> (Value, Value) {
    let path = format!("{asset}/beginUpload");
    let (status, upload) = post(by, &path, &announced(SIZE, SIZE)).await;
    assert_eq!(status, StatusCode::OK, "{upload}");
    let part = upload["asset"]["uploadParts"][0].clone();
    (upload["asset"]["uuid"].clone(), part)
}

fn commit(uuid: &Value, etag: &str) -> Value {
    json!({ "uuid": uuid, "providerCommitData": { "Parts": [{ "PartNumber": 1, "ETag": etag }] } })
}

/// Downloads the content from the address in the answer to a commit.
async fn content_of(cloud: &Cloud, file: &Value) -> Vec<u8> {
    let href = file["href"].as_str().expect("an address");
    let path = href.strip_prefix(&cloud.url).expect("at this cloud");
    let answer = cloud.ask(Method::GET, path).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    answer.bytes().await.expect("a body").to_vec()
}

fn other_bytes(by: u8) -> Vec<u8> {
    bytes(SIZE).iter().map(|byte| byte ^ by).collect()
}

#[tokio::test]
async fn of_concurrent_uploads_of_one_part_the_last_to_begin_wins() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let asset = asset(&ann, &names.filled("<1.2.3>"), "firmware").await;
        let kept = CloudDatabase::open(&cloud).await;
        let (uuid, part) = begun(&ann, &asset).await;
        let [one, two, three] = [1, 2, 3].map(other_bytes);
        let path = format!("{asset}/commitUpload");

        let first = PartialUpload::begun(&cloud, &kept, &part, &one, 1).await;
        let second = PartialUpload::begun(&cloud, &kept, &part, &two, 2).await;
        let (status, _) = first.ended().await;
        assert_eq!(status, StatusCode::CONFLICT, "another began after it");
        assert_eq!(kept.pieces().await, 1, "what the second has sent");
        let (status, of_two) = second.ended().await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(kept.pieces().await, 3);

        // A part that is sent again does not exist until it is complete, and the older ETag does not match it.
        let third = PartialUpload::begun(&cloud, &kept, &part, &three, 3).await;
        let (status, answer) = post(&ann, &path, &commit(&uuid, &of_two)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        assert!(
            answer.to_string().contains("part 1 did not come"),
            "{answer}"
        );
        let (status, of_three) = third.ended().await;
        assert_eq!(status, StatusCode::OK);
        let (status, answer) = post(&ann, &path, &commit(&uuid, &of_two)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        let (status, answer) = post(&ann, &path, &commit(&uuid, &of_three)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert!(content_of(&cloud, &answer).await == three);
        kept.0.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_upload_leaves_nothing_of_a_part_that_was_coming() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let asset = asset(&ann, &names.filled("<1.2.3>"), "firmware").await;
        let kept = CloudDatabase::open(&cloud).await;
        let before = kept.files().await;
        let (uuid, part) = begun(&ann, &asset).await;
        let sending = PartialUpload::begun(&cloud, &kept, &part, &other_bytes(1), 1).await;
        let cancel = json!({ "uuid": uuid });
        let (status, _) = post(&ann, &format!("{asset}/cancelUpload"), &cancel).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        let (status, _) = sending.ended().await;
        assert_eq!(status, StatusCode::CONFLICT);
        let (status, _) = put(&cloud, &part, &other_bytes(1)).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!((kept.pieces().await, kept.files().await), (0, before));
        let (status, _) = post(&ann, &format!("{asset}/cancelUpload"), &cancel).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        kept.0.close().await;
    })
    .await;
}

#[tokio::test]
async fn of_two_commits_at_once_one_takes_the_file() {
    on_both(async |cloud| {
        let names = scene(&cloud).await;
        let ann = names.by(&cloud, "ann");
        let asset = asset(&ann, &names.filled("<1.2.3>"), "firmware").await;
        let kept = CloudDatabase::open(&cloud).await;
        let before = kept.files().await;
        let path = format!("{asset}/commitUpload");
        for round in 1..=5 {
            let content = other_bytes(round);
            let (uuid, part) = begun(&ann, &asset).await;
            let (status, etag) = put(&cloud, &part, &content).await;
            assert_eq!(status, StatusCode::OK);
            let commit = commit(&uuid, &etag);
            let (one, two) = tokio::join!(post(&ann, &path, &commit), post(&ann, &path, &commit));
            let answers = [one, two];
            let (successes, refused): (Vec<_>, Vec<_>) = answers
                .iter()
                .partition(|(status, _)| *status == StatusCode::OK);
            assert_eq!(successes.len(), 1, "{answers:?}");
            assert!(refused[0].0.is_client_error(), "{answers:?}");
            assert!(content_of(&cloud, &successes[0].1).await == content);
            assert_eq!((kept.pieces().await, kept.files().await), (3, before + 1));
        }
        kept.0.close().await;
    })
    .await;
}
