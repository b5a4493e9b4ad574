//! Dependent rows, and rows that prevent a deletion (docs/spec/cloud.md#model-deletion).

use data::Effect;
use data::SystemPurpose;
use data::query::Caller;
use serde_json::json;

use super::cloud::{conflict, on_clouds, refused};

#[tokio::test]
async fn a_fleet_goes_with_everything_of_it() {
    on_clouds(|cloud| async move {
        let counts = || async {
            let mut counts = Vec::new();
            for resource in resources::v7().resources() {
                let kept = [
                    "audit_event",
                    "device_history",
                    "user__has_direct_access_to__application",
                ];
                if !kept.contains(&resource.name) {
                    counts.push((resource.name, cloud.count(resource.name).await));
                }
            }
            counts
        };
        let before = counts().await;
        let fleet = cloud.fleet("pump").await;
        let release = cloud.release(fleet, "a1").await;
        let service = cloud.service_in(release, "web").await;
        let device = cloud.device(fleet).await;
        cloud
            .set(
                &format!("/device({device})"),
                json!({"is_pinned_on__release": release}),
            )
            .await;
        let label = json!({"service": service, "label_name": "a", "value": "b"});
        cloud.made(&cloud.ann, "service_label", label).await;
        let tag = json!({"release": release, "tag_key": "a", "value": "b"});
        cloud.made(&cloud.ann, "release_tag", tag).await;
        for (resource, of, id) in [
            ("device_config_variable", "device", device),
            ("application_config_variable", "application", fleet),
        ] {
            let mut body = json!({"name": "PLATFORM_A", "value": "b"});
            body[of] = id.into();
            cloud.made(&cloud.ann, resource, body).await;
        }
        let key = json!({
            "is_of__actor": cloud.link("device", device, "actor").await, "key_hash": "x",
            "role": "device-api-key",
        });
        cloud
            .made(&Caller::Platform(SystemPurpose::Rules), "api_key", key)
            .await;
        let uuid = cloud.field("device", device, "uuid").await;
        cloud.take_effects();
        assert_eq!(
            cloud
                .delete(&cloud.ann, &format!("/application({fleet})"))
                .await
                .unwrap(),
            1
        );
        assert_eq!(counts().await, before);
        let effects = cloud.take_effects();
        let gone = effects.iter().find_map(|effect| match effect {
            Effect::DevicesGone(gone) => Some(gone),
            _ => None,
        });
        assert_eq!(
            gone.expect("devices that are gone")[0].uuid,
            uuid.as_str().unwrap()
        );
        assert!(
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::ImagesGone(images) if images.len() == 1))
        );
        assert!(
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::ActorsChanged(actors) if actors.len() == 2))
        );
    })
    .await;
}

#[tokio::test]
async fn a_fleet_stays_while_a_device_of_another_is_held_by_its_releases() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let release = cloud.release(fleet, "a1").await;
        let device = cloud.device(other).await;
        // No request can create such a pin; older data may have it.
        let pin = data::testing::sql("UPDATE device SET is_pinned_on__release = ? WHERE id = ?");
        cloud
            .database
            .execute(&pin.with(release).with(device))
            .await
            .unwrap();
        let url = format!("/application({fleet})");
        conflict(
            cloud.delete(&cloud.ann, &url).await,
            "Data is referenced by device.",
        );
        cloud
            .set(
                &format!("/device({device})"),
                json!({"is_pinned_on__release": null}),
            )
            .await;
        assert_eq!(cloud.delete(&cloud.ann, &url).await.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_release_stays_while_it_is_to_be_run_and_not_because_it_runs() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let (old, new) = (
            cloud.release(fleet, "a1").await,
            cloud.release(fleet, "a2").await,
        );
        let delete = |release: i64| {
            let cloud = cloud.clone();
            async move {
                cloud
                    .delete(&cloud.ann, &format!("/release({release})"))
                    .await
            }
        };
        refused(delete(new).await, "target release of the fleet `acme/pump`");
        let url = format!("/device({device})");
        cloud.set(&url, json!({"is_pinned_on__release": old})).await;
        refused(delete(old).await, "is pinned to it");
        cloud
            .set(&url, json!({"is_pinned_on__release": null}))
            .await;
        let key = cloud.device_key(device).await;
        cloud
            .patch(&key, &url, json!({"is_running__release": old}))
            .await
            .unwrap();
        assert_eq!(delete(old).await.unwrap(), 1);
        assert_eq!(cloud.count("device").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_refused_deletion_names_the_rows_that_need_the_record() {
    on_clouds(|cloud| async move {
        cloud.fleet("pump").await;
        let board = cloud.board("raspberrypi4-64").await;
        conflict(
            cloud
                .delete(
                    &Caller::Platform(SystemPurpose::Rules),
                    &format!("/device_type({board})"),
                )
                .await,
            "Data is referenced by application.",
        );
    })
    .await;
}

#[tokio::test]
async fn users_delete_themselves_alone() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", Some("other")).await;
        let Caller::Holder {
            user: Some(user),
            actor,
            ..
        } = bob
        else {
            panic!("bob is a user")
        };
        refused(
            cloud.delete(&cloud.ann, &format!("/user({user})")).await,
            "themselves",
        );
        refused(
            cloud.delete(&bob, &format!("/user({user})")).await,
            "`other` would be left without an administrator",
        );
        let own = cloud.delete(&bob, "/organization(handle='other')").await;
        assert_eq!(own.unwrap(), 1);
        cloud.take_effects();
        assert_eq!(
            cloud.delete(&bob, &format!("/user({user})")).await.unwrap(),
            1
        );
        assert_eq!(
            cloud.take_effects(),
            [Effect::ActorsChanged(vec![actor.unwrap()])]
        );
        assert_eq!(cloud.count("user").await, 1);
        assert_eq!(cloud.count("actor").await, 1);
    })
    .await;
}

#[tokio::test]
async fn an_organization_goes_with_its_fleets_and_their_devices() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", Some("other")).await;
        let fleet = cloud.fleet("pump").await;
        let release = cloud.release(fleet, "a1").await;
        cloud.service_in(release, "web").await;
        cloud.device(fleet).await;
        cloud.take_effects();
        let url = "/organization(handle='acme')";
        assert_eq!(cloud.delete(&bob, url).await.unwrap(), 0);
        assert_eq!(cloud.delete(&cloud.ann, url).await.unwrap(), 1);
        for resource in [
            "application",
            "device",
            "release",
            "service",
            "image",
            "service_install",
        ] {
            assert_eq!(cloud.count(resource).await, 0, "{resource}");
        }
        assert_eq!(cloud.count("actor").await, 2, "the users stay");
        let effects = cloud.take_effects();
        assert!(
            effects
                .iter()
                .any(|effect| matches!(effect, Effect::DevicesGone(gone) if gone.len() == 1))
        );
    })
    .await;
}

#[tokio::test]
async fn a_fleet_of_thousands_is_pinned_and_deleted_like_one_of_a_few() {
    /// More than one statement can name.
    const DEVICES: i64 = 4500;
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let release = cloud.release(fleet, "a1").await;
        let service = cloud.service_in(release, "web").await;
        let board = cloud.board("raspberrypi4-64").await;
        let execute = async |statement: data::Sql| cloud.database.execute(&statement).await.unwrap();
        let actors = data::testing::sql(
            "INSERT INTO actor (id, created_at, modified_at) WITH RECURSIVE n(x) AS \
             (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT 1000 + x, 1, 1 FROM n",
        );
        execute(actors.with(DEVICES)).await;
        let devices = data::testing::sql(
            "INSERT INTO device (created_at, modified_at, actor, uuid, device_name, is_of__device_type, \
             belongs_to__application) SELECT 1, 1, id, CAST(id AS TEXT), 'some', CAST(? AS BIGINT), \
             CAST(? AS BIGINT) FROM actor WHERE id > 1000",
        );
        execute(devices.with(board).with(fleet)).await;
        let pinned = cloud
            .patch(
                &cloud.ann,
                &format!("/device?$filter=belongs_to__application eq {fleet}"),
                json!({"is_pinned_on__release": release}),
            )
            .await;
        assert_eq!(pinned.unwrap(), DEVICES.unsigned_abs());
        let installs = format!("service_install?$filter=installs__service eq {service}");
        assert_eq!(cloud.count(&installs).await, DEVICES);
        assert_eq!(cloud.count("device_history").await, DEVICES);
        cloud.take_effects();
        assert_eq!(cloud.delete(&cloud.ann, &format!("/application({fleet})")).await.unwrap(), 1);
        for resource in ["device", "service_install", "release"] {
            assert_eq!(cloud.count(resource).await, 0, "{resource}");
        }
        assert_eq!(cloud.count("actor").await, 1);
        let effects = cloud.take_effects();
        let gone = effects.iter().find_map(|effect| match effect {
            Effect::DevicesGone(gone) => Some(gone.len()),
            _ => None,
        });
        assert_eq!(gone, usize::try_from(DEVICES).ok());
    })
    .await;
}
