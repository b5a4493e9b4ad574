use std::time::Duration;

use supervisor_testing::{Host, HttpError, build};

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

#[tokio::test]
async fn a_host_that_is_down_verbose_or_late_is_the_reason_in_the_answer() {
    let now = |place: &str| format!("GET https://api.weather.example/now/{place}");
    let at_once = Duration::ZERO;
    let down = HttpError::Unreachable("connection refused".to_owned());
    let verbose = HttpError::TooLarge("the answer has more than 1 MiB".to_owned());
    let cold = (200, b"{\"celsius\":-4.5}".to_vec());
    let host = host(&format!("{GRANTED}\nlimits = {{ wall_ms = 5000 }}"))
        .http_outcome(&now("paris"), at_once, Err(down))
        .http_outcome(&now("rome"), at_once, Err(verbose))
        .http_outcome(&now("oslo"), Duration::from_millis(1), Ok(cold.clone()))
        .http_outcome(&now("nuuk"), Duration::from_secs(59), Ok(cold))
        .start()
        .await;
    for (place, status, expected) in [
        ("paris", 502, "connection refused"),
        ("rome", 502, "the answer has more than 1 MiB"),
        ("oslo", 200, "{\"celsius\":-4.5}"),
        // The plugin waits for longer than the device waits for the plugin.
        ("nuuk", 504, ""),
    ] {
        let answer = host.get(&format!("/v3/weather/{place}")).await;
        assert_eq!(answer.status, status, "{place}: {}", answer.text());
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
}
