//! Organizations, their members, and who is asked to become one (cloud behaviour 1.12, hosted extras of 1.2).

use data::query::Caller;
use serde_json::json;

use super::cloud::{Cloud, conflict, no_rights, on_clouds, refused, with};

/// The number of a role of members.
async fn role(cloud: &Cloud, name: &str) -> i64 {
    let url = format!("/organization_membership_role(name='{name}')?$select=id");
    let rows = cloud.get(&Caller::Platform, &url).await;
    rows[0]["id"].as_i64().expect("a role")
}

fn user(caller: &Caller) -> i64 {
    match caller {
        Caller::Holder {
            user: Some(user), ..
        } => *user,
        _ => panic!("no user"),
    }
}

#[tokio::test]
async fn an_organization_keeps_an_administrator() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", None).await;
        let (member, administrator) = (
            role(&cloud, "member").await,
            role(&cloud, "administrator").await,
        );
        let organization = cloud
            .made(
                &cloud.ann,
                "organization",
                json!({"name": "New", "handle": "new"}),
            )
            .await;
        let body = json!({"user": user(&bob), "is_member_of__organization": organization});
        let bobs = cloud
            .made(&cloud.ann, "organization_membership", body)
            .await;
        let of = |who: &Caller| {
            let user = user(who);
            format!(
                "/organization_membership?$filter=user eq {user} and is_member_of__organization eq {organization}"
            )
        };
        let (anns, why) = (
            of(&cloud.ann),
            "`new` would be left without an administrator",
        );
        let demoted = json!({"organization_membership_role": member});
        refused(
            cloud.patch(&cloud.ann, &anns, demoted.clone()).await,
            why,
        );
        refused(cloud.delete(&cloud.ann, &anns).await, why);
        let all = format!(
            "/organization_membership?$filter=is_member_of__organization eq {organization}"
        );
        refused(cloud.delete(&cloud.ann, &all).await, why);
        // With another there is no need of this one.
        let promoted = json!({"organization_membership_role": administrator});
        let at = format!("/organization_membership({bobs})");
        assert_eq!(cloud.patch(&cloud.ann, &at, promoted).await.unwrap(), 1);
        assert_eq!(
            cloud.patch(&bob, &anns, demoted).await.unwrap(),
            1
        );
        assert_eq!(cloud.delete(&cloud.ann, &anns).await.unwrap(), 1);
        refused(cloud.delete(&bob, &of(&bob)).await, why);
        let whole = format!("/organization({organization})");
        assert_eq!(cloud.delete(&bob, &whole).await.unwrap(), 1);
    })
    .await;
}

/// The number of a role in a fleet that is shared.
async fn fleet_role(cloud: &Cloud, name: &str) -> i64 {
    let url = format!("/application_membership_role(name='{name}')?$select=id");
    let rows = cloud.get(&Caller::Platform, &url).await;
    rows[0]["id"].as_i64().expect("a role")
}

/// What somebody may do with a fleet and its device: read, change the device, change the fleet, change its release.
async fn may(cloud: &Cloud, who: &Caller, fleet: i64, device: i64, release: i64) -> [bool; 4] {
    let reads = cloud
        .get(who, &format!("/application({fleet})?$select=id"))
        .await;
    let note = json!({"note": "seen"});
    let at = format!("/device({device})");
    let changes = cloud
        .patch(who, &at, note.clone())
        .await
        .expect("a PATCH or DELETE")
        == 1;
    let tag = json!({"device": device, "tag_key": format!("of_{}", user(who)), "value": "x"});
    let tags = cloud.post(who, "device_tag", tag).await;
    assert_eq!(
        tags.is_ok(),
        changes,
        "what belongs to a device goes by the device"
    );
    if tags.is_ok() {
        let own = format!("/device_tag?$filter=tag_key eq 'of_{}'", user(who));
        assert_eq!(cloud.delete(who, &own).await.expect("a PATCH or DELETE"), 1);
    }
    let fleets = json!({"is_archived": false});
    let at = format!("/application({fleet})");
    let fleets = cloud
        .patch(who, &at, fleets)
        .await
        .expect("a PATCH or DELETE")
        == 1;
    let at = format!("/release({release})");
    let releases = cloud
        .patch(who, &at, note)
        .await
        .expect("a PATCH or DELETE")
        == 1;
    [
        reads.as_array().expect("rows").len() == 1,
        changes,
        fleets,
        releases,
    ]
}

#[tokio::test]
async fn who_reaches_a_fleet_through_a_team_does_what_the_role_of_the_team_allows() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", Some("other")).await;
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "aa").await;
        let nothing = [false, false, false, false];
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, nothing);
        let organization = cloud.link("application", fleet, "organization").await;
        let body = json!({"name": "field service", "belongs_to__organization": organization});
        let team = cloud.made(&cloud.ann, "team", body).await;
        let body = json!({"user": user(&bob), "is_member_of__team": team});
        cloud.made(&cloud.ann, "team_membership", body).await;
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, nothing);
        let body = json!({"team": team, "grants_access_to__application": fleet});
        let access = cloud
            .made(&cloud.ann, "team_application_access", body.clone())
            .await;
        let access = format!("/team_application_access({access})");
        // Whoever says nothing of a role means developers.
        let all = [true, true, true, true];
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, all);
        let direct = "/application?$filter=is_directly_accessible_by__user/any(u:true)&$select=id";
        let rows = cloud.get(&bob, direct).await;
        assert_eq!(rows, json!([{"id": fleet}]));
        for (name, expected) in [
            ("observer", [true, false, false, false]),
            ("operator", [true, true, false, false]),
            ("developer", all),
        ] {
            let role = json!({"application_membership_role": fleet_role(&cloud, name).await});
            assert_eq!(cloud.patch(&cloud.ann, &access, role).await.unwrap(), 1);
            let got = may(&cloud, &bob, fleet, device, release).await;
            assert_eq!(got, expected, "{name}");
        }
        // He is no administrator: he adds nobody, and gives the team no fleet, not even his own.
        let more = json!({"user": user(&cloud.ann), "is_member_of__team": team});
        no_rights(cloud.post(&bob, "team_membership", more).await);
        let other = cloud
            .get(&bob, "/organization(handle='other')?$select=id")
            .await;
        let own = json!({
            "app_name": "mine", "organization": other[0]["id"],
            "is_for__device_type": cloud.board("raspberrypi4-64").await,
        });
        let own = cloud.made(&bob, "application", own).await;
        let given = json!({"team": team, "grants_access_to__application": own});
        no_rights(cloud.post(&bob, "team_application_access", given).await);
        let own = format!("/team_membership?$filter=user eq {}", user(&bob));
        assert_eq!(cloud.delete(&bob, &own).await.unwrap(), 1);
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, nothing);
        assert_eq!(cloud.get(&bob, "/team").await, json!([]));
    })
    .await;
}

#[tokio::test]
async fn who_a_fleet_is_shared_with_does_what_the_role_allows() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", None).await;
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "aa").await;
        let body = json!({"user": user(&bob), "is_member_of__application": fleet});
        let shared = cloud
            .made(&cloud.ann, "user_application_membership", body)
            .await;
        let at = format!("/user_application_membership({shared})");
        let all = [true, true, true, true];
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, all);
        for (name, expected) in [
            ("observer", [true, false, false, false]),
            ("operator", [true, true, false, false]),
        ] {
            let role = json!({"application_membership_role": fleet_role(&cloud, name).await});
            assert_eq!(cloud.patch(&cloud.ann, &at, role.clone()).await.unwrap(), 1);
            let got = may(&cloud, &bob, fleet, device, release).await;
            assert_eq!(got, expected, "{name}");
            // Nobody raises themself.
            let role =
                json!({"application_membership_role": fleet_role(&cloud, "developer").await});
            assert_eq!(cloud.patch(&bob, &at, role).await.unwrap(), 0);
        }
        // As it was before there were roles.
        cloud
            .platform_sets(
                "user_application_membership",
                shared,
                json!({"application_membership_role": null}),
            )
            .await;
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, all);
    })
    .await;
}

#[tokio::test]
async fn an_invite_is_made_for_an_address_and_seen_by_administrators_alone() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", None).await;
        let fleet = cloud.fleet("pump").await;
        let organization = cloud.link("application", fleet, "organization").await;
        let invite = json!({
            "invitee": "Eve@Example.com", "is_invited_to__organization": organization, "message": "join us",
            "invitation_token": "mine", "expiry_date": "2099-01-01T00:00:00Z",
        });
        let id = cloud.made(&cloud.ann, "organization_invite", invite.clone()).await;
        let url = format!("/organization_invite({id})?$expand=invitee($select=email),organization_membership_role($select=name)");
        let row = cloud.get(&cloud.ann, &url).await[0].clone();
        assert_eq!(row["invitee"][0]["email"], "eve@example.com");
        assert_eq!(row["organization_membership_role"][0]["name"], "member");
        assert_eq!(row["invitation_token"].as_str().unwrap().len(), 32);
        assert!(row["expiry_date"].as_str().unwrap() < "2027", "{row}");
        conflict(
            cloud.post(&cloud.ann, "organization_invite", invite.clone()).await,
            "\"invitee\" and \"is_invited_to__organization\" must be unique.",
        );
        for wrong in [json!(null), json!(id), json!("nobody")] {
            let body = with(invite.clone(), json!({"invitee": wrong}));
            refused(cloud.post(&cloud.ann, "organization_invite", body).await, "`");
        }
        // An ordinary member neither sees it nor makes one.
        let member = json!({"user": user(&bob), "is_member_of__organization": organization});
        cloud.made(&cloud.ann, "organization_membership", member).await;
        for resource in ["organization_invite", "application_invite", "invitee"] {
            assert_eq!(cloud.get(&bob, &format!("/{resource}")).await, json!([]), "{resource}");
        }
        let other = with(invite.clone(), json!({"invitee": "x@example.com"}));
        no_rights(cloud.post(&bob, "organization_invite", other).await);
        let of_fleet = json!({"invitee": "eve@example.com", "is_invited_to__application": fleet});
        no_rights(cloud.post(&bob, "application_invite", of_fleet.clone()).await);
        cloud.made(&cloud.ann, "application_invite", of_fleet).await;
        assert_eq!(cloud.count("invitee").await, 1);
        // One that is over makes room for another.
        cloud.platform_sets("organization_invite", id, json!({"expiry_date": 1})).await;
        let again = cloud.made(&cloud.ann, "organization_invite", invite).await;
        assert_ne!(again, id);
        assert_eq!(cloud.count("organization_invite").await, 1);
        let revoked = cloud.delete(&cloud.ann, &format!("/organization_invite({again})")).await;
        assert_eq!(revoked.unwrap(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_everybody_may_know_of_a_public_device_is_little() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        cloud.device(fleet).await;
        let guest = Caller::guest();
        let public = json!({"is_public": true});
        cloud.set(&format!("/application({fleet})"), public).await;
        assert_eq!(cloud.get(&guest, "/public_device").await, json!([]));
        let found = json!({"is_discoverable": true});
        cloud.set(&format!("/application({fleet})"), found).await;
        let url = format!("/application({fleet})?$select=id&$expand=owns__public_device");
        let row = cloud.get(&guest, &url).await[0]["owns__public_device"][0].clone();
        let mut names: Vec<_> = row.as_object().unwrap().keys().cloned().collect();
        names.sort();
        assert_eq!(
            names,
            [
                "belongs_to__application",
                "id",
                "is_of__device_type",
                "latitude",
                "longitude",
                "was_recently_online"
            ]
        );
        assert_eq!(row["was_recently_online"], false);
        assert_eq!(row["latitude"], json!(null));
    })
    .await;
}
