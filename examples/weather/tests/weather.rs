use supervisor_testing::{Host, build};

fn host(policy: &str) -> Host {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .configuration("[plugins.weather]\nserver = \"https://api.weather.example\"")
        .policy(format!("[plugins.weather]\n{policy}"))
        .http_answer(
            "GET https://api.weather.example/now/berlin",
            200,
            "{\"celsius\":21.5,\"sky\":\"clear\"}",
        )
        .http_answer("GET https://api.weather.example/now/atlantis", 404, "")
}

const GRANTED: &str = "grants = [\"http\"]\nhttp = [\"api.weather.example\"]";

#[tokio::test]
async fn the_weather_is_relayed() {
    let host = host(GRANTED).start().await;
    let answer = host.get("/v3/weather/berlin").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text()),
        (200, "{\"celsius\":21.5}")
    );
    for (place, status, expected) in [
        ("atlantis", 502, "the other host answered 404"),
        ("x%2F..%2Fadmin", 400, "a place is of letters"),
        (
            "paris",
            502,
            "no answer to `GET https://api.weather.example/now/paris`",
        ),
    ] {
        let answer = host.get(&format!("/v3/weather/{place}")).await;
        assert_eq!(answer.status, status, "{place}");
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_host_that_the_policy_does_not_name_is_not_reached() {
    let host = host("grants = [\"http\"]\nhttp = [\"https://api.weather.example:8443\"]")
        .start()
        .await;
    let answer = host.get("/v3/weather/berlin").await;
    assert_eq!(answer.status, 500);
    let expected = "the policy does not name `https://api.weather.example:443` in `http` of the plugin `weather`";
    assert!(answer.text().contains(expected), "{}", answer.text());
}
