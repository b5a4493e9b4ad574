//! Concurrent requests.

use data::write::{Verb, WriteError};
use serde_json::json;

use super::cloud::on_clouds;

const AT_ONCE: usize = 8;

#[tokio::test]
async fn puts_of_one_row_at_once_all_succeed_and_make_one() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let puts = (0..AT_ONCE).map(|at| {
            let cloud = cloud.clone();
            tokio::spawn(async move {
                let url = format!("/device_tag(device={device},tag_key='place')");
                cloud
                    .put(&cloud.ann, &url, json!({"value": at.to_string()}))
                    .await
            })
        });
        for done in futures::future::join_all(puts).await {
            assert_eq!(done.unwrap().unwrap(), 1);
        }
        assert_eq!(cloud.count("device_tag").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_condition_holds_for_one_of_those_who_change_it_at_once() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let release = cloud
            .release_with(fleet, "a1", json!({"status": "running"}))
            .await;
        let cancels = (0..AT_ONCE).map(|_| {
            let cloud = cloud.clone();
            tokio::spawn(async move {
                let url = format!("/release({release})?$filter=status eq 'running'");
                cloud
                    .patch(&cloud.ann, &url, json!({"status": "cancelled"}))
                    .await
            })
        });
        let mut changed = 0;
        for done in futures::future::join_all(cancels).await {
            changed += done.unwrap().unwrap();
        }
        assert_eq!(changed, 1);
    })
    .await;
}

#[tokio::test]
async fn those_who_get_in_each_others_way_all_come_through() {
    on_clouds(|cloud| async move {
        // Each changes both fleets and both devices, in another order.
        let (pump, valve) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let (one, two) = (cloud.device(pump).await, cloud.device(valve).await);
        let mut writes = Vec::new();
        for at in 0..AT_ONCE {
            let url = match at % 2 {
                0 => format!("/device?$filter=id in ({one},{two})"),
                _ => format!("/device?$filter=id in ({two},{one})"),
            };
            let to = if at % 3 == 0 { pump } else { valve };
            let cloud = cloud.clone();
            writes.push(tokio::spawn(async move {
                cloud
                    .patch(&cloud.ann, &url, json!({"belongs_to__application": to}))
                    .await
            }));
        }
        for done in futures::future::join_all(writes).await {
            assert_eq!(done.unwrap().unwrap(), 2);
        }
    })
    .await;
}

#[tokio::test]
async fn only_one_of_two_concurrent_requests_gets_a_name() {
    on_clouds(|cloud| async move {
        let organization = cloud.get(&cloud.ann, "/organization?$select=id").await[0]["id"].clone();
        let board = cloud.board("intel-nuc").await;
        let posts = (0..AT_ONCE).map(|_| {
            let cloud = cloud.clone();
            let body = json!({"app_name": "pump", "organization": organization, "is_for__device_type": board});
            tokio::spawn(async move {
                cloud.write(&cloud.ann, Verb::Post, "/application", body).await
            })
        });
        let mut made = 0;
        for done in futures::future::join_all(posts).await {
            match done.unwrap() {
                Ok(_) => made += 1,
                Err(WriteError::Conflict(text)) => assert_eq!(text, "\"slug\" must be unique."),
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(made, 1);
        assert_eq!(cloud.count("application").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_client_that_disconnects_midway_leaves_nothing_locked_or_half_done() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let url = format!("/device({device})");
        // Each is dropped one step later than the previous one.
        for steps in 0..40 {
            let change = cloud.patch(&cloud.ann, &url, json!({"note": steps.to_string()}));
            let mut change = Box::pin(change);
            for _ in 0..steps {
                if futures::poll!(change.as_mut()).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        cloud.set(&url, json!({"note": "last"})).await;
        assert_eq!(cloud.field("device", device, "note").await, "last");
    })
    .await;
}

#[tokio::test]
async fn nobody_is_pinned_on_a_release_that_fails_at_the_same_moment() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        for round in 0..AT_ONCE {
            let body = json!({"start_timestamp": 1, "is_final": false});
            let release = cloud.release_with(fleet, &format!("a{round}"), body).await;
            let of_release = format!("/release({release})");
            let (pinned, failed) = futures::future::join(
                cloud.patch(&cloud.ann, &url, json!({"is_pinned_on__release": release})),
                cloud.patch(&cloud.ann, &of_release, json!({"status": "failed"})),
            )
            .await;
            assert!(pinned.is_ok() != failed.is_ok(), "{pinned:?} {failed:?}");
            cloud
                .set(&url, json!({"is_pinned_on__release": null}))
                .await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_filter_that_takes_long_keeps_nobody_from_writing() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let insert = data::testing::sql(
            "INSERT INTO device_tag (id, created_at, modified_at, device, tag_key, value) \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) \
             SELECT 100000 + i, 0, 0, ?, 'k' || CAST(i AS TEXT), 'x' FROM n",
        );
        let database = &cloud.database;
        database.execute(&insert.with(device)).await.unwrap();
        let mut filter = "value eq 'nothing'".to_owned();
        for level in 0..4 {
            filter = match level {
                0 => format!("device_tag/any(t0:t0/{filter})"),
                _ => format!("device_tag/any(t{level}:t{level}/device/{filter})"),
            };
        }
        let key = cloud.device_key(device).await;
        let slow = tokio::spawn({
            let cloud = cloud.clone();
            async move {
                let url = format!("/device?$filter={filter}");
                cloud.patch(&key, &url, json!({"status": "x"})).await
            }
        });
        // It begins before the first of these ends.
        for _ in 0..10 {
            let mut transaction = database.begin().await.unwrap();
            let touch =
                data::testing::sql("UPDATE device SET modified_at = 1 WHERE id = ?").with(device);
            transaction.execute(&touch).await.unwrap();
            transaction.commit().await.unwrap();
        }
        if database.dialect() == data::Dialect::Sqlite {
            assert!(!slow.is_finished(), "nobody waited for it");
        }
        let done = slow.await.unwrap();
        assert!(matches!(done, Ok(0) | Err(WriteError::Data(_))), "{done:?}");
    })
    .await;
}
