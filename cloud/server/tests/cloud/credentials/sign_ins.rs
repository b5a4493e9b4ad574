//! Guessing of passwords: by many clients, slowly and at once.

use std::time::{Duration, Instant};

use data::testing::{drop_postgres, fresh_postgres};
use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::harness::{Cloud, EMAIL, PASSWORD, on_both};

#[tokio::test]
async fn a_flood_of_sign_ins_is_refused_and_holds_up_nobody_elsewhere() {
    on_both(async |cloud| {
        let flood = (0..600_u16).map(async |number| {
            let name = format!("nobody{number}");
            let answer = cloud.sign_in_from([127, 0, 0, 2], &name, "wrong").await;
            let wait = answer.headers().get("retry-after").cloned();
            (answer.status(), wait)
        });
        let right = async {
            let begun = Instant::now();
            let answer = cloud.sign_in_from([127, 0, 0, 1], EMAIL, PASSWORD).await;
            (answer.status(), begun.elapsed())
        };
        let (flood, (status, took)) = futures::join!(join_all(flood), right);
        assert_eq!(status, StatusCode::OK);
        assert!(took < Duration::from_secs(20), "{took:?}");
        let refused: Vec<_> = flood
            .iter()
            .filter(|(status, _)| *status == StatusCode::TOO_MANY_REQUESTS)
            .collect();
        assert!(
            refused.len() >= 500,
            "{} of 600 were refused",
            refused.len()
        );
        for (_, wait) in refused {
            let wait = wait.as_ref().and_then(|wait| wait.to_str().ok());
            let wait: u32 = wait.and_then(|wait| wait.parse().ok()).expect("seconds");
            assert!((1..=3600).contains(&wait), "{wait}");
        }
    })
    .await;
}

#[tokio::test]
async fn sign_ins_from_many_addresses_wait_in_a_short_line() {
    on_both(async |cloud| {
        let flood = (0..250_u8).map(async |last| {
            let answer = cloud
                .sign_in_from([127, 0, 1, last], "nobody", "wrong")
                .await;
            answer.status()
        });
        let answers = join_all(flood).await;
        let refused = answers
            .iter()
            .filter(|status| **status == StatusCode::TOO_MANY_REQUESTS);
        assert!(
            refused.count() >= 100,
            "a name that nobody has, from everywhere"
        );
        let others = (0..200_u8).map(async |last| {
            let name = format!("nobody{last}");
            let answer = cloud.sign_in_from([127, 0, 2, last], &name, "wrong").await;
            answer.status()
        });
        let others = join_all(others).await;
        assert!(others.contains(&StatusCode::TOO_MANY_REQUESTS));
        assert!(others.contains(&StatusCode::UNAUTHORIZED));
    })
    .await;
}

#[tokio::test]
async fn an_account_is_one_however_its_name_is_written() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let carl = json!({
            "username": "John Doe", "email": "john@acme.example", "password": "battery horse staple",
        });
        let (status, why) = ann.send(Method::POST, "/user/register", carl).await;
        assert_eq!(status, StatusCode::CREATED, "{why}");
        let spelled = [
            "john-doe", "john doe", "john--doe", "JOHN_DOE", "john/doe", "john@acme.example",
            "JOHN@acme.example", "john.doe", "john+doe", "John Doe",
        ];
        for name in spelled {
            let answer = cloud.sign_in_from([127, 0, 0, 2], name, "wrong").await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{name}");
        }
        for name in ["john_doe", "john=doe", "john@ACME.example"] {
            let answer = cloud.sign_in_from([127, 0, 0, 2], name, "wrong").await;
            assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS, "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_account_is_tried_so_often_a_day_from_all_addresses_together() {
    on_both(async |cloud| {
        let limits = "[limits]\nfailed_logins_per_account = 6\n";
        let database = cloud.database.clone();
        cloud.end().await;
        let cloud = Cloud::start_with(&database, limits).await;
        for last in 1..=6 {
            let answer = cloud.sign_in_from([127, 0, 3, last], EMAIL, "wrong").await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{last}");
        }
        let refused = cloud.sign_in_from([127, 0, 3, 100], EMAIL, PASSWORD).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        let wait = refused.headers()["retry-after"].to_str().expect("text");
        let wait: u32 = wait.parse().expect("seconds");
        assert!((1..=4 * 3600).contains(&wait), "{wait}");
        let other = cloud
            .sign_in_from([127, 0, 3, 100], "nobody", "wrong")
            .await;
        assert_eq!(other.status(), StatusCode::UNAUTHORIZED, "another account");
        // The counters survive the program, so other programs see them.
        cloud.end().await;
        let again = Cloud::start_with(&database, limits).await;
        let refused = again.sign_in_from([127, 0, 3, 101], EMAIL, PASSWORD).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    })
    .await;
}

#[tokio::test]
async fn failed_sign_ins_leave_no_memory_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let cloud = Cloud::start(&format!("sqlite:{}", folder.path().join("a").display())).await;
    let wrong = async |last: u8| {
        let name = format!("nobody{last}");
        cloud.sign_in_from([127, 0, 4, last], &name, "wrong").await;
    };
    wrong(250).await;
    let before = cloud.memory();
    for last in 0..100 {
        wrong(last).await;
    }
    let one_by_one = cloud.memory();
    for _ in 0..4 {
        join_all((100..132).map(wrong)).await;
    }
    let at_once = cloud.memory();
    let megabytes = |bytes: usize| bytes >> 20;
    println!(
        "{} MB before, {} after 100 failed sign-ins, {} after 32 at once",
        megabytes(before),
        megabytes(one_by_one),
        megabytes(at_once)
    );
    assert!(at_once.max(one_by_one) < before + (60 << 20));
}

/// Checks that two programs with one database share the count of attempts on an account.
#[tokio::test]
async fn replicas_count_the_tries_of_an_account_together() {
    let Ok(server) = std::env::var(data::testing::POSTGRES) else {
        println!("SKIPPED: there is no PostgreSQL");
        return;
    };
    let database = fresh_postgres(&server).await;
    let limits = "[limits]\nfailed_logins_per_account = 6\n";
    let one = Cloud::start_with(&database, limits).await;
    let other = Cloud::start_with(&database, limits).await;
    for last in 1..=3 {
        for cloud in [&one, &other] {
            let answer = cloud.sign_in_from([127, 0, 5, last], EMAIL, "wrong").await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        }
    }
    for cloud in [&one, &other] {
        let answer = cloud.sign_in_from([127, 0, 5, 9], EMAIL, PASSWORD).await;
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    }
    drop((one, other));
    drop_postgres(&database).await;
}
