//! Fleets (docs/spec/cloud.md#model-fleet, docs/spec/cloud.md#rules).

use serde_json::json;

use super::cloud::{on_clouds, refused};

#[tokio::test]
async fn names_of_fleets_are_held_to_their_pattern() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let body =
            |name: &str| json!({"app_name": name, "organization": 1, "is_for__device_type": 1});
        for name in ["abc", "a b c", "pümp", &"a".repeat(101)] {
            refused(
                cloud.post(&cloud.ann, "application", body(name)).await,
                "`app_name`",
            );
        }
        let url = format!("/application({fleet})");
        refused(
            cloud
                .patch(&cloud.ann, &url, json!({"app_name": "x"}))
                .await,
            "`app_name`",
        );
    })
    .await;
}

#[tokio::test]
async fn a_slug_follows_the_name_and_the_handle() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("Pump_1").await;
        assert_eq!(
            cloud.field("application", fleet, "slug").await,
            "acme/pump_1"
        );
        cloud
            .set(
                &format!("/application({fleet})"),
                json!({"app_name": "Valve"}),
            )
            .await;
        assert_eq!(
            cloud.field("application", fleet, "slug").await,
            "acme/valve"
        );
        cloud
            .set("/organization(handle='acme')", json!({"handle": "apex"}))
            .await;
        assert_eq!(
            cloud.field("application", fleet, "slug").await,
            "apex/valve"
        );
        refused(
            cloud
                .patch(
                    &cloud.ann,
                    "/organization(handle='apex')",
                    json!({"handle": "A b"}),
                )
                .await,
            "`handle`",
        );
    })
    .await;
}

#[tokio::test]
async fn a_new_fleet_tracks_its_latest_release_even_if_the_request_disables_it() {
    on_clouds(|cloud| async move {
        let organization = cloud.get(&cloud.ann, "/organization?$select=id").await[0]["id"].clone();
        let body = json!({
            "app_name": "pump", "organization": organization,
            "is_for__device_type": cloud.board("intel-nuc").await, "should_track_latest_release": false,
        });
        let fleet = cloud.made(&cloud.ann, "application", body).await;
        assert_eq!(cloud.field("application", fleet, "should_track_latest_release").await, true);
    })
    .await;
}

#[tokio::test]
async fn another_kind_of_board_must_be_of_the_same_architecture() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let url = format!("/application({fleet})");
        let nuc = json!({"is_for__device_type": cloud.board("intel-nuc").await});
        refused(
            cloud.patch(&cloud.ann, &url, nuc).await,
            "same architecture",
        );
        let nano = json!({"is_for__device_type": cloud.board("jetson-nano").await});
        cloud.set(&url, nano).await;
    })
    .await;
}

#[tokio::test]
async fn the_target_follows_the_latest_release_that_is_fit() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let target = || async {
            cloud
                .link("application", fleet, "should_be_running__release")
                .await
        };
        let first = cloud.release(fleet, "a1").await;
        assert_eq!(target().await, first);
        // The latest by its start, not by its number; drafts, failures and untested ones do not
        // count.
        let early = json!({"start_timestamp": 5});
        cloud.release_with(fleet, "a2", early).await;
        assert_eq!(target().await, first);
        let draft = cloud
            .release_with(fleet, "a3", json!({"is_final": false}))
            .await;
        let failed = cloud
            .release_with(fleet, "a4", json!({"status": "failed"}))
            .await;
        let untested = cloud
            .release_with(fleet, "a5", json!({"is_passing_tests": false}))
            .await;
        assert_eq!(target().await, first);
        for (release, body) in [
            (draft, json!({"is_final": true})),
            (failed, json!({"status": "success"})),
            (untested, json!({"is_passing_tests": true})),
        ] {
            cloud.set(&format!("/release({release})"), body).await;
            assert_eq!(target().await, release);
        }
        cloud
            .set(
                &format!("/release({untested})"),
                json!({"is_invalidated": true}),
            )
            .await;
        assert_eq!(target().await, failed);
    })
    .await;
}

#[tokio::test]
async fn a_fleet_that_does_not_track_stays_until_it_tracks_again() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let url = format!("/application({fleet})");
        let first = cloud.release(fleet, "a1").await;
        cloud
            .set(&url, json!({"should_track_latest_release": false}))
            .await;
        let second = cloud.release(fleet, "a2").await;
        let target = || async {
            cloud
                .link("application", fleet, "should_be_running__release")
                .await
        };
        assert_eq!(target().await, first);
        cloud
            .set(&url, json!({"should_track_latest_release": true}))
            .await;
        assert_eq!(target().await, second);
        let back =
            json!({"should_track_latest_release": false, "should_be_running__release": first});
        cloud.set(&url, back).await;
        assert_eq!(target().await, first);
    })
    .await;
}

#[tokio::test]
async fn a_target_is_a_successful_release_of_the_fleet() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let url = format!("/application({fleet})");
        let to = |release: i64| json!({"should_be_running__release": release});
        let failed = cloud
            .release_with(fleet, "a1", json!({"status": "failed"}))
            .await;
        let theirs = cloud.release(other, "a2").await;
        let draft = cloud
            .release_with(fleet, "a3", json!({"is_final": false}))
            .await;
        refused(
            cloud.patch(&cloud.ann, &url, to(failed)).await,
            "not successful",
        );
        refused(
            cloud.patch(&cloud.ann, &url, to(theirs)).await,
            "another fleet",
        );
        cloud.set(&url, to(draft)).await;
        cloud
            .set(&url, json!({"should_be_running__release": null}))
            .await;
    })
    .await;
}
