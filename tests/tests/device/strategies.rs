//! The four ways to replace a service, chosen by its label (docs/spec/device.md#update-strategies), on both engines.

use std::ops::Deref;

use serde_json::{Value, json};
use tests::{Stage, until};

/// A device whose app has one service, `main`, which is updated.
struct Story(Stage);

impl Deref for Story {
    type Target = Stage;
    fn deref(&self) -> &Stage {
        &self.0
    }
}

const HANDED_OVER: &str = "/tmp/platform/handover-complete";

impl Story {
    fn waits(&self) -> Value {
        if self.on_docker {
            json!(["sh", "-c", "exec sleep 1000"])
        } else {
            json!(["wait"])
        }
    }

    /// The command of a service that reports itself that it has taken over.
    fn takes_over(&self) -> Value {
        let shell = format!("echo done > {HANDED_OVER}; exec sleep 1000");
        if self.on_docker {
            json!(["sh", "-c", shell])
        } else {
            json!(["write-and-wait", HANDED_OVER, "done"])
        }
    }

    /// Sets a release with this image and command, and these labels below the update namespace.
    async fn release(&self, number: u64, image: &str, command: Value, labels: &[(&str, &str)]) {
        let labels: serde_json::Map<String, Value> = labels
            .iter()
            .map(|(name, value)| (format!("io.platform.update.{name}"), json!(value)))
            .collect();
        let target = json!({ "local": { "apps": { self.app.to_string(): {
            "name": "replaced", "commit": format!("c{number}"), "releaseId": number.to_string(),
            "services": { "1": {
                "serviceName": "main", "imageId": self.app * 10 + number, "image": image,
                "command": command, "environment": {}, "labels": labels,
                "stop_grace_period": "1s", "stop_signal": "SIGKILL",
            } },
        } } } });
        self.device.set_target(&target).await;
    }

    async fn containers(&self) -> Value {
        self.device.json("/v2/containerId").await["services"].clone()
    }

    async fn until_downloading(&self) -> Value {
        until("the download to begin", || async {
            let status = self.device.json("/v2/state/status").await;
            let images = status["images"].as_array().unwrap();
            if images.iter().any(|image| image["status"] == "Downloading") {
                Ok(status)
            } else {
                Err((status, self.device.log()))
            }
        })
        .await
    }

    /// Checks what exists while the new image is downloaded: the old container, and its image.
    async fn replaces_by(&self, strategy: &str, keeps_the_old: bool, deletes_the_image: bool) {
        // Images are kept in local mode, so each download needs another one.
        let old = self.publish(&format!("{strategy}-old"));
        let new = self.publish(&format!("{strategy}-new"));
        let labels = &[("strategy", strategy)][..];
        self.release(1, &old, self.waits(), labels).await;
        self.device.until_applied().await;
        let before = self.containers().await;
        self.registry.stall(true);
        self.release(2, &new, self.waits(), labels).await;
        self.until_downloading().await;
        // The result of the engine's work may appear a moment later.
        until("the old one to be there or not", || async {
            let during = self.containers().await;
            let right = if keeps_the_old {
                during == before
            } else {
                during == json!({})
            };
            let deleted = self
                .device
                .log()
                .contains(&format!("Deleted image '{old}'"));
            if right && deleted == deletes_the_image {
                Ok(())
            } else {
                Err((strategy.to_owned(), during, self.device.log()))
            }
        })
        .await;
        self.registry.stall(false);
        self.device.until_applied().await;
        let after = self.containers().await;
        assert!(after["main"].is_string());
        assert_ne!(after, before);
        self.clear().await;
    }

    async fn each_kills_and_downloads_in_its_own_order(self) {
        self.replaces_by("download-then-kill", true, false).await;
        self.replaces_by("kill-then-download", false, false).await;
        self.replaces_by("delete-then-download", false, true).await;
    }

    async fn status(&self) -> Value {
        let path = format!("/v2/applications/{}/state", self.app);
        let state = self.device.json(&path).await;
        state["local"][self.app.to_string()]["services"]["1"]["status"].clone()
    }

    async fn the_new_service_runs_beside_the_old_one_until_it_takes_over(self) {
        let image = self.publish("image");
        let labels = &[("strategy", "hand-over"), ("handover-timeout", "600000")][..];
        self.release(1, &image, self.waits(), labels).await;
        self.device.until_applied().await;
        let first = self.containers().await;

        // From outside: both run until the file exists.
        let mut command = self.waits();
        if self.on_docker {
            command[2] = json!("exec sleep 1001")
        } else {
            command = json!(["print-and-wait", "second"])
        }
        self.release(2, &image, command, labels).await;
        until("both to run", || async {
            let status = self.device.json("/v2/state/status").await;
            let running = status["containers"].as_array().unwrap().len();
            if running == 2 && self.status().await == "Handing over" {
                Ok(())
            } else {
                Err((status, self.device.log()))
            }
        })
        .await;
        let folder = "tmp/platform-supervisor/services";
        let folder = self.device.host_root().join(folder);
        let file = folder
            .join(self.app.to_string())
            .join("main/handover-complete");
        std::fs::write(&file, "").unwrap();
        self.until_one_runs().await;
        let second = self.containers().await;
        assert_ne!(second, first);
        assert!(!file.exists(), "the file is taken away after use");

        // From inside.
        self.release(3, &image, self.takes_over(), labels).await;
        self.until_one_runs().await;
        let third = self.containers().await;
        assert_ne!(third, second);

        // Without a report, when its time is over.
        let labels = &[("strategy", "hand-over"), ("handover-timeout", "300")][..];
        self.release(4, &image, self.waits(), labels).await;
        self.until_one_runs().await;
        assert_ne!(self.containers().await, third);
        self.clear().await;
    }

    async fn until_one_runs(&self) {
        until("one to run", || async {
            let status = self.device.json("/v2/state/status").await;
            let running = status["containers"].as_array().unwrap().len();
            if running == 1 && status["appState"] == "applied" {
                Ok(())
            } else {
                Err((status, self.device.log()))
            }
        })
        .await;
    }

    async fn clear(&self) {
        let nothing = json!({ "local": { "apps": {} } });
        self.device.set_target(&nothing).await;
        until("nothing to be left", || async {
            let status = self.device.json("/v2/state/status").await;
            let empty = status["containers"] == json!([]) && status["images"] == json!([]);
            if empty && status["appState"] == "applied" {
                Ok(())
            } else {
                Err((status, self.device.log()))
            }
        })
        .await;
    }
}

#[tokio::test]
async fn components_are_killed_and_downloaded_in_the_order_of_their_strategy() {
    let story = Story(Stage::on_wasm(51).await);
    story.each_kills_and_downloads_in_its_own_order().await;
}

#[tokio::test]
async fn containers_are_killed_and_downloaded_in_the_order_of_their_strategy() {
    if let Some(stage) = Stage::on_docker(51).await {
        let story = Story(stage);
        story.each_kills_and_downloads_in_its_own_order().await;
    }
}

#[tokio::test]
async fn a_component_hands_over_to_its_successor() {
    let story = Story(Stage::on_wasm(52).await);
    story
        .the_new_service_runs_beside_the_old_one_until_it_takes_over()
        .await;
}

#[tokio::test]
async fn a_container_hands_over_to_its_successor() {
    if let Some(stage) = Stage::on_docker(52).await {
        let story = Story(stage);
        story
            .the_new_service_runs_beside_the_old_one_until_it_takes_over()
            .await;
    }
}
