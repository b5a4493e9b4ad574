//! Release assets uploaded in parts.

use data::file::File;
use data::upload::{Announcement, PartWriter, Upload};
use data::write::{Verb, Write, WriteError, WriteOutcome, write};
use resources::Method;
use serde_json::{Map, Value, json};

use super::cloud::{Cloud, on_clouds};

/// Sends a part of two bytes with a digest.
async fn sent(cloud: &Cloud, upload: &Upload, bytes: &[u8], etag: &str) {
    let mut part = begun(cloud, upload).await;
    let database = &cloud.database;
    let added = database.add_part_piece(&mut part, bytes).await;
    assert!(added.expect("an answer"));
    let ended = database.end_part(part, etag).await;
    assert!(ended.expect("an answer"));
}

async fn begun(cloud: &Cloud, upload: &Upload) -> PartWriter {
    let part = cloud.database.begin_part(upload, 1).await;
    part.expect("an answer").expect("the part is there")
}

/// Commits an upload as `commitUpload` does, with the parts that it saw.
async fn committed(cloud: &Cloud, upload: &Upload, etag: &str) -> Result<WriteOutcome, WriteError> {
    let file = File {
        id: upload.file,
        filename: Some(upload.announced.filename.clone()),
        content_type: upload.announced.content_type.clone(),
        content_disposition: "attachment".to_owned(),
        size: upload.announced.size,
        parts: Some([(1, etag.to_owned())].into()),
    };
    let path = format!("/release_asset({})", upload.asset);
    let request = odata::parse(&path, None).expect("a request");
    let change = Write {
        version: resources::Version::V7,
        verb: Verb::Patch,
        request: &request,
        body: &Map::from_iter([("asset".to_owned(), json!({}))]),
        file: Some(&file),
    };
    let setting = cloud.setting(&cloud.ann, cloud.later());
    write(&cloud.database, &cloud.environment, setting, change).await
}

#[tokio::test]
async fn a_commit_is_refused_if_a_part_is_sent_again_after_the_commit_checked_it() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let release = cloud.release(fleet, "aa").await;
        let body = json!({"release": release, "asset_key": "firmware"});
        let asset = cloud.made(&cloud.ann, "release_asset", body).await;
        let setting = cloud.setting(&cloud.ann, cloud.later());
        let right = cloud
            .database
            .right(&setting, "release_asset", asset, Method::Update)
            .await;
        let right = right.unwrap().expect("the right");
        let announced = Announcement {
            filename: "a".to_owned(),
            content_type: "text/plain".to_owned(),
            size: 2,
            chunk_size: 2,
        };
        let quotas = &cloud.environment.quotas;
        let upload = cloud
            .database
            .begin_upload(quotas, &right, announced, cloud.later());
        let upload = upload.await.unwrap();
        let refused = async |etag: &str| {
            let answer = committed(&cloud, &upload, etag).await;
            assert!(matches!(answer, Err(WriteError::Conflict(_))), "{answer:?}");
            assert_eq!(
                cloud.field("release_asset", asset, "asset").await,
                Value::Null
            );
        };
        sent(&cloud, &upload, b"ab", "first").await;
        // It is being sent again, and then with other content.
        let _part = begun(&cloud, &upload).await;
        refused("first").await;
        sent(&cloud, &upload, b"cd", "second").await;
        refused("first").await;
        // The upload is unchanged; once it is committed, none of its parts can be sent.
        let whole = cloud.database.whole_parts(&upload).await.unwrap();
        assert_eq!(whole, [(1, "second".to_owned())].into());
        committed(&cloud, &upload, "second").await.unwrap();
        assert!(
            cloud
                .database
                .begin_part(&upload, 1)
                .await
                .unwrap()
                .is_none()
        );
        refused_again(&cloud, &upload).await;
    })
    .await;
}

async fn refused_again(cloud: &Cloud, upload: &Upload) {
    let answer = committed(cloud, upload, "second").await;
    assert!(matches!(answer, Err(WriteError::Conflict(_))), "{answer:?}");
    let asset = cloud.field("release_asset", upload.asset, "asset").await;
    assert_eq!(asset["size"], 2);
}
