//! `/v3/plugins` below its list.

use serde_json::{Value, json};

use super::router::failed;
use crate::LocalModeAuth;
use crate::fake::{FakeDevice, Fixture, fixture, request};

fn device() -> Fixture {
    fixture(FakeDevice::default(), LocalModeAuth::Strict)
}

#[tokio::test]
async fn the_last_lines_of_a_plugin_are_read_from_where_the_reader_was() {
    let device = device();
    let log = device.json("/v3/plugins/greet/log").await;
    assert_eq!(log["status"], "success");
    assert_eq!(log["newest"], 3);
    assert_eq!(
        log["lines"][0],
        json!({
            "number": 1, "time": "1970-01-01T00:00:00.000Z", "level": "info", "message": "line 1",
        })
    );
    let numbers = async |query: &str| -> Vec<Value> {
        let log = device.json(&format!("/v3/plugins/greet/log{query}")).await;
        let lines = log["lines"].as_array().unwrap();
        lines.iter().map(|line| line["number"].clone()).collect()
    };
    assert_eq!(numbers("").await, [1, 2, 3]);
    assert_eq!(numbers("?after=2").await, [3]);
    assert_eq!(numbers("?after=9").await, [] as [u64; 0]);
    for wrong in ["x", "", "-1", "1.5", "99999999999999999999"] {
        let answer = device
            .get(&format!("/v3/plugins/greet/log?after={wrong}"))
            .await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
    for unknown in ["nobody", "%2e%2e", "greet%2f"] {
        let answer = device.get(&format!("/v3/plugins/{unknown}/log")).await;
        let message = "the device has no plugin of that name: GET /v3/plugins lists its plugins";
        assert_eq!(answer, failed(404, message), "{unknown}");
    }
}

#[tokio::test]
async fn the_log_of_a_plugin_is_for_the_devices_key_alone() {
    let device = device();
    for path in ["/v3/plugins/greet/log", "/v3/plugins/nobody/log"] {
        let by_service = device.ask(request("GET", path, &device.shop_key)).await;
        assert_eq!(by_service, failed(401, "Unauthorized"), "{path}");
        for key in ["", "wrong"] {
            let answer = device.ask(request("GET", path, key)).await;
            assert_eq!((answer.status, answer.body.as_str()), (401, "Unauthorized"));
        }
    }
}
