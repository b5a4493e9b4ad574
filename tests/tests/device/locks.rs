//! Update locks of services: with files from inside, and through the API; on both engines.

use std::ops::Deref;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::{Answer, Stage, Supervisor, guest, until};

/// A device whose app 1 keeps `keeper` and `other` running.
struct Story(Stage);

impl Deref for Story {
    type Target = Stage;
    fn deref(&self) -> &Stage {
        &self.0
    }
}

/// The parts of a target that change.
#[derive(Clone, Copy)]
struct Release<'a> {
    number: u64,
    image: &'a str,
}

impl Story {
    /// Returns a service that prints its environment, and waits.
    fn service(&self, name: &str, release: Release<'_>) -> Value {
        let command = if self.on_docker {
            json!(["sh", "-c", "export; exec sleep 1000"])
        } else {
            json!(["dump"])
        };
        json!({
            "serviceName": name, "image": release.image, "command": command,
            "environment": { "REVISION": release.number.to_string() },
            "labels": { "io.platform.features.supervisor-api": "1" },
            "stop_grace_period": "1s", "stop_signal": "SIGKILL",
        })
    }

    async fn set(&self, release: Release<'_>) {
        let mut services = json!({});
        for (number, name) in (1..).zip(["keeper", "other"]) {
            let mut service = self.service(name, release);
            // The names of containers differ from those of other tests.
            service["imageId"] = json!(self.app * 10 + number);
            services[number.to_string()] = service;
        }
        let target = json!({ "local": { "apps": { self.app.to_string(): {
            "name": "locked", "commit": format!("c{}", release.number),
            "releaseId": release.number.to_string(), "services": services,
        } } } });
        self.device.set_target(&target).await;
    }

    async fn ids(&self) -> Value {
        self.device.json("/v2/containerId").await["services"].clone()
    }

    async fn locks(&self) -> Vec<Value> {
        let locks = self.device.json("/v3/locks").await;
        locks["locks"].as_array().unwrap().clone()
    }

    fn path(&self, service: &str) -> String {
        format!("/v3/locks/{}/{service}", self.app)
    }

    /// Sends a request with a service's own key.
    async fn ask(&self, method: &str, service: &str, key: &str, body: &Value) -> Answer {
        let request = self
            .device
            .request_without_key(method, &self.path(service))
            .bearer_auth(key)
            .json(body);
        self.device.send(request).await
    }

    async fn take(&self, service: &str, more: &Value) -> Answer {
        let mut body = json!({ "reason": "writes flash", "ttl": 3600 });
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        self.ask("PUT", service, self.device.key(), &body).await
    }

    async fn give_back(&self, service: &str) -> Answer {
        let key = self.device.key();
        self.ask("DELETE", service, key, &json!({})).await
    }

    fn folder(&self) -> PathBuf {
        let services = "tmp/platform-supervisor/services";
        let folder = self.device.host_root().join(services);
        folder.join(self.app.to_string())
    }

    fn file(&self, service: &str) -> PathBuf {
        self.folder().join(service).join("updates.lock")
    }

    async fn stop_other(&self, force: bool) -> Answer {
        let path = format!("/v2/applications/{}/stop-service", self.app);
        let body = json!({ "serviceName": "other", "force": force });
        self.device.post(&path, &body).await
    }

    async fn until_held_up(&self) {
        until("the update to be held up", || async {
            let state = self.device.json("/v1/device").await;
            let held_up = state["update_failed"] == true && state["update_downloaded"] == true;
            if held_up { Ok(()) } else { Err(state) }
        })
        .await;
    }

    async fn end(self) {
        let nothing = json!({ "local": { "apps": {} } });
        self.device.set_target(&nothing).await;
        self.device.until_applied().await;
    }

    async fn a_service_takes_its_lock_over_the_api(mut self) {
        let image = self.publish("first");
        let release = |number| Release {
            number,
            image: &image,
        };
        let mut logs = self.device.read_logs().await;
        self.set(release(1)).await;
        let line = logs.until_message("PLATFORM_SUPERVISOR_API_KEY=").await;
        let message = line["message"].as_str().unwrap();
        let (_, key) = message.split_once('=').unwrap();
        let key = key.trim_matches(|c| c == '\'' || c == '"').to_owned();
        self.device.until_applied().await;
        let before = self.ids().await;

        let wish = json!({ "reason": "writes flash", "ttl": 3600 });
        let answer = self.ask("PUT", "keeper", &key, &wish).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let lock = answer.json()["lock"].clone();
        assert_eq!(lock["holder"], "api");
        assert!(self.file("keeper").is_file());
        let shown = self.locks().await;
        assert_eq!(shown.len(), 1, "{shown:?}");
        for field in ["appId", "service", "path", "kind", "since", "reason", "ttl"] {
            assert_eq!(shown[0][field], lock[field], "{field}");
        }
        let unknown = self.ask("PUT", "nobody", &key, &wish).await;
        assert_eq!(unknown.status, 404, "{unknown:?}");

        // It prevents actions and updates, even after a restart.
        assert_eq!(self.stop_other(false).await.status, 423);
        self.set(release(2)).await;
        self.0.device.kill().await;
        self.0.device.start_again().await;
        until("the update to be held up", || async {
            let state = self.device.json("/v1/device").await;
            if state["update_failed"] == true {
                Ok(())
            } else {
                Err(state)
            }
        })
        .await;
        assert_eq!(self.ids().await, before);
        assert_eq!(self.locks().await[0]["since"], lock["since"]);

        let given = self.ask("DELETE", "keeper", &key, &json!({})).await;
        assert_eq!(given.status, 200, "{given:?}");
        self.device.until_applied().await;
        let after = self.ids().await;
        assert_ne!(after["keeper"], before["keeper"]);
        assert_eq!(self.locks().await, [json!(null); 0]);
        assert_eq!(self.give_back("keeper").await.status, 404);

        // A lock that is not released expires, and the update continues.
        assert_eq!(self.take("other", &json!({ "ttl": 2 })).await.status, 200);
        self.set(release(3)).await;
        self.device.until_applied().await;
        assert_ne!(self.ids().await["keeper"], after["keeper"]);
        assert_eq!(self.locks().await, [json!(null); 0]);

        // Force takes precedence.
        assert_eq!(self.take("keeper", &json!({})).await.status, 200);
        assert_eq!(self.stop_other(true).await.status, 200);
        // The supervisor may hold the app's locks for a moment longer.
        let gone = until("the supervisor to give the locks back", || async {
            let answer = self.give_back("keeper").await;
            match answer.status {
                423 => Err(answer),
                _ => Ok(answer),
            }
        });
        assert_eq!(gone.await.status, 404);
        self.end().await;
    }

    async fn a_lock_taken_during_a_download_holds_the_update(self) {
        let (first, second) = (self.publish("first"), self.publish("second"));
        let release = |number, image| Release { number, image };
        self.set(release(1, &first)).await;
        self.device.until_applied().await;
        let before = self.ids().await;

        self.registry.stall(true);
        self.set(release(2, &second)).await;
        until("the download to begin", || async {
            let status = self.device.json("/v2/state/status").await;
            let images = status["images"].as_array().unwrap();
            if images.iter().any(|image| image["status"] == "Downloading") {
                Ok(())
            } else {
                Err(status)
            }
        })
        .await;
        // A user's file in one service, a lock through the API in the other.
        std::fs::write(self.file("keeper"), "").unwrap();
        assert_eq!(self.take("other", &json!({})).await.status, 200);
        for refused in [
            self.take("keeper", &json!({})).await,
            self.give_back("keeper").await,
        ] {
            assert_eq!(refused.status, 409, "{refused:?}");
            let failure = refused.failure().unwrap();
            assert!(failure.contains("keeper/updates.lock"), "{failure}");
        }
        self.registry.stall(false);
        self.until_held_up().await;
        assert_eq!(self.ids().await, before);
        let mut holders: Vec<_> = self.locks().await;
        holders.sort_by_key(|lock| lock["service"].to_string());
        assert_eq!(
            holders
                .iter()
                .map(|lock| &lock["holder"])
                .collect::<Vec<_>>(),
            ["file", "api"]
        );

        assert_eq!(self.give_back("other").await.status, 200);
        std::fs::remove_file(self.file("keeper")).unwrap();
        self.device.until_applied().await;
        assert_ne!(self.ids().await["other"], before["other"]);
        self.end().await;
    }

    async fn what_a_killed_supervisor_held_is_reclaimed_and_a_users_lock_never(mut self) {
        let image = self.publish("first");
        let release = |number| Release {
            number,
            image: &image,
        };
        self.set(release(1)).await;
        self.device.until_applied().await;
        self.0.device.terminate().await;
        self.0
            .device
            .start_again_with(&[("SUPERVISOR_TEST_ABORT_AT", "lock-taken:1")])
            .await;
        self.device.until_applied().await;
        // The answer may be lost with the process.
        let body = json!({ "force": false });
        let restart = format!("/v2/applications/{}/restart", self.app);
        let _ = self
            .device
            .request("POST", &restart)
            .json(&body)
            .send()
            .await;
        self.0.device.until_killed().await;
        assert!(self.file("keeper").exists() && self.file("other").exists());
        self.0.device.start_again().await;
        self.device.until_applied().await;
        assert!(!self.file("keeper").exists() && !self.file("other").exists());

        // An old lock of a user survives a restart and, if the folder does, a reboot.
        let file = std::fs::File::create(self.file("keeper")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(self.take("other", &json!({})).await.status, 200);
        self.reboot().await;
        assert_eq!(self.stop_other(false).await.status, 423);
        let locks = self.locks().await;
        assert_eq!(locks.len(), 1, "{locks:?}");
        assert_eq!(locks[0]["holder"], "file");
        std::fs::remove_file(self.file("keeper")).unwrap();

        let survives = json!({ "survivesReboot": true });
        assert_eq!(self.take("other", &survives).await.status, 200);
        self.reboot().await;
        let locks = self.locks().await;
        assert_eq!(locks.len(), 1, "{locks:?}");
        assert_eq!(locks[0]["survivesReboot"], true);
        assert_eq!(self.stop_other(false).await.status, 423);
        assert_eq!(self.give_back("other").await.status, 200);
        assert_eq!(self.stop_other(false).await.status, 200);
        self.end().await;
    }

    /// Simulates another boot for the supervisor: unlike in a real reboot, services keep running.
    async fn reboot(&mut self) {
        self.0.device.terminate().await;
        let folder = self.device.host_root().join("proc/sys/kernel/random");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("boot_id");
        let number = std::fs::read_to_string(&file).map_or(0, |text| text.len());
        std::fs::write(&file, "x".repeat(number + 1)).unwrap();
        self.0.device.start_again().await;
        self.device.until_applied().await;
    }

    async fn a_folder_that_cannot_be_read_holds_everything(self) {
        let image = self.publish("first");
        let release = |number| Release {
            number,
            image: &image,
        };
        self.set(release(1)).await;
        self.device.until_applied().await;
        let before = self.ids().await;
        let aside = self.folder().with_extension("aside");
        std::fs::rename(self.folder(), &aside).unwrap();
        std::fs::write(self.folder(), "").unwrap();
        for force in [false, true] {
            let refused = self.stop_other(force).await;
            assert_eq!(refused.status, 503, "{refused:?}");
            let why = refused.failure().unwrap();
            assert!(why.contains("can be neither read nor taken"), "{why}");
        }
        let reboot = self
            .device
            .post("/v1/reboot", &json!({"force": true}))
            .await;
        assert_eq!(reboot.status, 500, "{reboot:?}");
        let locks = self.locks().await;
        assert_eq!(locks.len(), 1, "{locks:?}");
        assert_eq!(locks[0]["holder"], "unreadable");
        assert!(locks[0]["error"].is_string());
        assert_eq!(self.take("other", &json!({})).await.status, 503);
        self.set(release(2)).await;
        until("the update to be held up", || async {
            let state = self.device.json("/v1/device").await;
            if state["update_failed"] == true {
                Ok(())
            } else {
                Err(state)
            }
        })
        .await;
        assert_eq!(self.ids().await, before);

        std::fs::remove_file(self.folder()).unwrap();
        std::fs::rename(&aside, self.folder()).unwrap();
        self.device.post("/v1/update", &json!({})).await;
        self.device.until_applied().await;
        assert_ne!(self.ids().await["keeper"], before["keeper"]);
        self.end().await;
    }
}

/// The places where a service may put its lock, and how it finds them: through its variable, and in both folders, with
/// both names (docs/spec/device.md#locks-paths).
const PLACES: [&str; 5] = [
    "$PLATFORM_APP_LOCK_PATH",
    "/tmp/platform/updates.lock",
    "/tmp/platform/old-updates.lock",
    "/tmp/old/updates.lock",
    "/tmp/old/old-updates.lock",
];

/// With an app for each place, the first of them with this number.
async fn locks_at_every_place_count(device: Supervisor, first: u64, on_docker: bool) {
    let mut apps = json!({});
    for (app, place) in (first..).zip(PLACES) {
        let mut service = json!({
            "serviceName": "holder", "imageId": app, "environment": {}, "labels": {},
            "stop_grace_period": "1s", "stop_signal": "SIGKILL",
        });
        if on_docker {
            let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").unwrap();
            service["image"] = format!("{registry}/busybox:latest").into();
            let script = format!("echo mine > {place} && echo written && exec sleep 1000");
            service["command"] = json!(["sh", "-c", script]);
            // Root or not: any user of the service can lock.
            service["user"] = json!(if app % 2 == 0 { "0" } else { "1000" });
        } else {
            service["image"] = format!("file:{}", guest("guest").display()).into();
            service["command"] = match place.strip_prefix('$') {
                Some(variable) => json!(["write-at-and-wait", variable, "mine"]),
                None => json!(["write-and-wait", place, "mine"]),
            };
        }
        apps[app.to_string()] = json!({
            "name": format!("place{app}"), "commit": "c1", "releaseId": "1",
            "services": { "1": service },
        });
    }
    device
        .set_target(&json!({ "local": { "apps": apps } }))
        .await;
    device.until_applied().await;
    let locks = until("all to have locked", || async {
        let locks = device.json("/v3/locks").await["locks"].clone();
        let is_all = |locks: &Vec<_>| locks.len() == PLACES.len();
        if locks.as_array().is_some_and(is_all) {
            Ok(locks)
        } else {
            Err((locks, device.log()))
        }
    })
    .await;
    for (app, place) in (first..).zip(PLACES) {
        let lock = locks
            .as_array()
            .unwrap()
            .iter()
            .find(|lock| lock["appId"] == app);
        let lock = lock.unwrap();
        assert_eq!(
            (&lock["holder"], &lock["kind"]),
            (&json!("file"), &json!("file"))
        );
        let name = place
            .rsplit('/')
            .next()
            .unwrap()
            .replace("$PLATFORM_APP_LOCK_PATH", "updates.lock");
        let path = format!("/tmp/platform-supervisor/services/{app}/holder/{name}");
        assert_eq!(lock["path"], path, "{place}");
        let restart = format!("/v2/applications/{app}/restart");
        let refused = device.post(&restart, &json!({})).await;
        let why = format!("Lockfile exists for {{ appId: {app}, service: holder }}");
        assert_eq!(
            (refused.status, refused.failure()),
            (423, Some(why)),
            "{place}"
        );
    }
    device
        .post(
            "/v2/local/target-state",
            &json!({ "local": { "apps": {} }, "force": true }),
        )
        .await;
    device.until_applied().await;
}

const ALIAS: &str = "[branding]\naliases = [\"OLD_\"]\n";

#[tokio::test]
async fn components_lock_at_every_place() {
    let device = Supervisor::on_wasm().configuration(ALIAS).start().await;
    locks_at_every_place_count(device, 7100, false).await;
}

#[tokio::test]
async fn containers_lock_at_every_place() {
    if let Some(device) = Supervisor::on_docker() {
        let device = device.configuration(ALIAS).start().await;
        locks_at_every_place_count(device, 7110, true).await;
    }
}

#[tokio::test]
async fn a_component_takes_its_lock_over_the_api() {
    let story = Story(Stage::on_wasm(7120).await);
    story.a_service_takes_its_lock_over_the_api().await;
}

#[tokio::test]
async fn a_container_takes_its_lock_over_the_api() {
    if let Some(stage) = Stage::on_docker(7121).await {
        let story = Story(stage);
        story.a_service_takes_its_lock_over_the_api().await;
    }
}

#[tokio::test]
async fn a_lock_taken_during_the_download_of_a_component_holds_the_update() {
    let story = Story(Stage::on_wasm(7122).await);
    story
        .a_lock_taken_during_a_download_holds_the_update()
        .await;
}

#[tokio::test]
async fn a_lock_taken_during_the_download_of_a_container_image_holds_the_update() {
    if let Some(stage) = Stage::on_docker(7123).await {
        let story = Story(stage);
        story
            .a_lock_taken_during_a_download_holds_the_update()
            .await;
    }
}

#[tokio::test]
async fn locks_of_a_killed_supervisor_are_reclaimed_and_those_of_components_never() {
    let story = Story(Stage::on_wasm(7124).await);
    story
        .what_a_killed_supervisor_held_is_reclaimed_and_a_users_lock_never()
        .await;
}

#[tokio::test]
async fn locks_of_a_killed_supervisor_are_reclaimed_and_those_of_containers_never() {
    if let Some(stage) = Stage::on_docker(7125).await {
        let story = Story(stage);
        story
            .what_a_killed_supervisor_held_is_reclaimed_and_a_users_lock_never()
            .await;
    }
}

#[tokio::test]
async fn a_lock_folder_of_components_that_cannot_be_read_holds_everything() {
    let story = Story(Stage::on_wasm(7126).await);
    story.a_folder_that_cannot_be_read_holds_everything().await;
}

#[tokio::test]
async fn a_lock_folder_of_containers_that_cannot_be_read_holds_everything() {
    if let Some(stage) = Stage::on_docker(7127).await {
        let story = Story(stage);
        story.a_folder_that_cannot_be_read_holds_everything().await;
    }
}
