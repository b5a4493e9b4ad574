//! Releases (docs/spec/cloud.md#rule-finalize, docs/spec/cloud.md#rule-releases).

use data::SystemPurpose;
use data::write::WriteError;
use serde_json::json;

use super::cloud::{on_clouds, refused, with};

#[tokio::test]
async fn final_releases_are_numbered_within_their_version() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        for (commit, semver, variant, expected) in [
            ("a1", "1.0.0", "", 0),
            ("a2", "1.0.0", "", 1),
            ("a3", "1.0.0", "prod", 0),
            ("a4", "1.0.0-beta", "", 0),
            ("a5", "1.0.1", "", 0),
            ("a6", "1.0.0+linux", "", 2),
        ] {
            let more = json!({"semver": semver, "variant": variant});
            let release = cloud.release_with(fleet, commit, more).await;
            assert_eq!(
                cloud.field("release", release, "revision").await,
                expected,
                "{commit}"
            );
            assert_eq!(cloud.field("release", release, "semver").await, semver);
            assert_eq!(cloud.field("release", release, "is_final").await, true);
        }
        let raw = cloud
            .get(
                &cloud.ann,
                "/release?$select=raw_version&$filter=commit eq 'a2'",
            )
            .await;
        assert_eq!(raw[0]["raw_version"], "1.0.0+rev1");
    })
    .await;
}

#[tokio::test]
async fn a_draft_has_no_number_until_it_is_final_and_stays_so() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let draft = cloud
            .release_with(fleet, "a1", json!({"is_final": false, "semver": "1.2.3"}))
            .await;
        assert_eq!(cloud.field("release", draft, "revision").await, json!(null));
        assert_eq!(cloud.field("release", draft, "is_final").await, false);
        cloud
            .release_with(fleet, "a2", json!({"semver": "1.2.3"}))
            .await;
        let url = format!("/release({draft})");
        cloud.set(&url, json!({"is_final": "true"})).await;
        assert_eq!(cloud.field("release", draft, "revision").await, 1);
        let finalized = cloud.field("release", draft, "is_finalized_at__date").await;
        assert!(finalized.is_string());
        refused(
            cloud
                .patch(&cloud.ann, &url, json!({"is_final": false}))
                .await,
            "stays final",
        );
        cloud.set(&url, json!({"is_final": true})).await;
        assert_eq!(
            cloud.field("release", draft, "is_finalized_at__date").await,
            finalized
        );
    })
    .await;
}

#[tokio::test]
async fn another_version_of_a_final_release_gives_it_another_number() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        cloud
            .release_with(fleet, "a1", json!({"semver": "2.0.0"}))
            .await;
        let release = cloud
            .release_with(fleet, "a2", json!({"semver": "1.0.0"}))
            .await;
        let url = format!("/release({release})");
        cloud.set(&url, json!({"semver": "2.0.0"})).await;
        assert_eq!(cloud.field("release", release, "revision").await, 1);
        refused(
            cloud
                .patch(&cloud.ann, &url, json!({"semver": "2.0.0+rev7"}))
                .await,
            "revision 7",
        );
        refused(
            cloud
                .patch(&cloud.ann, &url, json!({"semver": "2.0"}))
                .await,
            "`semver`",
        );
        cloud.set(&url, json!({"semver": "2.0.0+rev1"})).await;
        assert_eq!(
            cloud.field("release", release, "raw_version").await,
            "2.0.0+rev1"
        );
    })
    .await;
}

#[tokio::test]
async fn several_are_made_final_in_their_order() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let mut drafts = Vec::new();
        for commit in ["a1", "a2", "a3"] {
            drafts.push(
                cloud
                    .release_with(fleet, commit, json!({"is_final": false}))
                    .await,
            );
        }
        let all = format!("/release?$filter=belongs_to__application eq {fleet}");
        assert_eq!(
            cloud
                .patch(&cloud.ann, &all, json!({"is_final": true}))
                .await
                .unwrap(),
            3
        );
        for (expected, draft) in drafts.into_iter().enumerate() {
            assert_eq!(cloud.field("release", draft, "revision").await, expected);
        }
    })
    .await;
}

#[tokio::test]
async fn releases_that_are_made_final_at_once_get_different_numbers() {
    on_clouds(|cloud| async move {
        const AT_ONCE: usize = 6;
        let fleet = cloud.fleet("pump").await;
        let mut drafts = Vec::new();
        for at in 0..AT_ONCE {
            let commit = format!("a{at}");
            drafts.push(
                cloud
                    .release_with(fleet, &commit, json!({"is_final": false}))
                    .await,
            );
        }
        let finals = drafts.iter().map(|draft| {
            let cloud = cloud.clone();
            let url = format!("/release({draft})");
            tokio::spawn(async move {
                cloud
                    .patch(&cloud.ann, &url, json!({"is_final": true}))
                    .await
            })
        });
        // And as many new ones at the same time.
        let made = (0..AT_ONCE).map(|at| {
            let cloud = cloud.clone();
            let body = cloud.release_body(fleet, &format!("b{at}"));
            tokio::spawn(async move { cloud.post(&cloud.ann, "release", body).await.map(|_| 1) })
        });
        for done in futures::future::join_all(finals.chain(made)).await {
            assert_eq!(done.unwrap().unwrap(), 1);
        }
        let rows = cloud
            .get(&cloud.ann, "/release?$select=revision&$orderby=revision")
            .await;
        let expected: Vec<_> = (0..2 * AT_ONCE).map(|at| json!({"revision": at})).collect();
        assert_eq!(rows, json!(expected));
    })
    .await;
}

#[tokio::test]
async fn a_fleet_has_one_successful_release_of_a_commit() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let failed = cloud
            .release_with(fleet, "a1", json!({"status": "failed"}))
            .await;
        cloud
            .release_with(fleet, "a1", json!({"status": "failed"}))
            .await;
        cloud.release(fleet, "a1").await;
        refused(
            cloud
                .post(&cloud.ann, "release", cloud.release_body(fleet, "a1"))
                .await,
            "a successful release of `a1` already",
        );
        let url = format!("/release({failed})");
        refused(
            cloud
                .patch(&cloud.ann, &url, json!({"status": "success"}))
                .await,
            "`commit`",
        );
        cloud.release(cloud.fleet("valve").await, "a1").await;
        let named = |commit: &str| {
            with(
                cloud.release_body(fleet, commit),
                json!({"release_version": "v1"}),
            )
        };
        let first = cloud.made(&cloud.ann, "release", named("a2")).await;
        refused(
            cloud.post(&cloud.ann, "release", named("a3")).await,
            "`release_version`",
        );
        cloud
            .set(
                &format!("/release({first})"),
                json!({"is_invalidated": true}),
            )
            .await;
        cloud.made(&cloud.ann, "release", named("a3")).await;
    })
    .await;
}

#[tokio::test]
async fn a_reason_for_invalidation_is_for_those_that_are() {
    on_clouds(|cloud| async move {
        let release = cloud.release(cloud.fleet("pump").await, "a1").await;
        let url = format!("/release({release})");
        let reason = json!({"invalidation_reason": "broken"});
        refused(
            cloud.patch(&cloud.ann, &url, reason.clone()).await,
            "`invalidation_reason`",
        );
        cloud
            .set(&url, with(reason, json!({"is_invalidated": true})))
            .await;
        cloud.set(&url, json!({"is_invalidated": false})).await;
        assert_eq!(
            cloud.field("release", release, "invalidation_reason").await,
            json!(null)
        );
    })
    .await;
}

#[tokio::test]
async fn images_get_a_location_of_their_own_and_are_pushed_before_they_succeed() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let body = json!({"application": fleet, "service_name": "main"});
        let service = cloud.made(&cloud.ann, "service", body).await;
        let body = json!({
            "is_a_build_of__service": service, "start_timestamp": 1, "status": "running",
            "is_stored_at__image_location": "mine", "image_size": "12345678901",
        });
        let image = cloud.made(&cloud.ann, "image", body).await;
        let location = cloud
            .field("image", image, "is_stored_at__image_location")
            .await;
        let location = location.as_str().unwrap().to_owned();
        let digits = location
            .strip_prefix("registry.example/v2/")
            .expect("our registry");
        assert_eq!(digits.len(), 32);
        assert_eq!(
            cloud.field("image", image, "image_size").await,
            "12345678901"
        );
        let url = format!("/image({image})");
        refused(
            cloud
                .patch(&cloud.ann, &url, json!({"status": "success"}))
                .await,
            "`push_timestamp`",
        );
        cloud
            .set(&url, json!({"status": "success", "push_timestamp": 2}))
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_fleet_of_a_simple_type_has_one_image_a_release() {
    on_clouds(|cloud| async move {
        let simple = json!({"name": "Simple", "slug": "simple", "supports_multicontainer": false});
        let simple = cloud
            .made(
                &data::query::Caller::Platform(SystemPurpose::Rules),
                "application_type",
                simple,
            )
            .await;
        let fleet = cloud.fleet("pump").await;
        cloud
            .set(
                &format!("/application({fleet})"),
                json!({"application_type": simple}),
            )
            .await;
        let release = cloud.release(fleet, "a1").await;
        cloud.service_in(release, "one").await;
        let body = json!({"application": fleet, "service_name": "two"});
        let service = cloud.made(&cloud.ann, "service", body).await;
        let image = cloud.image_of(service).await;
        let second = json!({"image": image, "is_part_of__release": release});
        let result: Result<i64, WriteError> = cloud.post(&cloud.ann, "release_image", second).await;
        refused(result, "one image at most");
        // Nor can a fleet with several change to that type.
        let other = cloud.fleet("valve").await;
        let release = cloud.release(other, "b1").await;
        cloud.service_in(release, "one").await;
        cloud.service_in(release, "two").await;
        let url = format!("/application({other})");
        let change = cloud
            .patch(&cloud.ann, &url, json!({"application_type": simple}))
            .await;
        refused(change, &format!("release {release} has several"));
    })
    .await;
}

#[tokio::test]
async fn a_release_that_devices_should_run_stays_successful() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let (old, new) = (
            cloud.release(fleet, "a1").await,
            cloud.release(fleet, "a2").await,
        );
        let device = cloud.device(fleet).await;
        let failed = json!({"status": "failed"});
        cloud
            .set(
                &format!("/device({device})"),
                json!({"is_pinned_on__release": old}),
            )
            .await;
        for release in [old, new] {
            let url = format!("/release({release})");
            assert!(cloud.patch(&cloud.ann, &url, failed.clone()).await.is_err());
            // Invalidating it is allowed.
            cloud.set(&url, json!({"is_invalidated": true})).await;
        }
        cloud
            .set(
                &format!("/device({device})"),
                json!({"is_pinned_on__release": null}),
            )
            .await;
        cloud.set(&format!("/release({old})"), failed).await;
    })
    .await;
}
