//! Releases of the supervisor and of operating systems (docs/spec/cloud.md#rule-supervisor-release,
//! docs/spec/cloud.md#rule-os-release).

use data::SystemPurpose;
use data::query::Caller;
use data::testing::sql;
use serde_json::{Value, json};

use super::cloud::{Cloud, on_clouds, refused};

/// Creates a public fleet of the platform's organization.
async fn platform_fleet(cloud: &Cloud, name: &str, board: &str, is_host: bool) -> i64 {
    let organization = cloud
        .get(
            &Caller::Platform(SystemPurpose::Rules),
            "/organization(handle='platform_os')?$select=id",
        )
        .await[0]["id"]
        .clone();
    let body = json!({
        "app_name": name, "organization": organization, "is_public": true, "is_host": is_host,
        "is_for__device_type": cloud.board(board).await,
    });
    cloud
        .made(&Caller::Platform(SystemPurpose::Rules), "application", body)
        .await
}

async fn version(cloud: &Cloud, fleet: i64, semver: &str) -> i64 {
    let mut body = cloud.release_body(fleet, &semver.replace(['.', '-'], ""));
    body["semver"] = semver.into();
    cloud
        .made(&Caller::Platform(SystemPurpose::Rules), "release", body)
        .await
}

#[tokio::test]
async fn the_first_supervisor_that_a_device_reports_is_the_one_it_is_to_have() {
    on_clouds(|cloud| async move {
        let supervisors = platform_fleet(&cloud, "aarch64-supervisor", "raspberrypi4-64", false).await;
        let release = version(&cloud, supervisors, "13.1.0").await;
        let service = cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "service",
                json!({"application": supervisors, "service_name": "supervisor"}),
            )
            .await;
        let image = json!({
            "is_a_build_of__service": service, "start_timestamp": 1, "status": "success", "push_timestamp": 1,
        });
        let image = cloud.made(&Caller::Platform(SystemPurpose::Rules), "image", image).await;
        let body = json!({"image": image, "is_part_of__release": release});
        cloud.made(&Caller::Platform(SystemPurpose::Rules), "release_image", body).await;
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
                "not a release of the supervisor",
            );
        }
        cloud.set(&url, to(new)).await;
        refused(cloud.patch(&cloud.ann, &url, to(old)).await, "is older");
        cloud
            .patch(
                &Caller::Platform(SystemPurpose::Rules),
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
            "not an operating system",
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

/// Creates a public fleet of a user, and a release in it.
async fn release_of(
    cloud: &Cloud,
    who: &Caller,
    organization: &Value,
    (name, board, is_host): (&str, &str, bool),
) -> i64 {
    let body = json!({
        "app_name": name, "organization": organization, "is_public": true, "is_host": is_host,
        "is_for__device_type": cloud.board(board).await,
    });
    let fleet = cloud.made(who, "application", body).await;
    let mut body = cloud.release_body(fleet, "c0ffee");
    body["semver"] = "13.1.0".into();
    cloud.made(who, "release", body).await
}

#[tokio::test]
async fn devices_take_no_system_of_another_tenant() {
    on_clouds(|cloud| async move {
        let mallory = cloud.person("mallory", Some("mallory")).await;
        let hers = cloud.get(&mallory, "/organization?$select=id").await[0]["id"].clone();
        let supervisor = ("aarch64-supervisor", "raspberrypi4-64", false);
        let supervisor = release_of(&cloud, &mallory, &hers, supervisor).await;
        let system = ("raspberrypi4-64", "raspberrypi4-64", true);
        let system = release_of(&cloud, &mallory, &hers, system).await;
        let device = cloud.device(cloud.fleet("pump").await).await;
        let (key, url) = (cloud.device_key(device).await, format!("/device({device})"));
        let report = json!({"supervisor_version": "13.1.0", "os_version": "Platform OS 13.1.0"});
        cloud.patch(&key, &url, report).await.unwrap();
        for (field, release) in [
            ("should_be_managed_by__release", supervisor),
            ("should_be_operated_by__release", system),
        ] {
            assert_eq!(cloud.link("device", device, field).await, -1, "{field}");
            let set = cloud.patch(&cloud.ann, &url, json!({field: release})).await;
            refused(set, "release");
        }
        // Nor if the former handle of her organization becomes that of the system.
        let rename =
            sql("UPDATE organization SET handle = 'platform_os_old' WHERE is_system = TRUE");
        cloud.database.execute(&rename).await.unwrap();
        let rename = sql("UPDATE organization SET handle = 'platform_os' WHERE handle = 'mallory'");
        cloud.database.execute(&rename).await.unwrap();
        let rename =
            sql("UPDATE application SET slug = 'platform_os/aarch64-supervisor' WHERE slug = ?");
        let rename = rename.with("mallory/aarch64-supervisor");
        assert_eq!(cloud.database.execute(&rename).await.unwrap(), 1);
        let set = json!({"should_be_managed_by__release": supervisor});
        refused(
            cloud.patch(&cloud.ann, &url, set).await,
            "not a release of the supervisor",
        );
    })
    .await;
}

#[tokio::test]
async fn a_device_takes_systems_of_its_own_organization_and_leaves_them_behind() {
    on_clouds(|cloud| async move {
        let own = cloud.get(&cloud.ann, "/organization?$select=id").await[0]["id"].clone();
        let supervisor = ("my-supervisor", "raspberrypi4-64", false);
        let supervisor = release_of(&cloud, &cloud.ann, &own, supervisor).await;
        let system = ("raspberrypi4-64", "raspberrypi4-64", true);
        let system = release_of(&cloud, &cloud.ann, &own, system).await;
        let device = cloud.device(cloud.fleet("pump").await).await;
        let (key, url) = (cloud.device_key(device).await, format!("/device({device})"));
        let target = async |field: &str| cloud.link("device", device, field).await;
        let report = json!({"supervisor_version": "13.1.0", "os_version": "Platform OS 13.1.0"});
        cloud.patch(&key, &url, report).await.unwrap();
        assert_eq!(target("should_be_managed_by__release").await, -1, "it has to be asked for");
        assert_eq!(target("should_be_operated_by__release").await, system);
        cloud.set(&url, json!({"should_be_managed_by__release": supervisor})).await;
        // In another organization they would belong to a stranger.
        let other = json!({"name": "other", "handle": "other"});
        let other = cloud.made(&cloud.ann, "organization", other).await;
        let body = json!({
            "app_name": "valve", "organization": other,
            "is_for__device_type": cloud.board("raspberrypi4-64").await,
        });
        let valve = cloud.made(&cloud.ann, "application", body).await;
        cloud.set(&url, json!({"belongs_to__application": valve})).await;
        assert_eq!(target("should_be_managed_by__release").await, -1);
        assert_eq!(target("should_be_operated_by__release").await, -1);
        // The same if the whole fleet is moved.
        let device = cloud.device(cloud.fleet("press").await).await;
        let url = format!("/device({device})");
        let set = json!({"should_be_managed_by__release": supervisor, "should_be_operated_by__release": system});
        cloud.set(&url, set).await;
        let fleet = cloud.link("device", device, "belongs_to__application").await;
        cloud.set(&format!("/application({fleet})"), json!({"organization": other})).await;
        for field in ["should_be_managed_by__release", "should_be_operated_by__release"] {
            assert_eq!(cloud.link("device", device, field).await, -1, "{field}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_organization_that_had_the_handle_first_is_not_the_systems() {
    on_clouds(|cloud| async move {
        // As left by a version without an organization of the system.
        let older = sql("DELETE FROM organization WHERE is_system = TRUE");
        cloud.database.execute(&older).await.unwrap();
        let nobody = sql("UPDATE \"user\" SET is_cloud_administrator = FALSE WHERE id > 0");
        cloud.database.execute(&nobody).await.unwrap();
        let mallory = cloud.person("mallory", Some("mallory")).await;
        let rename = sql("UPDATE organization SET handle = 'platform_os' WHERE handle = 'mallory'");
        cloud.database.execute(&rename).await.unwrap();
        let hers = cloud.get(&mallory, "/organization?$select=id").await[0]["id"].clone();
        let supervisor = ("x-supervisor", "raspberrypi4-64", false);
        let supervisor = release_of(&cloud, &mallory, &hers, supervisor).await;
        let device = cloud.device(cloud.fleet("pump").await).await;
        let poisoned = sql("UPDATE device SET should_be_managed_by__release = ? WHERE id = ?");
        let poisoned = poisoned.with(supervisor).with(device);
        cloud.database.execute(&poisoned).await.unwrap();

        let start = async || {
            let kept = cloud
                .database
                .keep_system_organization(&cloud.environment, cloud.later());
            kept.await.unwrap()
        };
        let kept = start().await;
        assert_eq!((kept.handle.as_str(), kept.is_new), ("platform_os_2", true));
        assert_ne!(json!(kept.id), hers);
        assert_eq!(kept.freed_devices, 1);
        assert_eq!(
            cloud
                .link("device", device, "should_be_managed_by__release")
                .await,
            -1
        );
        let administrators = sql("SELECT id FROM \"user\" WHERE is_cloud_administrator = TRUE");
        let row = cloud
            .database
            .row(&administrators)
            .await
            .unwrap()
            .expect("one");
        assert_eq!(row.id(0).unwrap(), 1, "the user whom the first start made");
        // As soon as the handle is free, the system's organization gets it.
        let again = start().await;
        assert_eq!((again.id, again.is_new), (kept.id, false));
        assert_eq!(again.handle, "platform_os_2");
        let rename = json!({"handle": "mallory"});
        cloud
            .patch(&mallory, &format!("/organization({hers})"), rename)
            .await
            .unwrap();
        assert_eq!(start().await.handle, "platform_os");
        assert_eq!(start().await.id, kept.id);
    })
    .await;
}
