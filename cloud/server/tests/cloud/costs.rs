//! The cost of one request (docs/security.md): whatever it contains, it is answered or refused soon, with little
//! memory, and the cloud continues.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::harness::{Cloud, on_both, read};

/// How long any request may take. Test builds are slow and share the machine: the limits themselves allow far less.
const SOON: Duration = Duration::from_secs(20);

/// Returns the answer to a guest, which must arrive soon.
async fn guest_answer(cloud: &Cloud, path: &str) -> (StatusCode, Value) {
    let begun = Instant::now();
    let answer = cloud.ask(Method::GET, path).send().await;
    let answer = read(answer.expect("the cloud is there")).await;
    assert!(
        begun.elapsed() < SOON,
        "{:.100}: {:?}",
        path,
        begun.elapsed()
    );
    answer
}

fn text(body: &Value) -> &str {
    body.as_str().unwrap_or_default()
}

#[tokio::test]
async fn lists_and_chains_of_any_length_are_answered_or_refused() {
    on_both(async |cloud| {
        let ones = |count: usize| vec!["1"; count].join(",");
        let chain = |of: &str, between: &str, count: usize| vec![of; count].join(between);
        let signed_in = cloud.sign_in().await;
        for count in [1, 9, 65, 1000] {
            let filters = [
                format!("id in ({})", ones(count)),
                format!("not(id in ({}))", ones(count)),
                chain("id eq 1", " or ", count),
                chain("id gt 0", " and ", count),
                format!("not({})", chain("slug ne 'x'", " and ", count)),
            ];
            for filter in filters {
                let path = format!("/v7/device_type/$count?$filter={filter}");
                let (status, body) = guest_answer(&cloud, &path).await;
                assert_eq!(status, StatusCode::OK, "{filter:.60}: {body}");
                let (status, _) = signed_in.get(&path).await;
                assert_eq!(status, StatusCode::OK, "{filter:.60}");
            }
        }
        for filter in [
            format!("id in ({})", ones(3000)),
            format!("id in ({})", ones(30_000)),
            chain("id eq 1", " or ", 2500),
            chain("id eq 1", " and ", 2500),
        ] {
            let path = format!("/v7/device_type?$filter={filter}");
            let (status, body) = guest_answer(&cloud, &path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{filter:.60}: {body}");
            assert!(text(&body).contains("1,000 items"), "{body}");
        }
        for filter in [
            format!("{}1 eq 1", "1 add ".repeat(5000)),
            format!(
                "{}slug eq 1",
                "is_of__cpu_architecture/device_type/".repeat(800)
            ),
        ] {
            let path = format!("/v7/device_type?$filter={filter}");
            let (status, body) = guest_answer(&cloud, &path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{filter:.60}: {body}");
        }
        let (status, _) = guest_answer(&cloud, "/ping").await;
        assert_eq!(status, StatusCode::OK);
    })
    .await;
}

/// Bytes that a request may add to the memory of the cloud. Test builds and other tests on the same cloud need some.
const MEMORY: usize = 128 << 20;

/// Checks that the request is refused, with a text that names the limit, and costs little.
async fn refused(cloud: &Cloud, path: &str, naming: &str) {
    let before = cloud.memory();
    let (status, body) = guest_answer(cloud, path).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{path:.200}: {body:.200}");
    assert!(text(&body).contains(naming), "{path:.200}: {body}");
    let more = cloud.memory().saturating_sub(before);
    assert!(more < MEMORY, "{path:.200}: {more}");
}

#[tokio::test]
async fn answers_do_not_grow_by_going_back_and_forth() {
    on_both(async |cloud| {
        let there = "is_of__cpu_architecture($expand=";
        let path =
            format!("/v7/device_type(4)?$expand={there}device_type($expand={there}device_type)))",);
        refused(&cloud, &path, "leads back to `device_type`").await;
        let signed_in = cloud.sign_in().await;
        let deeper = "device_type($expand=is_of__cpu_architecture($expand=";
        let path = format!(
            "/v7/device_type(4)?$expand={there}{}device_type{}",
            deeper.repeat(4),
            ")".repeat(9)
        );
        let (status, body) = signed_in.get(&path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:.200}");
        assert!(text(&body).contains("at most twice"), "{body:.200}");
    })
    .await;
}

#[tokio::test]
async fn texts_do_not_grow_by_functions() {
    on_both(async |cloud| {
        let many = "a".repeat(1000);
        let mut value = format!("'{many}'");
        for _ in 0..3 {
            value = format!("replace({value},'a','{many}')");
        }
        let path = format!("/v7/device_type/$count?$filter=length({value}) gt 0");
        refused(&cloud, &path, "could produce a text of").await;
        let mut value = "slug".to_owned();
        for _ in 0..14 {
            value = format!("replace({value},'','{many}')");
        }
        let path = format!("/v7/device_type/$count?$filter=length({value}) gt 0");
        refused(&cloud, &path, "could produce a text of").await;
    })
    .await;
}

#[tokio::test]
async fn rights_are_checked_before_a_body_is_read() {
    on_both(async |cloud| {
        let values = format!("{{\"a\":[{}[]]}}", "[],".repeat(2 << 20));
        let before = cloud.memory();
        for path in [
            "/v7/device",
            "/v7/application(1)",
            "/v7/release_asset",
            "/v5/device",
        ] {
            for method in [Method::POST, Method::PATCH, Method::PUT] {
                let request = cloud.ask(method, path).body(values.clone());
                let request = request.header("content-type", "application/json");
                // A refusal may arrive while the body is still being sent, and end the connection.
                if let Ok(answer) = request.send().await {
                    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{path}");
                }
            }
        }
        let signed_in = cloud.sign_in().await;
        let request = signed_in.ask(Method::POST, "/v7/application").body(values);
        let request = request.header("content-type", "application/json");
        let (status, body) = signed_in.answer(request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(text(&body).contains("more than 100000 values"), "{body}");
        let more = cloud.memory().saturating_sub(before);
        assert!(more < MEMORY, "{more}");
    })
    .await;
}

#[tokio::test]
async fn guests_nest_links_to_many_twice_and_others_four_times() {
    on_both(async |cloud| {
        let nested = |levels: usize| {
            let mut filter = "id gt 0".to_owned();
            for level in 0..levels {
                filter =
                    format!("is_of__cpu_architecture/device_type/any(d{level}:d{level}/{filter})");
            }
            format!("/v7/device_type/$count?$filter={filter}")
        };
        let (status, body) = guest_answer(&cloud, &nested(2)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        refused(&cloud, &nested(3), "at most 2 deep").await;
        let signed_in = cloud.sign_in().await;
        let (status, body) = signed_in.get(&nested(5)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(text(&body).contains("at most 4 deep"), "{body}");
    })
    .await;
}

#[tokio::test]
async fn conditions_that_go_back_and_forth_are_refused() {
    on_both(async |cloud| {
        let signed_in = cloud.sign_in().await;
        let mut filter = "id gt 0".to_owned();
        for level in 0..14 {
            filter = format!(
                "belongs_to__application/any(a{level}:a{level}/owns__device/any(d{level}:d{level}/{filter}))"
            );
        }
        let path = format!("/v7/device?$filter={filter}");
        let begun = Instant::now();
        let (status, body) = signed_in.get(&path).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert!(text(&body).contains("can be nested"), "{body}");
        assert!(begun.elapsed() < SOON);
    })
    .await;
}

/// Bytes of a query, before percent-encoding.
const LONG: usize = 40_000;

/// Repeats a text as often as it fits into a long query, with a separator.
fn full(of: &str, between: &str) -> String {
    let encoded = |text: &str| text.len() + 2 * text.matches([' ', '\'']).count();
    let times = LONG / (encoded(of) + encoded(between));
    vec![of; times].join(between)
}

/// Returns filters of all kinds, of the maximum length.
fn filters() -> Vec<String> {
    let ones = vec!["1"; 999].join(",");
    let nested = |begin: &str, inner: &str, end: &str, times: usize| {
        format!("{}{inner}{}", begin.repeat(times), end.repeat(times))
    };
    let wide_and_deep = (0..30).fold("id eq 1".to_owned(), |inner, level| {
        let join = if level % 2 == 0 { " and " } else { " or " };
        format!("({inner}{join}{})", vec!["id ne 2"; 40].join(join))
    });
    let text = "x".repeat(LONG);
    vec![
        full(&format!("id in ({ones})"), " or "),
        full("1 eq 1", " and "),
        format!("not({})", full("id eq null", " or ")),
        nested("(", "id eq 1", ")", 31),
        nested("not(", "id eq 1", ")", 15),
        nested("(1 eq 1) eq (", "id eq 1", ")", 30),
        nested("true in (", "id eq 1", ")", 30),
        nested("", "id in (1,2) in (true,false) in (true)", "", 1),
        wide_and_deep,
        format!("contains(slug,'{text}')"),
        format!("slug eq '{text}'"),
        full("endswith(slug,'a')", " or "),
        full("startswith(tolower(slug),'a')", " or "),
        full("indexof(slug,'a') add 1 eq 2", " or "),
        nested("tolower(", "slug", ")", 30) + " eq 'a'",
        nested("concat(slug,", "slug", ")", 30) + " eq 'a'",
        nested("round(", "1.5", ")", 30) + " eq 2",
        nested("-(", "id", ")", 30) + " eq 2",
        nested("replace(", "slug", ",'a','aa')", 20) + " eq 'a'",
        full("id mul id mul id gt 1", " or "),
        full("is_of__cpu_architecture/slug eq 'amd64'", " or "),
        full("is_of__cpu_architecture/any(c:c/slug eq 'amd64')", " or "),
        full("is_of__cpu_architecture/device_type/$count gt 1", " or "),
        full("year(created_at) eq 2026", " and "),
        full("created_at gt datetime'2026-01-01T00:00:00Z'", " and "),
        full("cast(id,'Edm.String') eq '5'", " or "),
        full("slug in ('a',name,null,slug)", " or "),
        "'".repeat(LONG / 3),
        "(".repeat(LONG),
        "\u{e9}".repeat(LONG / 6),
    ]
}

#[tokio::test]
async fn sixty_kilobytes_of_query_of_any_shape_are_answered_or_refused() {
    on_both(async |cloud| {
        let signed_in = cloud.sign_in().await;
        let mut paths: Vec<String> = filters()
            .into_iter()
            .map(|filter| format!("/v7/device_type?$select=id&$filter={filter}"))
            .collect();
        let ones = vec!["1"; 999].join(",");
        let counted = format!("is_of__cpu_architecture/device_type/$count($filter=id in ({ones}))");
        paths.extend([
            format!(
                "/v7/device_type?$top=1&$select=id&$orderby={}",
                full(&counted, ",")
            ),
            format!("/v7/device_type?$orderby={}", full("slug desc", ",")),
            format!("/v7/device_type?$select={}", full("slug", ",")),
            format!(
                "/v7/device_type?$expand={}",
                full("is_of__cpu_architecture", ",")
            ),
            format!(
                "/v7/device_type?$expand={}",
                full("is_of__cpu_architecture", "/")
            ),
            format!("/v7/device_type?{}", full("@a=1", "&")),
            format!("/v7/device_type{}", full("/is_of__cpu_architecture", "")),
            format!("/v7/device_type({})", full("id=1", ",")),
            format!("/v5/device_type?$filter={}", full("slug eq 'a'", " or ")),
        ]);
        for path in &paths {
            let before = cloud.memory();
            let (status, body) = guest_answer(&cloud, path).await;
            let fine = [StatusCode::OK, StatusCode::BAD_REQUEST];
            assert!(fine.contains(&status), "{path:.120}: {status} {body:.300}");
            let begun = Instant::now();
            let (status, body) = signed_in.get(path).await;
            assert!(fine.contains(&status), "{path:.120}: {status} {body:.300}");
            assert!(begun.elapsed() < SOON, "{path:.120}: {:?}", begun.elapsed());
            let more = cloud.memory().saturating_sub(before);
            assert!(more < MEMORY, "{path:.120}: {more}");
        }
    })
    .await;
}
