//! The LEDs initially show 7, which no step of the pattern does, so 7 means that the LED was released.

use std::time::{Duration, Instant};

use supervisor_testing::{Host, build};

const POLICY: &str = "[plugins.led-blink]\ngrants = [\"led\"]";
/// How long a device shows itself (docs/spec/device.md#v1-blink).
const WINDOW: Duration = Duration::from_secs(15);

fn host() -> Host {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_activity_led_blinks_for_the_window_and_then_shows_what_it_did_before() {
    let host = host().led("PWR", 1, 1).led("ACT", 7, 255).start().await;
    host.identify().await;
    host.led_becomes("ACT", 255).await;
    host.led_becomes("ACT", 0).await;
    host.led_becomes("ACT", 255).await;
    host.identify().await;
    let second = Instant::now();
    host.led_becomes("ACT", 7).await;
    assert!(
        second.elapsed() + Duration::from_secs(1) > WINDOW,
        "the second call did not extend the first: {:?}",
        second.elapsed()
    );
    assert_eq!(host.led("PWR").await, 1, "the other LED was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_led_blinks_and_a_stop_of_the_supervisor_gives_it_back() {
    let host = host()
        .led("ACT", 3, 255)
        .led("board:green:status", 7, 31)
        .configuration("[plugins.led-blink]\nled = \"board:green:status\"")
        .start()
        .await;
    host.identify().await;
    host.led_becomes("board:green:status", 31).await;
    assert_eq!(host.led("ACT").await, 3);
    host.stop().await;
    assert_eq!(host.led("board:green:status").await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_without_an_led_is_no_failure() {
    for configuration in ["", "[plugins.led-blink]\nled = \"gone\""] {
        let host = host().configuration(configuration).start().await;
        host.identify().await;
        host.called("led-blink", 1).await;
        assert_eq!(host.report().await[0]["failures"], 0, "{configuration}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_led_that_the_policy_does_not_grant_stays_as_it_is() {
    let host = host()
        .policy("[plugins.led-blink]\ngrants = [\"led\"]\nleds = [\"PWR\"]")
        .led("ACT", 7, 255)
        .led("PWR", 7, 255)
        .start()
        .await;
    host.identify().await;
    host.led_becomes("PWR", 255).await;
    assert_eq!(host.led("ACT").await, 7);
}
