//! Releases of the supervisor and of operating systems (cloud behaviour 5.12 and 5.13).

use data::query::Caller;
use serde_json::json;

use super::cloud::{Cloud, on_clouds, refused};

/// A public fleet of the platform's organization.
async fn platform_fleet(cloud: &Cloud, name: &str, board: &str, is_host: bool) -> i64 {
    let organization = match cloud
        .get(
            &Caller::Platform,
            "/organization(handle='platform_os')?$select=id",
        )
        .await[0]["id"]
        .as_i64()
    {
        Some(id) => id,
        None => {
            let body = json!({"name": "OS", "handle": "platform_os"});
            cloud.made(&Caller::Platform, "organization", body).await
        }
    };
    let body = json!({
        "app_name": name, "organization": organization, "is_public": true, "is_host": is_host,
        "is_for__device_type": cloud.board(board).await,
    });
    cloud.made(&Caller::Platform, "application", body).await
}

async fn version(cloud: &Cloud, fleet: i64, semver: &str) -> i64 {
    let mut body = cloud.release_body(fleet, &semver.replace(['.', '-'], ""));
    body["semver"] = semver.into();
    cloud.made(&Caller::Platform, "release", body).await
}

#[tokio::test]
async fn the_first_supervisor_that_a_device_reports_is_the_one_it_is_to_have() {
    on_clouds(|cloud| async move {
        let supervisors = platform_fleet(&cloud, "aarch64-supervisor", "raspberrypi4-64", false).await;
        let release = version(&cloud, supervisors, "13.1.0").await;
        let service = cloud
            .made(
                &Caller::Platform,
                "service",
                json!({"application": supervisors, "service_name": "supervisor"}),
            )
            .await;
        let image = json!({
            "is_a_build_of__service": service, "start_timestamp": 1, "status": "success", "push_timestamp": 1,
        });
        let image = cloud.made(&Caller::Platform, "image", image).await;
        let body = json!({"image": image, "is_part_of__release": release});
        cloud.made(&Caller::Platform, "release_image", body).await;
        let device = cloud.device(cloud.fleet("pump").await).await;
        let key = cloud.device_key(device).await;
        let url = format!("/device({device})");
        let report = |version: &str| json!({"supervisor_version": version});
        cloud.patch(&key, &url, report("12.0.0")).await.unwrap();
        assert_eq!(cloud.link("device", device, "should_be_managed_by__release").await, -1);
        cloud.patch(&key, &url, report("13.1.0")).await.unwrap();
        assert_eq!(cloud.link("device", device, "should_be_managed_by__release").await, release);
        assert_eq!(cloud.installed(device).await, [service]);
    })
    .await;
}

#[tokio::test]
async fn a_supervisor_is_one_for_the_device_and_never_older() {
    on_clouds(|cloud| async move {
        let supervisors =
            platform_fleet(&cloud, "aarch64-supervisor", "raspberrypi4-64", false).await;
        let others = platform_fleet(&cloud, "amd64-supervisor", "intel-nuc", false).await;
        let old = version(&cloud, supervisors, "13.0.0").await;
        let new = version(&cloud, supervisors, "13.1.0").await;
        let wrong = version(&cloud, others, "13.1.0").await;
        let zero = version(&cloud, supervisors, "0.0.0").await;
        let fleet = cloud.fleet("pump").await;
        let mine = cloud
            .release_with(fleet, "a1", json!({"semver": "13.1.0"}))
            .await;
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        let to = |release: i64| json!({"should_be_managed_by__release": release});
        for release in [wrong, zero, mine] {
            refused(
                cloud.patch(&cloud.ann, &url, to(release)).await,
                "no release of the supervisor",
            );
        }
        cloud.set(&url, to(new)).await;
        refused(cloud.patch(&cloud.ann, &url, to(old)).await, "is older");
        cloud
            .patch(
                &Caller::Platform,
                &format!("/release({old})"),
                json!({"is_invalidated": true}),
            )
            .await
            .unwrap();
        refused(
            cloud.patch(&cloud.ann, &url, to(old)).await,
            "is invalidated",
        );
    })
    .await;
}

#[tokio::test]
async fn an_operating_system_follows_the_device_upwards() {
    on_clouds(|cloud| async move {
        let systems = platform_fleet(&cloud, "raspberrypi4-64", "raspberrypi4-64", true).await;
        let (first, second) = (
            version(&cloud, systems, "5.0.0").await,
            version(&cloud, systems, "5.1.0").await,
        );
        let others = platform_fleet(&cloud, "intel-nuc", "intel-nuc", true).await;
        let wrong = version(&cloud, others, "5.1.0").await;
        let device = cloud.device(cloud.fleet("pump").await).await;
        let key = cloud.device_key(device).await;
        let url = format!("/device({device})");
        let target = || async {
            cloud
                .link("device", device, "should_be_operated_by__release")
                .await
        };
        let to = |release: i64| json!({"should_be_operated_by__release": release});
        refused(
            cloud.patch(&cloud.ann, &url, to(wrong)).await,
            "no operating system",
        );
        cloud
            .patch(&key, &url, json!({"os_version": "Platform OS 5.0.0+rev3"}))
            .await
            .unwrap();
        assert_eq!(target().await, first);
        cloud.set(&url, to(second)).await;
        cloud
            .patch(&key, &url, json!({"os_version": "Platform OS 5.0.0"}))
            .await
            .unwrap();
        assert_eq!(target().await, second);
        cloud
            .patch(&key, &url, json!({"os_version": "Platform OS 5.1.0"}))
            .await
            .unwrap();
        refused(cloud.patch(&cloud.ann, &url, to(first)).await, "is older");
        cloud
            .patch(&key, &url, json!({"os_version": "Platform OS 6.0.0"}))
            .await
            .unwrap();
        assert_eq!(target().await, -1, "none matches");
        // Another kind of board has another operating system.
        cloud
            .patch(&key, &url, json!({"os_version": "Platform OS 5.1.0"}))
            .await
            .unwrap();
        assert_eq!(target().await, second);
        cloud
            .set(
                &url,
                json!({"is_of__device_type": cloud.board("raspberrypi5").await}),
            )
            .await;
        assert_eq!(target().await, -1);
    })
    .await;
}
