//! The initial contents of a new database.

use data::SystemPurpose;
use data::catalogue::{CATALOGUE, Catalogue};
use data::query::Caller;
use serde_json::json;

use super::cloud::on_clouds;

#[tokio::test]
async fn each_board_is_known_by_its_slug_and_its_aliases() {
    on_clouds(|cloud| async move {
        let guest = Caller::guest();
        for name in ["raspberrypi4-64", "rpi4", "generic-amd64", "x86_64"] {
            let url = format!(
                "/device_type?$select=slug&$filter=device_type_alias/any(a:a/is_referenced_by__alias eq '{name}')"
            );
            assert_eq!(cloud.get(&guest, &url).await.as_array().unwrap().len(), 1, "{name}");
        }
        let boards = cloud.count("device_type").await;
        assert!(boards > 40, "{boards}");
        let aliases = cloud.get(&guest, "/device_type_alias?$select=is_referenced_by__alias").await;
        let aliases = aliases.to_string();
        for row in cloud.get(&guest, "/device_type?$select=slug").await.as_array().unwrap() {
            assert!(aliases.contains(&row["slug"].to_string()), "{row}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_second_start_adds_what_is_new_and_changes_nothing() {
    on_clouds(|cloud| async move {
        let before = cloud.count("device_type").await;
        cloud
            .patch(&Caller::Platform(SystemPurpose::Rules), "/device_type(slug='intel-nuc')", json!({"name": "My NUC"}))
            .await
            .unwrap();
        let more = format!(
            "{CATALOGUE}\n[[device_type]]\nslug = \"my-board\"\nname = \"Mine\"\narchitecture = \"amd64\"\n"
        );
        let catalogue: Catalogue = more.parse().unwrap();
        for _ in 0..2 {
            cloud
                .database
                .add_catalogue(&catalogue, &cloud.environment, cloud.later())
                .await
                .unwrap();
        }
        assert_eq!(cloud.count("device_type").await, before + 1);
        let nuc = cloud.board("intel-nuc").await;
        assert_eq!(cloud.field("device_type", nuc, "name").await, "My NUC");
    })
    .await;
}

#[tokio::test]
async fn there_is_one_first_user() {
    on_clouds(|cloud| async move {
        let again = data::catalogue::FirstUser {
            organization: "again".to_owned(),
            username: "again".to_owned(),
            email: "again@example.com".to_owned(),
            password_hash: "x".to_owned(),
        };
        let made = cloud
            .database
            .first_user(&again, &cloud.environment, cloud.later())
            .await
            .unwrap();
        assert_eq!(made, None);
        let rows = cloud.get(&cloud.ann, "/organization?$select=handle").await;
        assert_eq!(rows, json!([{"handle": "acme"}]));
    })
    .await;
}
