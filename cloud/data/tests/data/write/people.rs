//! Organizations, their members, and invites (docs/spec/cloud.md#model-organizations,
//! docs/spec/cloud.md#model-invites).

use data::SystemPurpose;
use data::query::Caller;
use resources::Role;
use serde_json::{Value, json};

use super::cloud::{Cloud, conflict, no_rights, on_clouds, refused, with};

/// Returns the number of a role of members.
async fn role(cloud: &Cloud, name: &str) -> i64 {
    let url = format!("/organization_membership_role(name='{name}')?$select=id");
    let rows = cloud
        .get(&Caller::Platform(SystemPurpose::Rules), &url)
        .await;
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
            .made(&Caller::Platform(SystemPurpose::Rules), "organization_membership", body)
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
        // With another administrator, this one is no longer needed.
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

/// Returns the number of a role in a shared fleet.
async fn fleet_role(cloud: &Cloud, name: &str) -> i64 {
    let url = format!("/application_membership_role(name='{name}')?$select=id");
    let rows = cloud
        .get(&Caller::Platform(SystemPurpose::Rules), &url)
        .await;
    rows[0]["id"].as_i64().expect("a role")
}

/// Returns what a user may do with a fleet and its device: read, change the device, change the fleet, change its
/// release.
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
async fn a_team_member_may_do_what_the_role_of_the_team_allows() {
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
        cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "team_membership",
                body,
            )
            .await;
        assert_eq!(may(&cloud, &bob, fleet, device, release).await, nothing);
        let body = json!({"team": team, "grants_access_to__application": fleet});
        let access = cloud
            .made(&cloud.ann, "team_application_access", body.clone())
            .await;
        let access = format!("/team_application_access({access})");
        // A share without a role makes developers.
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
        // He is not an administrator: he cannot add members, nor share a fleet with the team, not even his own.
        let more = json!({"user": user(&cloud.ann), "is_member_of__team": team});
        let added = cloud.post(&bob, "team_membership", more).await;
        assert!(added.is_err(), "{added:?}");
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
async fn a_user_with_a_shared_fleet_may_do_what_the_role_allows() {
    on_clouds(|cloud| async move {
        let bob = cloud.person("bob", None).await;
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "aa").await;
        let body = json!({"user": user(&bob), "is_member_of__application": fleet});
        let shared = cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "user_application_membership",
                body,
            )
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
            // Users cannot raise their own role.
            let role =
                json!({"application_membership_role": fleet_role(&cloud, "developer").await});
            assert_eq!(cloud.patch(&bob, &at, role).await.unwrap(), 0);
        }
        // As it was before roles existed.
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
        // An ordinary member can neither see it nor create one.
        let member = json!({"user": user(&bob), "is_member_of__organization": organization});
        cloud.made(&Caller::Platform(SystemPurpose::Rules), "organization_membership", member).await;
        for resource in ["organization_invite", "application_invite", "invitee"] {
            assert_eq!(cloud.get(&bob, &format!("/{resource}")).await, json!([]), "{resource}");
        }
        let other = with(invite.clone(), json!({"invitee": "x@example.com"}));
        no_rights(cloud.post(&bob, "organization_invite", other).await);
        let of_fleet = json!({"invitee": "eve@example.com", "is_invited_to__application": fleet});
        no_rights(cloud.post(&bob, "application_invite", of_fleet.clone()).await);
        cloud.made(&cloud.ann, "application_invite", of_fleet).await;
        assert_eq!(cloud.count("invitee").await, 1);
        // An expired one makes room for another.
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
async fn everybody_may_read_few_fields_of_a_public_device() {
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

#[tokio::test]
async fn nobody_is_added_who_has_accepted_no_invite() {
    on_clouds(|cloud| async move {
        let (bob, eve) = (
            cloud.person("bob", None).await,
            cloud.person("eve", None).await,
        );
        let (fleet, other) = (cloud.fleet("pump").await, cloud.fleet("valve").await);
        let organization = cloud.link("application", fleet, "organization").await;
        let body = json!({"name": "night shift", "belongs_to__organization": organization});
        let team = cloud.made(&cloud.ann, "team", body).await;
        let memberships = [
            (
                "organization_membership",
                "is_member_of__organization",
                organization,
            ),
            (
                "user_application_membership",
                "is_member_of__application",
                other,
            ),
            ("team_membership", "is_member_of__team", team),
        ];
        let of = |resource: &'static str, link: &str, to: i64, who: (&str, Value)| {
            (resource, json!({who.0: who.1, link: to}))
        };
        let answer = async |(resource, body): (&'static str, Value)| {
            format!("{:?}", cloud.post(&cloud.ann, resource, body).await)
        };
        for (resource, link, to) in memberships {
            let unknown = answer(of(resource, link, to, ("user", json!(9999)))).await;
            let bobs = answer(of(resource, link, to, ("user", json!(user(&bob))))).await;
            assert!(bobs.starts_with("Err"), "{resource}: {bobs}");
            assert_eq!(
                bobs.replace(&user(&bob).to_string(), "9999"),
                unknown,
                "who is there is not told"
            );
            let unknown = answer(of(resource, link, to, ("username", json!("nobody")))).await;
            let bobs = answer(of(resource, link, to, ("username", json!("bob")))).await;
            assert!(bobs.starts_with("Err"), "{resource}: {bobs}");
            assert_eq!(bobs, unknown, "who is there is not told");
        }
        // A user who accepted an invite to one fleet is known to the organization: other memberships may follow.
        let share = json!({"user": user(&bob), "is_member_of__application": fleet});
        cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "user_application_membership",
                share,
            )
            .await;
        for (resource, link, to) in memberships {
            let (resource, body) = of(resource, link, to, ("username", json!("BOB")));
            let made = cloud.post(&cloud.ann, resource, body).await;
            if resource == "organization_membership" {
                no_rights(made);
            } else {
                made.unwrap();
            }
        }
        // Her other organization does not know him, nor does this one know eve.
        let body = json!({"name": "other", "handle": "other"});
        let second = cloud.made(&cloud.ann, "organization", body).await;
        let board = cloud.board("raspberrypi4-64").await;
        let body =
            json!({"app_name": "gate", "organization": second, "is_for__device_type": board});
        let gate = cloud.made(&cloud.ann, "application", body).await;
        let body = json!({"user": user(&bob), "is_member_of__application": gate});
        no_rights(
            cloud
                .post(&cloud.ann, "user_application_membership", body)
                .await,
        );
        let body = json!({"name": "day shift", "belongs_to__organization": second});
        let second = cloud.made(&cloud.ann, "team", body).await;
        let body = json!({"user": user(&bob), "is_member_of__team": second});
        no_rights(cloud.post(&cloud.ann, "team_membership", body).await);
        let body = json!({"user": user(&eve), "is_member_of__team": team});
        assert!(
            cloud
                .post(&cloud.ann, "team_membership", body)
                .await
                .is_err()
        );
        // And an existing row cannot be transferred to another user.
        let at = format!(
            "/team_membership(user={},is_member_of__team={team})",
            user(&bob)
        );
        cloud
            .patch(
                &cloud.ann,
                &at,
                json!({"user": user(&eve), "is_member_of__team": second}),
            )
            .await
            .unwrap();
        assert_eq!(
            cloud
                .count(&format!("team_membership?$filter=user eq {}", user(&eve)))
                .await,
            0
        );
        assert_eq!(
            cloud
                .count(&format!(
                    "team_membership?$filter=is_member_of__team eq {second}"
                ))
                .await,
            0
        );
    })
    .await;
}

#[tokio::test]
async fn addresses_are_shown_to_their_owner_and_to_administrators_of_both() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let organization = cloud.link("application", fleet, "organization").await;
        let (bob, eve) = (
            cloud.person("bob", None).await,
            cloud.person("eve", None).await,
        );
        let member = json!({"user": user(&bob), "is_member_of__organization": organization});
        cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "organization_membership",
                member,
            )
            .await;
        let share = json!({"user": user(&eve), "is_member_of__application": fleet});
        cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "user_application_membership",
                share,
            )
            .await;
        let (ann, bob, eve) = (("ann", cloud.ann.clone()), ("bob", bob), ("eve", eve));
        let key = Caller::Holder {
            role: Role::UserKey,
            actor: None,
            user: Some(user(&bob.1)),
        };
        for ((name, caller), of, expected) in [
            (&ann, &ann, Some("ann@acme.example")),
            (&ann, &bob, Some("bob@example.com")),
            (&ann, &eve, None),
            (&bob, &bob, Some("bob@example.com")),
            (&bob, &ann, None),
            (&bob, &eve, None),
            (&eve, &eve, Some("eve@example.com")),
            (&("bob's key", key), &ann, None),
        ] {
            let url = format!("/user({})?$select=username,email", user(&of.1));
            let rows = cloud.get(caller, &url).await;
            assert_eq!(
                rows[0],
                json!({"username": of.0, "email": expected}),
                "{name} {}",
                of.0
            );
            // Nor can it be found by guessing.
            let address = cloud.field("user", user(&of.1), "email").await;
            let address = address.as_str().unwrap();
            for filter in [
                format!("email eq '{address}'"),
                format!("startswith(email,'{}')", of.0),
            ] {
                let found = cloud
                    .get(caller, &format!("/user?$select=id&$filter={filter}"))
                    .await;
                let expected = usize::from(expected.is_some());
                assert_eq!(found.as_array().unwrap().len(), expected, "{name} {filter}");
            }
            let found = cloud
                .get(caller, &format!("/user(email='{address}')?$select=id"))
                .await;
            assert_eq!(
                found.as_array().unwrap().len(),
                usize::from(expected.is_some()),
                "{name}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn values_of_variables_are_shown_to_those_who_may_change_them() {
    on_clouds(|cloud| async move {
        let fleet = cloud.fleet("pump").await;
        let device = cloud.device(fleet).await;
        let release = cloud.release(fleet, "aa").await;
        let service = cloud.service_in(release, "main").await;
        cloud
            .set(
                &format!("/application({fleet})"),
                json!({"should_be_running__release": release}),
            )
            .await;
        let install = cloud.get(&cloud.ann, "/service_install?$select=id").await[0]["id"].clone();
        let image = cloud.get(&cloud.ann, "/release_image?$select=id").await[0]["id"].clone();
        let variables = [
            (
                "application_environment_variable",
                "application",
                json!(fleet),
                "A",
                false,
            ),
            (
                "application_config_variable",
                "application",
                json!(fleet),
                "PLATFORM_A",
                false,
            ),
            (
                "build_environment_variable",
                "application",
                json!(fleet),
                "A",
                false,
            ),
            (
                "service_environment_variable",
                "service",
                json!(service),
                "A",
                false,
            ),
            (
                "image_environment_variable",
                "release_image",
                image,
                "A",
                false,
            ),
            (
                "device_environment_variable",
                "device",
                json!(device),
                "A",
                true,
            ),
            (
                "device_config_variable",
                "device",
                json!(device),
                "PLATFORM_A",
                true,
            ),
            (
                "device_service_environment_variable",
                "service_install",
                install,
                "A",
                true,
            ),
        ];
        for (resource, of, to, name, _) in &variables {
            let body = json!({*of: to, "name": name, "value": "s3cret"});
            cloud.made(&cloud.ann, resource, body).await;
        }
        let who = cloud.person("bob", None).await;
        let share = json!({"user": user(&who), "is_member_of__application": fleet});
        let share = cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "user_application_membership",
                share,
            )
            .await;
        for role in ["observer", "operator", "developer"] {
            let body = json!({"application_membership_role": fleet_role(&cloud, role).await});
            cloud
                .platform_sets("user_application_membership", share, body)
                .await;
            for (resource, _, _, _, is_of_device) in &variables {
                let sees = role == "developer" || (role == "operator" && *is_of_device);
                let rows = cloud.get(&who, &format!("/{resource}?$select=value")).await;
                let value = if sees { json!("s3cret") } else { json!(null) };
                assert_eq!(rows, json!([{"value": value}]), "{role} {resource}");
                let guessed = format!("/{resource}/$count?$filter=startswith(value,'s3')");
                assert_eq!(
                    cloud.get(&who, &guessed).await,
                    i64::from(sees),
                    "{role} {resource}"
                );
            }
        }
        let key = cloud.device_key(device).await;
        for (resource, ..) in variables
            .iter()
            .filter(|one| one.0 != "build_environment_variable")
        {
            let rows = cloud.get(&key, &format!("/{resource}?$select=value")).await;
            assert_eq!(rows, json!([{"value": "s3cret"}]), "{resource}");
        }
    })
    .await;
}
