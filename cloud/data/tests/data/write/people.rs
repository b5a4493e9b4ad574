//! Organizations, their members, and who is asked to become one (cloud behaviour 1.12, hosted extras of 1.2).

use data::query::Caller;
use serde_json::json;

use super::cloud::{Cloud, on_clouds, refused};

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
