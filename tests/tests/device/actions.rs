//! Actions on services, as clients see them, on both engines.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::{LogReader, Supervisor, guest, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A device with one app: `keeper` counts its starts in a volume, `other` waits.
struct Story {
    device: Supervisor,
    logs: LogReader,
    app: u64,
    on_docker: bool,
}

const LOCK: &str = "/tmp/platform/updates.lock";

impl Story {
    async fn on_wasm(app: u64) -> Self {
        Self::begin(Supervisor::on_wasm().start().await, app, false).await
    }

    async fn on_docker(app: u64) -> Option<Self> {
        let device = Supervisor::on_docker()?.start().await;
        Some(Self::begin(device, app, true).await)
    }

    async fn begin(device: Supervisor, app: u64, on_docker: bool) -> Self {
        let logs = device.read_logs().await;
        let story = Story {
            device,
            logs,
            app,
            on_docker,
        };
        story.set(&[]).await;
        story
    }

    /// Returns a service, with the command for this engine.
    fn service(&self, name: &str, component: &[&str], shell: &str) -> Value {
        let mut service = json!({
            "serviceName": name, "environment": {}, "labels": {}, "stop_grace_period": "1s",
        });
        if self.on_docker {
            let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").unwrap();
            service["image"] = format!("{registry}/busybox:latest").into();
            service["command"] = json!(["sh", "-c", shell]);
        } else {
            service["image"] = format!("file:{}", guest("guest").display()).into();
            service["command"] = json!(component);
        }
        service
    }

    fn keeper(&self) -> Value {
        let shell = "echo >> /data/starts; echo starts $(wc -l < /data/starts); exec sleep 1000";
        let mut keeper = self.service("keeper", &["count-starts", "/data/starts"], shell);
        keeper["volumes"] = json!(["data:/data"]);
        keeper
    }

    /// A service that locks updates by itself.
    fn holder(&self) -> Value {
        let shell = format!("echo mine > {LOCK}; echo written; exec sleep 1000");
        self.service("holder", &["write-and-wait", LOCK, "mine"], &shell)
    }

    async fn set(&self, more: &[Value]) {
        let other = self.service("other", &["wait"], "exec sleep 1000");
        let mut services = json!({});
        for (number, mut service) in (1..).zip([self.keeper(), other].iter().chain(more).cloned()) {
            service["imageId"] = json!(number);
            services[number.to_string()] = service;
        }
        let target = json!({ "local": { "apps": { self.app.to_string(): {
            "name": "story", "commit": "c1", "releaseId": "1", "services": services,
            "volumes": { "data": {} },
        } } } });
        self.device.set_target(&target).await;
        self.device.until_applied().await;
    }

    async fn act(&self, verb: &str, body: &Value) -> (u16, String) {
        let path = format!("/v2/applications/{}/{verb}", self.app);
        let answer = self.device.post(&path, body).await;
        (answer.status, answer.text)
    }

    async fn ok(&self, verb: &str, body: &Value) {
        let done = self.act(verb, body).await;
        assert_eq!(done, (200, "OK".to_owned()), "{verb} {body}");
    }

    async fn services(&self) -> Value {
        let state = self.device.json("/v2/applications/state").await;
        state["story"]["services"].clone()
    }

    async fn status_of(&self, service: &str) -> String {
        let services = self.services().await;
        services[service]["status"].as_str().unwrap().to_owned()
    }

    async fn id_of(&self, service: &str) -> String {
        let ids = self.device.json("/v2/containerId").await;
        ids["services"][service].as_str().unwrap().to_owned()
    }

    fn lock_of(&self, service: &str) -> PathBuf {
        let services = "tmp/platform-supervisor/services";
        let folder = self.device.host_root().join(services);
        folder
            .join(self.app.to_string())
            .join(service)
            .join("updates.lock")
    }

    async fn end(self) {
        let nothing = json!({"local": {"apps": {}}});
        self.device.set_target(&nothing).await;
        self.device.until_applied().await;
    }

    async fn services_are_stopped_started_restarted_and_purged(mut self) {
        self.logs.until_message("starts 1").await;
        let keeper = json!({"serviceName": "keeper"});
        let (first, other) = (self.id_of("keeper").await, self.id_of("other").await);

        self.ok("stop-service", &keeper).await;
        assert_eq!(self.status_of("keeper").await, "exited");
        // It stays stopped through an update of the other services.
        self.set(&[]).await;
        assert_eq!(self.status_of("keeper").await, "exited");
        assert_eq!(self.id_of("keeper").await, first);

        self.ok("start-service", &json!({"imageId": 1})).await;
        assert_eq!(self.status_of("keeper").await, "Running");
        assert_eq!(self.id_of("keeper").await, first);
        self.logs.until_message("starts 2").await;

        self.ok("restart-service", &keeper).await;
        assert_eq!(self.status_of("keeper").await, "Running");
        assert_ne!(self.id_of("keeper").await, first);
        assert_eq!(self.id_of("other").await, other);
        self.logs.until_message("starts 3").await;

        self.ok("restart", &json!({})).await;
        assert_ne!(self.id_of("other").await, other);
        self.logs.until_message("starts 4").await;

        self.ok("purge", &json!({})).await;
        assert_eq!(self.status_of("keeper").await, "Running");
        self.logs.until_message("starts 1").await;

        // The first version of the API does the same with the app's number.
        let app = json!({"appId": self.app});
        let purged = self.device.post("/v1/purge", &app).await;
        assert_eq!(purged.json(), json!({"Data": "OK", "Error": ""}));
        // If it had been killed earlier, it would not have counted this start.
        self.logs.until_message("starts 1").await;
        assert_eq!(self.device.post("/v1/restart", &app).await.status, 200);
        self.logs.until_message("starts 2").await;
        self.device.until_applied().await;
        self.end().await;
    }

    async fn a_service_keeps_others_from_being_disturbed(mut self) {
        self.set(&[self.holder()]).await;
        self.logs.until_message("written").await;
        let first = self.id_of("keeper").await;
        let keeper = json!({"serviceName": "keeper"});
        let why = format!(
            "Lockfile exists for {{ appId: {}, service: holder }}",
            self.app
        );
        for (verb, body) in [
            ("stop-service", &keeper),
            ("start-service", &keeper),
            ("restart-service", &keeper),
            ("restart", &json!({})),
            ("purge", &json!({})),
        ] {
            let (status, text) = self.act(verb, body).await;
            let failure: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (status, failure),
                (423, json!({"status": "failed", "message": why})),
                "{verb}"
            );
        }
        for path in ["/v1/reboot", "/v1/shutdown"] {
            let refused = self.device.post(path, &json!({})).await;
            assert_eq!(refused.status, 423);
            assert_eq!(refused.json(), json!({"Data": "", "Error": why}));
        }
        assert_eq!(self.id_of("keeper").await, first);
        assert!(self.lock_of("holder").exists());

        self.ok(
            "restart-service",
            &json!({"serviceName": "keeper", "force": "on"}),
        )
        .await;
        assert_ne!(self.id_of("keeper").await, first);
        self.device.until_applied().await;
        assert!(!self.lock_of("holder").exists());
        self.end().await;
    }
}

#[tokio::test]
async fn components_are_stopped_started_restarted_and_purged() {
    let story = Story::on_wasm(31).await;
    story
        .services_are_stopped_started_restarted_and_purged()
        .await;
}

#[tokio::test]
async fn containers_are_stopped_started_restarted_and_purged() {
    if let Some(story) = Story::on_docker(32).await {
        story
            .services_are_stopped_started_restarted_and_purged()
            .await;
    }
}

#[tokio::test]
async fn a_component_that_holds_its_lock_keeps_its_app_as_it_is() {
    let story = Story::on_wasm(33).await;
    story.a_service_keeps_others_from_being_disturbed().await;
}

#[tokio::test]
async fn a_container_that_holds_its_lock_keeps_its_app_as_it_is() {
    if let Some(story) = Story::on_docker(34).await {
        story.a_service_keeps_others_from_being_disturbed().await;
    }
}

#[tokio::test]
async fn a_service_that_was_stopped_over_the_api_starts_with_the_supervisor() {
    let mut story = Story::on_wasm(35).await;
    let id = story.id_of("keeper").await;
    story
        .ok("stop-service", &json!({"serviceName": "keeper"}))
        .await;
    assert_eq!(story.status_of("keeper").await, "exited");
    story.device.kill().await;
    story.device.start_again().await;
    story.device.until_applied().await;
    assert_eq!(story.status_of("keeper").await, "Running");
    assert_eq!(story.id_of("keeper").await, id);
}

#[tokio::test]
async fn the_host_reboots_after_all_services_have_stopped() {
    let story = Story::on_wasm(36).await;
    for (path, words) in [("/v1/reboot", "reboot"), ("/v1/shutdown", "power off")] {
        let answer = story.device.post(path, &json!({"force": true})).await;
        assert_eq!(answer.status, 202);
        assert_eq!(answer.json(), json!({"Data": "OK", "Error": ""}));
        until("the host to be told", || async {
            let log = story.device.log();
            let stopped = log.rfind("Stopped service 'keeper");
            let last = log.rfind(&format!("rehearsal: would {words}"));
            match (stopped, last) {
                (Some(stopped), Some(last)) if stopped < last => Ok(()),
                _ => Err(log),
            }
        })
        .await;
        // It was a rehearsal: everything runs again.
        story.device.until_applied().await;
        assert_eq!(story.status_of("keeper").await, "Running");
    }
}

#[tokio::test]
async fn the_only_service_of_a_device_answers_the_first_api() {
    let device = Supervisor::on_wasm().start().await;
    let waits = tests::service(
        "web",
        &guest("guest"),
        &json!({
            "command": ["wait"], "environment": {"COLOUR": "blue"},
            "labels": {"io.platform.features.supervisor-api": "1"},
        }),
    );
    device.set_target(&tests::target(37, &[waits])).await;
    device.until_applied().await;
    let app = device.json("/v1/apps/37").await;
    let id = app["containerId"].as_str().unwrap();
    assert_eq!(
        (&app["appId"], &app["commit"]),
        (&json!(37), &json!("commit1"))
    );
    assert_eq!(app["env"]["COLOUR"], "blue");
    assert_eq!(app["env"]["PLATFORM_APP_ID"], "37");
    assert_eq!(app["env"].get("PLATFORM_SUPERVISOR_API_KEY"), None);
    for verb in ["stop", "start"] {
        let answer = device
            .post(&format!("/v1/apps/37/{verb}"), &json!({}))
            .await;
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({"containerId": id}))
        );
    }
}

#[tokio::test]
async fn volumes_that_nothing_uses_or_wants_are_cleaned_up() {
    let story = Story::on_wasm(38).await;
    let volumes = || async {
        let folder = story.device.state_dir().join("wasm/volumes");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = volumes().await;
    assert_eq!(before.len(), 1, "{before:?}");
    let cleaned = story.device.get("/v2/cleanup-volumes").await;
    assert_eq!(cleaned.json(), json!({"status": "success"}));
    assert_eq!(volumes().await, before);

    // In local mode the volumes of a removed app are kept.
    let nothing = json!({"local": {"apps": {}}});
    story.device.set_target(&nothing).await;
    story.device.until_applied().await;
    assert_eq!(volumes().await, before);
    assert_eq!(story.device.get("/v2/cleanup-volumes").await.status, 200);
    assert_eq!(volumes().await, [""; 0]);
}

#[tokio::test]
async fn conformance2_a_request_during_an_action_that_removed_the_containers_waits_for_its_turn() {
    let story = Story::on_wasm(1000).await;
    let device = &story.device;
    device.until_applied().await;
    let other = json!({"serviceName": "other"});
    let app = json!({"appId": 1000});
    let actions = [
        ("/v1/purge", &app),
        ("/v1/restart", &app),
        ("/v2/applications/1000/restart-service", &other),
        ("/v2/applications/1000/stop-service", &other),
        ("/v2/applications/1000/start-service", &other),
    ];
    for (path, body) in &actions[..3] {
        // The containers are away for some milliseconds: an attempt that misses them proves
        // nothing.
        until("the containers to be away", || async {
            let first = device.post(path, body);
            tokio::pin!(first);
            loop {
                let ids = tokio::select! {
                    done = &mut first => return Err(done),
                    ids = device.json("/v2/containerId") => ids,
                };
                if ids["services"].get("other").is_none() {
                    break;
                }
            }
            let others = actions.iter().map(|(path, body)| device.post(path, body));
            let (done, others) = tokio::join!(first, futures::future::join_all(others));
            for answer in others.iter().chain([&done]) {
                assert_eq!(answer.status, 200, "during {path}: {answer:?}");
            }
            Ok(())
        })
        .await;
    }
    assert_eq!(
        device
            .post("/v1/purge", &json!({"appId": 1001}))
            .await
            .status,
        503
    );
    story.end().await;
}

#[tokio::test]
async fn conformance9_a_device_that_goes_down_does_not_listen_and_goes_down_once() {
    let story = Story::on_wasm(38).await;
    // So that the host is still going down when the others are answered.
    let mut slow = story.service("slow", &["ignore-stop"], "");
    slow["stop_grace_period"] = json!("15s");
    story.set(&[slow]).await;
    story.device.until_applied().await;
    let address = story.device.base().trim_start_matches("http://").to_owned();
    let body = json!({"force": true}).to_string();
    let key = story.device.key();
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
    };
    // Requests whose bodies are sent once the host goes down: they are under way.
    let mut others = Vec::new();
    for (path, status) in [("/v1/reboot", 202), ("/v1/shutdown", 423)] {
        let mut other = TcpStream::connect(&address).await.unwrap();
        other.write_all(head(path).as_bytes()).await.unwrap();
        others.push((other, path, status));
    }
    assert_eq!(story.device.get("/ping").await.status, 200);
    let answer = story
        .device
        .post("/v1/reboot", &json!({"force": true}))
        .await;
    assert_eq!(answer.status, 202);
    until("the API to stop listening", || async {
        match TcpStream::connect(&address).await {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
            other => Err(other.map(drop)),
        }
    })
    .await;
    for (mut other, path, status) in others {
        other.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.unwrap();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{path}: {answer}");
    }
    // It was a rehearsal: the API listens again, and there was only one.
    story.device.until_applied().await;
    let log = story.device.log();
    assert_eq!(log.matches("rehearsal: would").count(), 1, "{log}");
}
