//! A row's owner changes only if both sides agree, and a device reports only its own state
//! (docs/spec/cloud.md#odata-ownership).

use data::SystemPurpose;
use data::query::Caller;
use serde_json::{Value, json};

use super::cloud::{Cloud, no_rights, on_clouds};

fn number(caller: &Caller) -> i64 {
    let Caller::Holder { user, .. } = caller else {
        panic!("a user")
    };
    user.expect("a user")
}

/// Returns the organization of a user.
async fn organization(cloud: &Cloud, who: &Caller) -> i64 {
    let rows = cloud.get(who, "/organization?$select=id").await;
    rows[0]["id"].as_i64().expect("an organization")
}

/// Shares a fleet of the administrator with a user.
async fn share(cloud: &Cloud, fleet: i64, with: &Caller, role: &str) {
    let url = format!("/application_membership_role?$select=id&$filter=name eq '{role}'");
    let role = cloud
        .get(&Caller::Platform(SystemPurpose::Rules), &url)
        .await[0]["id"]
        .clone();
    let body = json!({
        "user": number(with), "is_member_of__application": fleet, "application_membership_role": role,
    });
    cloud
        .made(
            &Caller::Platform(SystemPurpose::Rules),
            "user_application_membership",
            body,
        )
        .await;
}

/// Creates a fleet in a user's organization.
async fn fleet_of(cloud: &Cloud, who: &Caller, organization: i64, name: &str) -> i64 {
    let board = cloud.board("raspberrypi4-64").await;
    let body = json!({
        "app_name": name, "organization": organization, "is_for__device_type": board, "is_public": true,
    });
    cloud.made(who, "application", body).await
}

#[tokio::test]
async fn a_fleet_is_given_away_by_administrators_of_both_organizations() {
    on_clouds(|cloud| async move {
        let acme = organization(&cloud, &cloud.ann).await;
        let fleet = cloud.fleet("pump").await;
        let url = format!("/application({fleet})");
        // A developer of the fleet, and an ordinary member of its organization, each with their own organization.
        let developer = cloud.person("eve", Some("eve")).await;
        share(&cloud, fleet, &developer, "developer").await;
        let member = cloud.person("mel", Some("mel")).await;
        let membership = json!({"user": number(&member), "is_member_of__organization": acme});
        cloud.made(&Caller::Platform(SystemPurpose::Rules), "organization_membership", membership).await;
        let own = cloud.get(&member, "/organization(handle='mel')?$select=id").await[0]["id"].as_i64();
        let mut into = vec![(developer.clone(), organization(&cloud, &developer).await)];
        into.push((member, own.expect("an organization")));
        for (thief, own) in &into {
            assert_eq!(cloud.patch(thief, &url, json!({"is_archived": true})).await.unwrap(), 1);
            no_rights(cloud.patch(thief, &url, json!({"organization": own})).await);
            let body = json!({
                "app_name": "pump", "organization": own, "is_for__device_type": cloud.board("raspberrypi4-64").await,
            });
            no_rights(cloud.put(thief, &url, body).await);
            let all = format!("/application?$filter=id in ({fleet})");
            no_rights(cloud.patch(thief, &all, json!({"organization": own})).await);
        }
        assert_eq!(cloud.link("application", fleet, "organization").await, acme);
        // Nor into one of which the caller is only an ordinary member.
        let (_, hers) = into[0].clone();
        let membership = json!({"user": number(&cloud.ann), "is_member_of__organization": hers});
        cloud.made(&Caller::Platform(SystemPurpose::Rules), "organization_membership", membership).await;
        no_rights(cloud.patch(&cloud.ann, &url, json!({"organization": hers})).await);
        let other = json!({"name": "other", "handle": "other"});
        let other = cloud.made(&cloud.ann, "organization", other).await;
        cloud.set(&url, json!({"organization": other})).await;
        assert_eq!(cloud.field("application", fleet, "slug").await, "other/pump");
    })
    .await;
}

#[tokio::test]
async fn operators_and_observers_move_no_device() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let url = format!("/device({device})");
        for (name, role) in [("olaf", "operator"), ("olga", "observer")] {
            let who = cloud.person(name, Some(name)).await;
            let own = fleet_of(&cloud, &who, organization(&cloud, &who).await, "mine").await;
            share(&cloud, fleet, &who, role).await;
            let moved = cloud
                .patch(&who, &url, json!({"belongs_to__application": own}))
                .await;
            // For a caller who may change no device, there is none to change.
            if role == "operator" {
                no_rights(moved);
            } else {
                assert_eq!(moved.unwrap(), 0);
            }
        }
        // A developer of both fleets may move it.
        let eve = cloud.person("eve", Some("eve")).await;
        share(&cloud, fleet, &eve, "developer").await;
        let own = fleet_of(&cloud, &eve, organization(&cloud, &eve).await, "mine").await;
        assert_eq!(
            cloud
                .link("device", device, "belongs_to__application")
                .await,
            fleet
        );
        assert_eq!(
            cloud
                .patch(&eve, &url, json!({"belongs_to__application": own}))
                .await
                .unwrap(),
            1
        );
        no_rights(
            cloud
                .patch(
                    &eve,
                    "/device?$filter=true",
                    json!({"belongs_to__application": null}),
                )
                .await,
        );
    })
    .await;
}

#[tokio::test]
async fn rows_of_a_fleet_or_device_go_to_none_that_one_may_not_change() {
    on_clouds(|cloud| async move {
        let eve = cloud.person("eve", Some("eve")).await;
        let hers = organization(&cloud, &eve).await;
        let public = fleet_of(
            &cloud,
            &cloud.ann,
            organization(&cloud, &cloud.ann).await,
            "open",
        )
        .await;
        let own = fleet_of(&cloud, &eve, hers, "mine").await;
        let variable = json!({"application": own, "name": "A", "value": "1"});
        let variable = cloud
            .made(&eve, "application_environment_variable", variable)
            .await;
        let tag = json!({"application": own, "tag_key": "a", "value": "1"});
        let tag = cloud.made(&eve, "application_tag", tag).await;
        let service = json!({"application": own, "service_name": "main"});
        let service = cloud.made(&eve, "service", service).await;
        let release = cloud
            .made(&eve, "release", cloud.release_body(own, "c0ffee"))
            .await;
        for (url, link) in [
            (
                format!("/application_environment_variable({variable})"),
                "application",
            ),
            (format!("/application_tag({tag})"), "application"),
            (format!("/service({service})"), "application"),
            (format!("/release({release})"), "belongs_to__application"),
        ] {
            no_rights(cloud.patch(&eve, &url, json!({link: public})).await);
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_cannot_move_itself_or_change_its_target() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "a1").await;
        let eve = cloud.person("eve", Some("eve")).await;
        let public = fleet_of(&cloud, &eve, organization(&cloud, &eve).await, "open").await;
        let (key, url) = (cloud.device_key(device).await, format!("/device({device})"));
        cloud
            .platform_sets("device", device, json!({"api_heartbeat_state": "online"}))
            .await;
        let row = async || -> Value { cloud.get(&cloud.ann, &url).await[0].clone() };
        let before = row().await;
        let values = [
            ("belongs_to__application", json!(public)),
            ("belongs_to__application", json!(null)),
            (
                "is_of__device_type",
                json!(cloud.board("raspberrypi5").await),
            ),
            ("device_name", json!("mine")),
            ("note", json!("mine")),
            ("local_id", json!("mine")),
            ("is_pinned_on__release", json!(release)),
            ("should_be_operated_by__release", json!(release)),
            ("should_be_managed_by__release", json!(release)),
            ("is_active", json!(false)),
            ("is_locked_until__date", json!("2030-01-01T00:00:00Z")),
            ("is_web_accessible", json!(true)),
            (
                "is_accessible_by_support_until__date",
                json!("2030-01-01T00:00:00Z"),
            ),
            ("custom_latitude", json!("1")),
            ("custom_longitude", json!("1")),
            ("is_connected_to_vpn", json!(true)),
            ("uuid", json!("a".repeat(32))),
        ];
        for (field, value) in values {
            cloud
                .patch(&key, &url, json!({field: value}))
                .await
                .unwrap();
            assert_eq!(row().await[field], before[field], "{field}");
        }
        // What it reports is accepted.
        cloud
            .patch(&key, &url, json!({"status": "Idle", "cpu_usage": 7}))
            .await
            .unwrap();
        assert_eq!(row().await["cpu_usage"], 7);
    })
    .await;
}

#[tokio::test]
async fn a_device_is_named_and_pinned_by_what_it_was_set_up_with_alone() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "a1").await;
        let (key, url) = (cloud.device_key(device).await, format!("/device({device})"));
        let set_up = json!({"device_name": "roof", "is_pinned_on__release": release});
        cloud.patch(&key, &url, set_up).await.unwrap();
        assert_eq!(cloud.field("device", device, "device_name").await, "roof");
        assert_eq!(
            cloud.link("device", device, "is_pinned_on__release").await,
            release
        );
        // From its first poll on, it can no longer write these fields.
        cloud
            .platform_sets("device", device, json!({"api_heartbeat_state": "online"}))
            .await;
        let again =
            json!({"device_name": "cellar", "is_pinned_on__release": null, "status": "Idle"});
        cloud.patch(&key, &url, again).await.unwrap();
        assert_eq!(cloud.field("device", device, "device_name").await, "roof");
        assert_eq!(
            cloud.link("device", device, "is_pinned_on__release").await,
            release
        );
        assert_eq!(cloud.field("device", device, "status").await, "Idle");
    })
    .await;
}
