//! The rows that count towards quotas.

use data::Keyring;
use data::write::WriteError;
use serde_json::{Value, json};

use super::cloud::{Cloud, on_clouds};

/// Runs a test on two fleets with room for 100 bytes of variables each, one with encryption keys and one without.
async fn in_each_fleet(test: impl AsyncFn(&Cloud, i64)) {
    let test = &test;
    on_clouds(|mut cloud| async move {
        cloud.environment.quotas.variable_bytes = 100;
        let fleets = [cloud.fleet("pump").await, cloud.fleet("valve").await];
        test(&cloud, fleets[0]).await;
        let line = Keyring::new_line(Some("of-the-test_1.2")).expect("a key");
        cloud.environment.keyring = Keyring::parse(&line).expect("keys");
        test(&cloud, fleets[1]).await;
    })
    .await;
}

async fn variable(
    cloud: &Cloud,
    fleet: i64,
    name: &str,
    value: &str,
    is_secret: bool,
) -> Result<i64, WriteError> {
    let body = json!({"application": fleet, "name": name, "value": value, "is_secret": is_secret});
    cloud
        .post(&cloud.ann, "application_environment_variable", body)
        .await
}

fn over(made: Result<i64, WriteError>, kept: u64) {
    let Err(WriteError::Forbidden(why)) = made else {
        panic!("it is more than the quota: {made:?}");
    };
    assert!(why.contains("`variable_bytes`"), "{why}");
    assert!(why.contains(&format!("would make it {kept};")), "{why}");
}

#[tokio::test]
async fn secret_variables_count_by_the_bytes_that_were_written() {
    in_each_fleet(async |cloud, fleet| {
        // All lengths that base64 encodes with different endings; and values that look encrypted.
        let values = [
            "",
            "a",
            "ab",
            "abc",
            "sealed:",
            "sealed:0:",
            "sealed:1:k:x",
            "é€",
        ];
        let mut bytes = 0;
        for (number, value) in values.iter().enumerate() {
            bytes += value.len() as u64;
            let name = format!("SECRET{number}");
            variable(cloud, fleet, &name, value, true)
                .await
                .expect("room");
        }
        let rest = "x".repeat(100 - bytes as usize);
        over(
            variable(cloud, fleet, "MORE", &format!("{rest}x"), true).await,
            101,
        );
        over(
            variable(cloud, fleet, "MORE", &format!("{rest}x"), false).await,
            101,
        );
        variable(cloud, fleet, "REST", &rest, true)
            .await
            .expect("room");
        over(variable(cloud, fleet, "MORE", "x", true).await, 101);
        let url = format!(
            "/application_environment_variable?$filter=application eq {fleet} and name eq 'REST'"
        );
        cloud
            .set(&url, json!({"value": "", "is_secret": true}))
            .await;
        variable(cloud, fleet, "MORE", "x", true)
            .await
            .expect("room again");
    })
    .await;
}

#[tokio::test]
async fn values_count_by_their_bytes_and_not_by_their_characters() {
    on_clouds(|mut cloud| async move {
        cloud.environment.quotas.variable_bytes = 100;
        cloud.environment.quotas.tag_bytes = 100;
        let fleet = cloud.fleet("pump").await;
        let value = "€".repeat(33);
        variable(&cloud, fleet, "A", &value, false)
            .await
            .expect("99 bytes");
        over(variable(&cloud, fleet, "B", "é", false).await, 101);
        // A value that only looks encrypted counts with its full length.
        let looks = format!("sealed:1:key:{}", "A".repeat(88));
        let other = cloud.fleet("valve").await;
        over(variable(&cloud, other, "A", &looks, false).await, 101);
        let tag = json!({"application": fleet, "tag_key": "t", "value": value});
        cloud.made(&cloud.ann, "application_tag", tag).await;
        let tag = json!({"application": fleet, "tag_key": "u", "value": "é"});
        let made = cloud.post(&cloud.ann, "application_tag", tag).await;
        assert!(matches!(made, Err(WriteError::Forbidden(_))), "{made:?}");
        let there = cloud
            .get(&cloud.ann, "/application_tag?$select=tag_key")
            .await;
        assert_eq!(there, Value::Array(vec![json!({"tag_key": "t"})]));
    })
    .await;
}
