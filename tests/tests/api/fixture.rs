//! A device with two apps, each with its own key.

use serde_json::{Value, json};
use tests::{Answer, LogReader, Supervisor, guest, service, target, until};

/// App 1 has two services and is locked by its user, app 2 has one; both have keys of their apps.
pub(crate) struct TwoApps {
    pub(crate) device: Supervisor,
    /// The key of app 2.
    pub(crate) other_key: String,
}

impl TwoApps {
    /// Starts them on a device that requires a key for everything.
    pub(crate) async fn start() -> Self {
        let device = Supervisor::on_wasm()
            .argument("--local-mode-auth=strict")
            .start()
            .await;
        let mut logs = device.read_logs().await;
        let mut apps = target(1, &[dump("web"), dump("worker")]);
        apps["local"]["apps"]["1"]["services"]["2"]["imageId"] = json!(2);
        apps["local"]["apps"]["2"] = target(2, &[dump("other")])["local"]["apps"]["2"].clone();
        device.set_target(&apps).await;
        let other_key = key_of("other", &mut logs).await;
        device.until_applied().await;
        let lock = "tmp/platform-supervisor/services/1/web/updates.lock";
        std::fs::write(device.host_root().join(lock), "").unwrap();
        TwoApps { device, other_key }
    }

    /// Has services with a replaced key created again; otherwise any update would do this in the middle of a test.
    pub(crate) async fn give_new_keys(&self) {
        let answer = self.device.post("/v1/update", &json!({})).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        until("services to have their keys", || async {
            let plan = self.device.json("/v3/plan").await;
            if plan["state"] == "settled" {
                Ok(())
            } else {
                Err(plan)
            }
        })
        .await;
    }

    /// Returns the state that no refused request changes. It waits until the supervisor has released locks of other
    /// apps: for a reboot it takes those before it finds the one that a user holds.
    pub(crate) async fn state(&self) -> Value {
        let device = &self.device;
        let locks = until("the supervisor to hold no lock", || async {
            let locks = device.json("/v3/locks").await;
            let all = locks["locks"].as_array();
            if all.is_some_and(|all| all.iter().all(|lock| lock["holder"] != "supervisor")) {
                Ok(locks)
            } else {
                Err(locks)
            }
        })
        .await;
        json!({
            "target": device.json("/v2/local/target-state").await,
            "containers": device.json("/v2/containerId").await,
            "locks": locks,
            "host": device.json("/v1/device/host-config").await,
        })
    }

    /// Sends a request with this key, if any.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<(&str, Vec<u8>)>,
    ) -> Answer {
        let mut request = self.device.request_without_key(method, path);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if let Some((content_type, body)) = body {
            request = request.header("content-type", content_type).body(body);
        }
        self.device.send(request).await
    }
}

/// A service that prints its environment and waits.
fn dump(name: &str) -> Value {
    let labels = json!({"io.platform.features.supervisor-api": "1"});
    service(
        name,
        &guest("guest"),
        &json!({"command": ["dump"], "labels": labels}),
    )
}

async fn key_of(service: &str, logs: &mut LogReader) -> String {
    let prefix = "variable PLATFORM_SUPERVISOR_API_KEY=";
    loop {
        let line = logs.until_message(prefix).await;
        if line["serviceName"] == service {
            return line["message"].as_str().unwrap()[prefix.len()..].to_owned();
        }
    }
}
