//! Reported effects.

use data::Effect::{DevicesChanged, FleetsChanged};
use serde_json::{Value, json};

use super::cloud::on_clouds;

#[tokio::test]
async fn only_devices_whose_target_changed_are_notified() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        cloud.take_effects();
        let building = cloud
            .release_with(fleet, "a1", json!({"status": "running"}))
            .await;
        let service = cloud.service_in(building, "web").await;
        assert_eq!(cloud.take_effects(), [], "nobody runs what is being built");
        cloud
            .set(
                &format!("/release({building})"),
                json!({"status": "success"}),
            )
            .await;
        assert_eq!(cloud.take_effects(), [FleetsChanged(vec![fleet])]);

        cloud.set(&url, json!({"note": "x"})).await;
        assert_eq!(cloud.take_effects(), []);
        cloud.set(&url, json!({"device_name": "other"})).await;
        assert_eq!(cloud.take_effects(), [DevicesChanged(vec![device])]);
        cloud.set(&url, json!({"device_name": "other"})).await;
        assert_eq!(cloud.take_effects(), [], "it was so before");
        let key = cloud.device_key(device).await;
        cloud
            .patch(&key, &url, json!({"status": "Idle", "cpu_usage": 3}))
            .await
            .unwrap();
        assert_eq!(cloud.take_effects(), []);
        cloud
            .set(&url, json!({"is_pinned_on__release": building}))
            .await;
        assert_eq!(cloud.take_effects(), [DevicesChanged(vec![device])]);

        let made = |resource: &'static str, body: Value| {
            let cloud = cloud.clone();
            async move { cloud.made(&cloud.ann, resource, body).await }
        };
        let variable = made(
            "service_environment_variable",
            json!({"service": service, "name": "A", "value": "1"}),
        )
        .await;
        assert_eq!(cloud.take_effects(), [FleetsChanged(vec![fleet])]);
        let of_service = format!("/service_environment_variable({variable})");
        cloud.set(&of_service, json!({"value": "2"})).await;
        assert_eq!(cloud.take_effects(), [FleetsChanged(vec![fleet])]);
        cloud.delete(&cloud.ann, &of_service).await.unwrap();
        assert_eq!(cloud.take_effects(), [FleetsChanged(vec![fleet])]);
        made(
            "device_environment_variable",
            json!({"device": device, "name": "A", "value": "1"}),
        )
        .await;
        assert_eq!(cloud.take_effects(), [DevicesChanged(vec![device])]);
        made(
            "device_tag",
            json!({"device": device, "tag_key": "A", "value": "1"}),
        )
        .await;
        assert_eq!(cloud.take_effects(), [], "tags are no part of a target");
        let install = cloud.get(&cloud.ann, "/service_install?$select=id").await[0]["id"].clone();
        made(
            "device_service_environment_variable",
            json!({"service_install": install, "name": "A", "value": "1"}),
        )
        .await;
        assert_eq!(cloud.take_effects(), [DevicesChanged(vec![device])]);
        let used = cloud.get(&cloud.ann, "/release_image?$select=id").await[0]["id"].clone();
        made(
            "image_environment_variable",
            json!({"release_image": used, "name": "A", "value": "1"}),
        )
        .await;
        assert_eq!(
            cloud.take_effects(),
            [FleetsChanged(vec![fleet]), DevicesChanged(vec![device])]
        );
    })
    .await;
}
