//! Actions while an update is downloaded, on both engines: they are applied at once to the running services, and the
//! update follows.

use std::ops::Deref;

use serde_json::{Value, json};
use tests::{Stage, until};

struct Story(Stage);

impl Deref for Story {
    type Target = Stage;
    fn deref(&self) -> &Stage {
        &self.0
    }
}

impl Story {
    async fn set(&self, release: u64, image: &str) {
        let command = if self.on_docker {
            json!([
                "sh",
                "-c",
                "echo >> /data/starts; n=0; while read -r line; do n=$((n+1)); done < /data/starts; \
                 echo starts $n; exec sleep 1000"
            ])
        } else {
            json!(["count-starts", "/data/starts"])
        };
        let service = json!({
            "serviceName": "keeper", "imageId": self.app, "image": image, "command": command,
            "environment": {}, "labels": {}, "volumes": ["data:/data"],
            "stop_grace_period": "1s", "stop_signal": "SIGKILL",
        });
        let target = json!({ "local": { "apps": { self.app.to_string(): {
            "name": "pending", "commit": format!("c{release}"), "releaseId": release.to_string(),
            "services": { "1": service }, "volumes": { "data": {} },
        } } } });
        self.device.set_target(&target).await;
    }

    async fn container(&self) -> Value {
        let status = self.device.json("/v2/state/status").await;
        let containers = status["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 1, "{status}");
        containers[0].clone()
    }

    async fn image(&self) -> Value {
        let state = self.device.json("/v2/state/status").await;
        state["images"].clone()
    }

    async fn tell(self) {
        let (first, second) = (self.publish("first"), self.publish("second"));
        let mut logs = self.device.read_logs().await;
        self.set(1, &first).await;
        self.device.until_applied().await;
        logs.until_message("starts 1").await;
        self.registry.stall(true);
        self.set(2, &second).await;
        until("the download to begin", || async {
            let images = self.image().await;
            let mut found = images.as_array().unwrap().iter();
            if found.any(|image| image["status"] == "Downloading") {
                Ok(())
            } else {
                Err(images)
            }
        })
        .await;

        let mut id = self.container().await["containerId"].clone();
        for (verb, starts) in [("restart", 2), ("restart-service", 3), ("purge", 1)] {
            let path = format!("/v2/applications/{}/{verb}", self.app);
            let body = json!({ "serviceName": "keeper" });
            let done = self.device.post(&path, &body).await;
            assert_eq!((done.status, done.text.as_str()), (200, "OK"), "{verb}");
            logs.until_message(&format!("starts {starts}")).await;
            let container = self.container().await;
            assert_eq!(container["status"], "Running", "{verb}");
            assert_ne!(container["containerId"], id, "{verb}");
            id = container["containerId"].clone();
            let app = format!("/v2/applications/{}/state", self.app);
            assert_eq!(self.device.json(&app).await["commit"], "c1", "{verb}");
        }
        for (verb, status) in [("stop-service", "exited"), ("start-service", "Running")] {
            let path = format!("/v2/applications/{}/{verb}", self.app);
            let body = json!({ "serviceName": "keeper" });
            let done = self.device.post(&path, &body).await;
            assert_eq!((done.status, done.text.as_str()), (200, "OK"), "{verb}");
            let container = self.container().await;
            assert_eq!(container["status"], status, "{verb}");
            assert_eq!(container["containerId"], id, "{verb}");
        }
        logs.until_message("starts 2").await;
        let state = self.device.json("/v1/device").await;
        assert_eq!(state["update_pending"], true, "{state}");

        self.registry.stall(false);
        self.device.until_applied().await;
        assert_ne!(self.container().await["containerId"], id);
        logs.until_message("starts 3").await;
        let nothing = json!({ "local": { "apps": {} } });
        self.device.set_target(&nothing).await;
        self.device.until_applied().await;
    }
}

#[tokio::test]
async fn components_come_back_before_their_update_is_downloaded() {
    Story(Stage::on_wasm(7130).await).tell().await;
}

#[tokio::test]
async fn containers_come_back_before_their_update_is_downloaded() {
    if let Some(stage) = Stage::on_docker(7131).await {
        Story(stage).tell().await;
    }
}
