//! What plugins store (`wit/store.wit`).

use futures::StreamExt as _;
use http::StatusCode;

use crate::fixture::setup;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_at_the_same_time_lose_no_update() {
    const CALLS: usize = 60;
    /// As many calls as a plugin accepts: more would wait, and be refused on a busy machine.
    const AT_ONCE: usize = 8;
    let device = setup().guest("a", "").start().await;
    let calls = (0..CALLS).map(|_| device.get("/v3/a/store?add=carefully"));
    let mut answers = futures::stream::iter(calls).buffer_unordered(AT_ONCE);
    while let Some((status, body)) = answers.next().await {
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    let count = device.store.plugin_get("a", "count").unwrap().unwrap();
    assert_eq!(String::from_utf8(count).unwrap(), CALLS.to_string());
}

#[tokio::test]
async fn a_value_with_a_lifetime_is_gone_after_it() {
    let device = setup().guest("a", "").start().await;
    let (_, body) = device.get("/v3/a/store?for=3600000").await;
    assert_eq!(body, "kept for a time");
    assert_eq!(device.get("/v3/a/store").await.1, "Some(1) [\"k\"]");
    device.get("/v3/a/store?for=0").await;
    assert_eq!(device.get("/v3/a/store").await.1, "None []");
}
