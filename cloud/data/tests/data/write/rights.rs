//! Who may change what (docs/spec/cloud.md#rights).

use data::SystemPurpose;
use data::query::Caller;
use data::write::{WriteError, Writer};
use resources::Role;
use serde_json::json;

use super::cloud::{no_rights, on_clouds, refused};

#[tokio::test]
async fn rows_that_a_caller_may_not_see_cannot_be_changed() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let bob = cloud.person("bob", Some("other")).await;
        let url = format!("/device({device})");
        assert_eq!(
            cloud.patch(&bob, &url, json!({"note": "x"})).await.unwrap(),
            0
        );
        assert_eq!(cloud.delete(&bob, &url).await.unwrap(), 0);
        let gone = cloud.delete(&bob, &format!("/application({fleet})")).await;
        assert!(matches!(gone, Err(WriteError::NotFound(_))), "{gone:?}");
        let tag = json!({"device": device, "tag_key": "a", "value": ""});
        no_rights(cloud.post(&bob, "device_tag", tag.clone()).await);
        no_rights(cloud.post(&Caller::guest(), "device_tag", tag).await);
        let board = cloud.board("intel-nuc").await;
        let body = json!({"belongs_to__application": fleet, "is_of__device_type": board});
        no_rights(cloud.post(&bob, "device", body).await);
    })
    .await;
}

#[tokio::test]
async fn a_link_leads_to_what_the_caller_may_read() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", Some("other")).await;
        let organization = cloud.get(&bob, "/organization?$select=id").await[0]["id"].clone();
        let board = cloud.board("intel-nuc").await;
        let body =
            json!({"app_name": "mine", "organization": organization, "is_for__device_type": board});
        refused(
            cloud.post(&cloud.ann, "application", body.clone()).await,
            &format!("`organization`: there is no `organization` {organization}"),
        );
        let fleet = cloud.made(&bob, "application", body).await;
        let release = cloud.release(cloud.fleet("pump").await, "a1").await;
        refused(
            cloud
                .patch(
                    &bob,
                    &format!("/application({fleet})"),
                    json!({"should_be_running__release": release}),
                )
                .await,
            &format!("there is no `release` {release}"),
        );
        refused(
            cloud
                .patch(
                    &bob,
                    &format!("/application({fleet})"),
                    json!({"is_for__device_type": 99999}),
                )
                .await,
            "there is no `device_type` 99999",
        );
    })
    .await;
}

#[tokio::test]
async fn a_row_stays_one_that_its_changer_may_change() {
    on_clouds(|cloud| async move {
        // A member of another organization, with whom one fleet is shared, may not move it there.
        let fleet = cloud.fleet("pump").await;
        let bob = cloud.person("bob", Some("other")).await;
        let Caller::Holder { user, .. } = bob else {
            panic!("bob is a user")
        };
        let share = json!({"user": user, "is_member_of__application": fleet});
        cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "user_application_membership",
                share,
            )
            .await;
        let url = format!("/application({fleet})");
        assert_eq!(
            cloud
                .patch(&bob, &url, json!({"is_archived": true}))
                .await
                .unwrap(),
            1
        );
        // A device key may change its own device, but not the device's owner.
        let device = cloud.device(fleet).await;
        let other = cloud.device(fleet).await;
        let key = cloud.device_key(device).await;
        let tag = |device: i64| json!({"device": device, "tag_key": "a", "value": ""});
        cloud.made(&key, "device_tag", tag(device)).await;
        no_rights(cloud.post(&key, "device_tag", tag(other)).await);
        let moved = cloud
            .patch(
                &key,
                &format!("/device_tag(device={device},tag_key='a')"),
                json!({"device": other}),
            )
            .await;
        assert!(moved.is_err(), "{moved:?}");
    })
    .await;
}

#[tokio::test]
async fn fields_take_the_word_of_those_who_know() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let url = format!("/device({device})");
        let message =
            json!({"status": "Idle", "is_online": true, "uuid": "a".repeat(32), "note": "x"});
        cloud.set(&url, message.clone()).await;
        assert_eq!(cloud.field("device", device, "status").await, json!(null));
        assert_eq!(cloud.field("device", device, "note").await, "x");
        let key = cloud.device_key(device).await;
        cloud.patch(&key, &url, message.clone()).await.unwrap();
        assert_eq!(cloud.field("device", device, "status").await, "Idle");
        assert_eq!(cloud.field("device", device, "is_online").await, false);
        assert_ne!(cloud.field("device", device, "uuid").await, "a".repeat(32));
        cloud.platform_sets("device", device, message).await;
        assert_eq!(cloud.field("device", device, "is_online").await, true);
    })
    .await;
}

#[tokio::test]
async fn a_provisioning_key_makes_devices_in_its_fleet_alone() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let key = Caller::Holder {
            role: Role::ProvisioningKey,
            actor: Some(cloud.link("application", fleet, "actor").await),
            user: None,
        };
        let board = cloud.board("raspberrypi4-64").await;
        let body =
            |fleet: i64| json!({"belongs_to__application": fleet, "is_of__device_type": board});
        cloud.made(&key, "device", body(fleet)).await;
        no_rights(cloud.post(&key, "device", body(other)).await);
        let request = odata::parse("/application", None).unwrap();
        let setting = cloud.setting(&key, cloud.later());
        let read = data::query::read(&setting, &request);
        assert!(read.is_ok(), "public fleets are a guest's to read");
        assert_eq!(
            cloud.get(&key, &format!("/application({fleet})")).await,
            json!([])
        );
        let none = json!({"is_of__device_type": board});
        no_rights(cloud.post(&key, "device", none).await);
    })
    .await;
}

#[tokio::test]
async fn the_creator_of_an_organization_is_its_administrator() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", None).await;
        let Caller::Holder { user, .. } = bob else {
            panic!("bob is a user")
        };
        let organization = cloud
            .made(&cloud.ann, "organization", json!({"name": "New", "handle": "new"}))
            .await;
        let membership = json!({"user": user, "is_member_of__organization": organization});
        no_rights(cloud.post(&bob, "organization_membership", membership.clone()).await);
        no_rights(cloud.post(&cloud.ann, "organization_membership", membership.clone()).await);
        let membership = cloud.made(&Caller::Platform(SystemPurpose::Rules), "organization_membership", membership).await;
        let rows = cloud
            .get(
                &bob,
                &format!(
                    "/organization_membership({membership})?$expand=organization_membership_role($select=name)"
                ),
            )
            .await;
        assert_eq!(rows[0]["organization_membership_role"][0]["name"], "member");
        let url = format!("/organization({organization})");
        assert_eq!(cloud.patch(&bob, &url, json!({"name": "Mine"})).await.unwrap(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_device_that_registers_says_what_it_is_by_the_key_of_its_fleet() {
    on_clouds(|cloud| async move {
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let key = Caller::Holder {
            role: Role::ProvisioningKey,
            actor: Some(cloud.link("application", fleet, "actor").await),
            user: None,
        };
        let board = cloud.board("raspberrypi4-64").await;
        let register = async |fleet: i64| {
            let body = json!({
                "belongs_to__application": fleet, "is_of__device_type": board, "os_version": "2.12.0 (dev)",
                "supervisor_version": "1.0.0", "mac_address": "AA:BB",
            });
            let mut transaction = cloud.database.begin().await.unwrap();
            let setting = cloud.setting(&key, cloud.later());
            let mut writer = Writer::new(&mut transaction, setting, &cloud.environment).with_reports();
            let made = writer.create("device", body.as_object().unwrap()).await;
            if made.is_ok() {
                transaction.commit().await.unwrap();
            }
            made
        };
        let device = register(fleet).await.unwrap();
        assert_eq!(cloud.field("device", device, "os_version").await, "2.12.0");
        assert_eq!(cloud.field("device", device, "os_variant").await, "dev");
        assert_eq!(cloud.field("device", device, "mac_address").await, "AA:BB");
        assert!(register(other).await.is_err());
        assert_eq!(cloud.count("device").await, 1);
    })
    .await;
}

#[tokio::test]
async fn a_device_is_put_where_somebody_sees_it() {
    on_clouds(|cloud| async move {
        let device = cloud.device(cloud.fleet("pump").await).await;
        let url = format!("/device({device})");
        let nowhere = json!({"belongs_to__application": null});
        no_rights(cloud.patch(&cloud.ann, &url, nowhere.clone()).await);
        let board = cloud.board("raspberrypi4-64").await;
        let body = json!({"is_of__device_type": board});
        no_rights(cloud.post(&cloud.ann, "device", body).await);
        // The platform may; then only the device itself can see it.
        cloud.platform_sets("device", device, nowhere).await;
        assert_eq!(cloud.get(&cloud.ann, &url).await, json!([]));
        let key = cloud.device_key(device).await;
        assert_eq!(cloud.get(&key, &url).await[0]["id"], device);
    })
    .await;
}
