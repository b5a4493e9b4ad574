//! Random conditions: both databases return the same answer, and neither fails.

use std::sync::Mutex;

use data::query::QueryError;
use data::testing::on_both;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::{ann, get};
use crate::fixture;

const CASES: usize = 600;

/// Generates a whole number.
fn number() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("id".to_owned()),
        Just("belongs_to__application".to_owned()),
        Just("is_pinned_on__release".to_owned()),
        Just("memory_usage".to_owned()),
        Just("device_tag/$count".to_owned()),
        Just("belongs_to__application/organization".to_owned()),
        (-20i64..20).prop_map(|it| it.to_string()),
        Just("9223372036854775807".to_owned()),
        Just("null".to_owned()),
    ];
    let sign = prop_oneof!["add", "sub", "mul", "div", "mod"];
    leaf.prop_recursive(2, 6, 2, move |inner| {
        let text = short_text();
        prop_oneof![
            (inner.clone(), sign.clone(), inner.clone())
                .prop_map(|(a, s, b)| format!("({a} {s} {b})")),
            inner.prop_map(|it| format!("-({it})")),
            text.clone().prop_map(|it| format!("length({it})")),
            (text.clone(), text).prop_map(|(a, b)| format!("indexof({a},{b})")),
            moment().prop_map(|it| format!("year({it})")),
            moment().prop_map(|it| format!("day({it})")),
            moment().prop_map(|it| format!("second({it})")),
        ]
    })
    .boxed()
}

fn short_text() -> BoxedStrategy<String> {
    prop_oneof![
        Just("device_name".to_owned()),
        Just("status".to_owned()),
        Just("os_version".to_owned()),
        Just("belongs_to__application/slug".to_owned()),
        Just("should_be_running__release/raw_version".to_owned()),
        Just("device_tag(tag_key='env')/value".to_owned()),
        "[a-zA-ZéÉßΣς%_*? ]{0,3}".prop_map(|it| format!("'{}'", it.replace('%', "%25"))),
    ]
    .boxed()
}

fn text() -> BoxedStrategy<String> {
    short_text()
        .prop_recursive(2, 6, 2, |inner| {
            prop_oneof![
                inner.clone().prop_map(|it| format!("tolower({it})")),
                inner.clone().prop_map(|it| format!("toupper({it})")),
                inner.clone().prop_map(|it| format!("trim({it})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("concat({a},{b})")),
                (inner.clone(), -3i64..12).prop_map(|(a, n)| format!("substring({a},{n})")),
                (inner.clone(), -3i64..12, -3i64..5)
                    .prop_map(|(a, n, m)| format!("substring({a},{n},{m})")),
                (inner.clone(), inner.clone(), inner)
                    .prop_map(|(a, b, c)| format!("replace({a},{b},{c})")),
            ]
        })
        .boxed()
}

fn moment() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("created_at".to_owned()),
        Just("last_connectivity_event".to_owned()),
        Just("now()".to_owned()),
        Just("datetime'1969-12-31T23:59:59.999Z'".to_owned()),
        Just("datetime'2026-01-02T03:04:05.678Z'".to_owned()),
    ];
    (
        leaf,
        prop_oneof![
            Just(""),
            Just(" sub duration'P1DT2H'"),
            Just(" add duration'PT0.001S'")
        ],
    )
        .prop_map(|(it, and)| format!("({it}{and})"))
        .boxed()
}

fn condition() -> BoxedStrategy<String> {
    let compared = || prop_oneof!["eq", "ne", "gt", "ge", "lt", "le"];
    let leaf = prop_oneof![
        (number(), compared(), number()).prop_map(|(a, s, b)| format!("{a} {s} {b}")),
        (text(), compared(), text()).prop_map(|(a, s, b)| format!("{a} {s} {b}")),
        (moment(), compared(), moment()).prop_map(|(a, s, b)| format!("{a} {s} {b}")),
        (text(), compared()).prop_map(|(a, s)| format!("{a} {s} null")),
        (text(), text()).prop_map(|(a, b)| format!("startswith({a},{b})")),
        (text(), text()).prop_map(|(a, b)| format!("endswith({a},{b})")),
        (text(), text()).prop_map(|(a, b)| format!("contains({a},{b})")),
        (text(), text(), text()).prop_map(|(a, b, c)| format!("{a} in ({b},null,{c})")),
        Just("is_online".to_owned()),
        Just("is_online eq true".to_owned()),
        compared().prop_map(|s| format!("device_tag/any(t:t/value {s} device_name)")),
        compared()
            .prop_map(|s| format!("device_tag/all(t:t/tag_key {s} 'env' or t/value eq 'prod')")),
        number().prop_map(|n| format!("device_tag/$count($filter=device eq {n}) ge 1")),
        Just("is_pinned_on__release/any(r:r/is_final)".to_owned()),
        Just("overall_status eq 'operational'".to_owned()),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|it| format!("not({it})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a} or {b})")),
        ]
    })
    .boxed()
}

#[tokio::test]
async fn conditions_at_random_are_answered_alike() {
    let mut runner = TestRunner::deterministic();
    let urls: Vec<String> = (0..CASES)
        .map(|_| {
            let filter = condition()
                .new_tree(&mut runner)
                .expect("a condition")
                .current();
            format!("/device?$select=id&$filter={filter}&$orderby=status desc,device_name")
        })
        .collect();
    let answers = Mutex::new(Vec::new());
    on_both(async |database| {
        fixture::cloud(&database).await;
        let mut all: Vec<Result<Value, QueryError>> = Vec::new();
        for url in &urls {
            let answer = get(&database, &ann(), url).await;
            // A condition and its opposite together match every row exactly once.
            if let Ok(found) = &answer {
                let opposite = url.replacen("$filter=", "$filter=not(", 1).replacen(
                    "&$orderby",
                    ")&$orderby",
                    1,
                );
                let others = get(&database, &ann(), &opposite).await.expect(&opposite);
                let rows = |answer: &Value| answer.as_array().map_or(0, Vec::len);
                assert_eq!(rows(found) + rows(&others), 2, "{url}");
            }
            all.push(answer);
        }
        answers.lock().expect("the answers").push(all);
    })
    .await;
    let answers = answers.into_inner().expect("the answers");
    let understood = answers[0].iter().filter(|answer| answer.is_ok()).count();
    assert!(
        understood > CASES / 2,
        "only {understood} of {CASES} were understood"
    );
    if let [one, other] = answers.as_slice() {
        for ((url, one), other) in urls.iter().zip(one).zip(other) {
            assert_eq!(one, other, "{url}");
        }
    }
}
