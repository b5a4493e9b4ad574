//! Simultaneous requests.

use std::collections::BTreeSet;

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::on_both;

#[tokio::test]
async fn drafts_that_are_finalised_at_once_get_a_revision_each() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let mut drafts = Vec::new();
        for number in 0..8 {
            let body = json!({
                "belongs_to__application": fleet, "commit": format!("c{number}"), "composition": {},
                "status": "success", "source": "cloud", "semver": "1.2.3", "is_final": false,
                "start_timestamp": 1_767_323_045_678_i64 + number,
            });
            drafts.push(ann.create("release", body).await);
        }
        let finalised = drafts.iter().map(|draft| {
            let path = format!("/v7/release({draft})");
            let ann = &ann;
            async move {
                ann.send(Method::PATCH, &path, json!({ "is_final": true }))
                    .await
            }
        });
        for (status, why) in join_all(finalised).await {
            assert_eq!((status, why), (StatusCode::OK, Value::Null));
        }
        let rows = ann.rows("/v7/release?$select=revision").await;
        let revisions: BTreeSet<i64> = rows
            .iter()
            .filter_map(|row| row["revision"].as_i64())
            .collect();
        assert_eq!(revisions, (0..8).collect());
        // The one that was created last, whichever was finalized last.
        let path = format!("/v7/application({fleet})?$select=should_be_running__release");
        let target = &ann.rows(&path).await[0]["should_be_running__release"]["__id"];
        assert_eq!(target.as_i64(), drafts.last().copied());
    })
    .await;
}

#[tokio::test]
async fn of_rows_created_at_once_one_is_stored_and_the_others_get_a_conflict() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let made = (0..6).map(|number| {
            let body =
                json!({ "application": fleet, "tag_key": "place", "value": number.to_string() });
            let ann = &ann;
            async move { ann.send(Method::POST, "/v7/application_tag", body).await }
        });
        let answers = join_all(made).await;
        let made = answers.iter().filter(|it| it.0 == StatusCode::CREATED);
        assert_eq!(made.count(), 1, "{answers:?}");
        for (status, why) in answers.iter().filter(|it| it.0 != StatusCode::CREATED) {
            assert_eq!(*status, StatusCode::CONFLICT, "{why}");
            assert!(why.as_str().expect("text").contains("unique"), "{why}");
        }
    })
    .await;
}
