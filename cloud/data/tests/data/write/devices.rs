//! Devices (docs/spec/cloud.md#model-device, docs/spec/cloud.md#rules).

use data::SystemPurpose;
use data::write::WriteError;
use serde_json::json;

use super::cloud::{on_clouds, refused};

#[tokio::test]
async fn a_new_device_has_a_uuid_a_name_and_an_actor() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let board = cloud.board("raspberrypi4-64").await;
        let body = json!({
            "belongs_to__application": fleet, "is_of__device_type": board, "device_name": "",
            "uuid": "b".repeat(62),
        });
        let device = cloud.made(&cloud.ann, "device", body).await;
        let row = &cloud.get(&cloud.ann, &format!("/device({device})")).await[0];
        assert_eq!(row["uuid"], "b".repeat(62));
        assert_eq!(row["device_name"].as_str().unwrap().split('-').count(), 2);
        assert_eq!(row["api_heartbeat_state"], "unknown");
        assert!(row["actor"]["__id"].is_i64());
        for (field, value) in [
            ("uuid", "xyz"),
            ("uuid", &"A".repeat(32)),
            ("device_name", "a\nb"),
        ] {
            let mut body = json!({"belongs_to__application": fleet, "is_of__device_type": board});
            body[field] = value.into();
            refused(
                cloud.post(&cloud.ann, "device", body).await,
                &format!("`{field}`"),
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_pin_is_a_successful_release_of_the_devices_fleet() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        let pin = |release: i64| json!({"is_pinned_on__release": release});
        let good = cloud.release(fleet, "a1").await;
        let failed = cloud
            .release_with(fleet, "a2", json!({"status": "failed"}))
            .await;
        let theirs = cloud.release(other, "a3").await;
        refused(
            cloud.patch(&cloud.ann, &url, pin(failed)).await,
            "not successful",
        );
        refused(
            cloud.patch(&cloud.ann, &url, pin(theirs)).await,
            "another fleet",
        );
        cloud.set(&url, pin(good)).await;
        assert_eq!(
            cloud
                .link("device", device, "should_be_running__release")
                .await,
            good
        );
        // A later problem of the release does not unpin the device.
        cloud
            .set(
                &format!("/release({good})"),
                json!({"is_invalidated": true}),
            )
            .await;
        assert_eq!(
            cloud.link("device", device, "is_pinned_on__release").await,
            good
        );
        cloud
            .set(&url, json!({"is_pinned_on__release": null}))
            .await;
    })
    .await;
}

#[tokio::test]
async fn devices_have_the_services_of_what_they_are_to_run() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let early = cloud.device(fleet).await;
        let first = cloud.release(fleet, "a1").await;
        let web = cloud.service_in(first, "web").await;
        assert_eq!(cloud.installed(early).await, [web]);
        let late = cloud.device(fleet).await;
        assert_eq!(cloud.installed(late).await, [web]);
        cloud.set(&format!("/device({early})"), json!({"is_pinned_on__release": first})).await;
        let second = cloud.release_with(fleet, "a2", json!({"is_final": false})).await;
        let worker = cloud.service_in(second, "worker").await;
        cloud.set(&format!("/release({second})"), json!({"is_final": true})).await;
        assert_eq!(cloud.installed(late).await, [web, worker]);
        assert_eq!(cloud.installed(early).await, [web], "it is pinned");
        cloud.set(&format!("/device({early})"), json!({"is_pinned_on__release": null})).await;
        assert_eq!(cloud.installed(early).await, [web, worker]);
        // A variable of a service on a device can now be set.
        let url = format!("/service_install?$select=id&$filter=device eq {early} and installs__service eq {worker}");
        let install = cloud.get(&cloud.ann, &url).await[0]["id"].clone();
        let body = json!({"service_install": install, "name": "A", "value": "1"});
        cloud.made(&cloud.ann, "device_service_environment_variable", body).await;
    })
    .await;
}

#[tokio::test]
async fn a_move_takes_a_device_out_of_the_old_fleet_wholly() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let (mine, theirs) = (
            cloud.release(fleet, "a1").await,
            cloud.release(other, "b1").await,
        );
        let web = cloud.service_in(mine, "web").await;
        let valve = cloud.service_in(theirs, "valve").await;
        let device = cloud.device(fleet).await;
        let image = cloud
            .get(
                &cloud.ann,
                &format!("/image?$select=id&$filter=is_a_build_of__service eq {web}"),
            )
            .await[0]["id"]
            .clone();
        let key = cloud.device_key(device).await;
        let install = json!({
            "device": device, "installs__image": image, "install_date": 1, "status": "Running",
            "is_provided_by__release": mine, "download_progress": 50,
        });
        let install = cloud.made(&key, "image_install", install).await;
        let url = format!("/device({device})");
        cloud
            .set(&url, json!({"is_pinned_on__release": mine}))
            .await;
        cloud
            .set(&url, json!({"belongs_to__application": other}))
            .await;
        assert_eq!(
            cloud.field("device", device, "is_pinned_on__release").await,
            json!(null)
        );
        assert_eq!(cloud.installed(device).await, [valve]);
        assert_eq!(
            cloud.field("image_install", install, "status").await,
            "deleted"
        );
        assert_eq!(
            cloud
                .field("image_install", install, "download_progress")
                .await,
            json!(null)
        );
        // Back, and pinned in the same request.
        let back = json!({"belongs_to__application": fleet, "is_pinned_on__release": mine});
        cloud.set(&url, back).await;
        assert_eq!(
            cloud.link("device", device, "is_pinned_on__release").await,
            mine
        );
        assert_eq!(cloud.installed(device).await, [web]);
        let wrong = json!({"belongs_to__application": other, "is_pinned_on__release": mine});
        refused(cloud.patch(&cloud.ann, &url, wrong).await, "another fleet");
    })
    .await;
}

#[tokio::test]
async fn a_move_goes_to_a_fleet_that_is_there_and_that_the_device_can_run() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let url = format!("/device({device})");
        let to = |fleet: i64| json!({"belongs_to__application": fleet});
        let missing = cloud.patch(&cloud.ann, &url, to(9999)).await;
        assert!(
            matches!(missing, Err(WriteError::NotFound(_))),
            "{missing:?}"
        );
        let bob = cloud.person("bob", Some("other")).await;
        let organization = cloud.get(&bob, "/organization?$select=id").await[0]["id"].clone();
        let body = json!({
            "app_name": "mine", "organization": organization,
            "is_for__device_type": cloud.board("raspberrypi4-64").await,
        });
        let hidden = cloud.made(&bob, "application", body).await;
        let hidden = cloud.patch(&cloud.ann, &url, to(hidden)).await;
        assert!(matches!(hidden, Err(WriteError::NotFound(_))), "{hidden:?}");
        let nucs = cloud.fleet_for("nucs", "intel-nuc").await;
        refused(cloud.patch(&cloud.ann, &url, to(nucs)).await, "cannot run");
        // A 64-bit board can run what is built for smaller ones of its family.
        let small = cloud.fleet_for("small", "raspberry-pi2").await;
        cloud.set(&url, to(small)).await;
    })
    .await;
}

#[tokio::test]
async fn a_fleet_for_newer_systems_takes_no_older_device() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let board = cloud.board("raspberrypi4-64").await;
        let device = |os: &'static str| {
            let cloud = cloud.clone();
            async move {
                let body = json!({
                    "belongs_to__application": fleet, "is_of__device_type": board, "os_version": os,
                    "supervisor_version": "1.0.0",
                });
                cloud.post(&data::query::Caller::Platform(SystemPurpose::Rules), "device", body).await
            }
        };
        let old = device("Platform OS 2.10.0").await;
        assert!(matches!(old, Err(WriteError::Forbidden(_))), "{old:?}");
        device("Platform OS 2.11.0+rev1 (prod)").await.unwrap();
        device("Debian GNU/Linux 12 (bookworm)").await.unwrap();
        let body = json!({
            "belongs_to__application": fleet, "is_of__device_type": board, "supervisor_version": "1.0.0",
        });
        let unknown = cloud.post(&data::query::Caller::Platform(SystemPurpose::Rules), "device", body).await;
        assert!(matches!(unknown, Err(WriteError::Forbidden(_))), "{unknown:?}");
    })
    .await;
}

#[tokio::test]
async fn event_times_are_recorded() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let at = |field: &'static str| {
            let cloud = cloud.clone();
            async move { cloud.field("device", device, field).await }
        };
        cloud
            .platform_sets("device", device, json!({"api_heartbeat_state": "online"}))
            .await;
        let changed = at("changed_api_heartbeat_state_on__date").await;
        assert!(changed.is_string());
        cloud
            .platform_sets("device", device, json!({"api_heartbeat_state": "online"}))
            .await;
        assert_eq!(at("changed_api_heartbeat_state_on__date").await, changed);
        cloud
            .platform_sets("device", device, json!({"is_connected_to_vpn": true}))
            .await;
        assert_eq!(at("is_online").await, true);
        assert!(at("last_vpn_event").await.is_string());
        assert!(at("last_connectivity_event").await.is_string());
        let key = cloud.device_key(device).await;
        let report = json!({"update_status": "done", "os_version": "2.0.0 (dev)", "cpu_id": "AB"});
        cloud
            .patch(&key, &format!("/device({device})"), report)
            .await
            .unwrap();
        assert!(at("last_update_status_event").await.is_string());
        assert_eq!(at("os_version").await, "2.0.0");
        assert_eq!(at("os_variant").await, "dev");
        assert_eq!(at("cpu_id").await, "ab");
    })
    .await;
}

#[tokio::test]
async fn a_web_address_needs_a_type_of_fleet_that_has_them() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        cloud.set(&url, json!({"is_web_accessible": true})).await;
        cloud.set(&url, json!({"is_web_accessible": false})).await;
        let simple = json!({"name": "Simple", "slug": "simple", "supports_multicontainer": true});
        let simple = cloud
            .made(
                &data::query::Caller::Platform(SystemPurpose::Rules),
                "application_type",
                simple,
            )
            .await;
        cloud
            .set(
                &format!("/application({fleet})"),
                json!({"application_type": simple}),
            )
            .await;
        let refused = cloud
            .patch(&cloud.ann, &url, json!({"is_web_accessible": true}))
            .await;
        assert!(
            matches!(refused, Err(WriteError::Forbidden(_))),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_history_of_a_device_is_kept() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        cloud.set(&url, json!({"note": "nothing that is kept"})).await;
        cloud.set(&url, json!({"belongs_to__application": other})).await;
        cloud.delete(&cloud.ann, &url).await.unwrap();
        let rows = cloud
            .get(
                &cloud.ann,
                &format!(
                    "/device_history?$select=belongs_to__application,end_timestamp&$orderby=id&$filter=tracks__device eq {device}"
                ),
            )
            .await;
        let rows = rows.as_array().unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["belongs_to__application"]["__id"], fleet);
        assert_eq!(rows[1]["belongs_to__application"]["__id"], other);
        assert!(rows.iter().all(|row| row["end_timestamp"].is_string()));
    })
    .await;
}
