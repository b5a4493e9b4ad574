//! `kill -9` of the supervisor in the middle of an update: it reaches the target anyway, with nothing duplicated, lost
//! or left locked, and services that the update does not affect keep running.
//!
//! Every round changes one release to the next. Of its services one only changes its name (`kept`), one is created
//! again (`changed`) and one has an image that must be pulled (`pulled`); a second app does not change. The process
//! kills itself at a named moment, set by `SUPERVISOR_TEST_ABORT_AT`, and is started again without that; or it is
//! killed after a random time, no longer than an update.
//!
//! `KILLS=100` adds this many rounds with a random time, `SUPERVISOR_TEST_SEED` repeats a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::errors::Error as DockerError;
use bollard::query_parameters::{InspectContainerOptions, ListContainersOptionsBuilder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::{Registry, Supervisor, guest, services_of, until};

/// The number of rounds, to which `KILLS` adds more.
const ROUNDS: u64 = 20;
/// The moments, and how many times an update of [`Story::release`] reaches each.
const MOMENTS: [(&str, u64); 6] = [
    ("in-pull", 1),
    ("after-create", 2),
    ("lock-taken", 1),
    ("killed-not-started", 2),
    ("renamed", 1),
    ("after-store-write", 8),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_update_on_wasm_survives_being_killed_at_any_step() {
    Story::new(Supervisor::on_wasm().start().await, World::Wasm)
        .await
        .tell()
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_on_docker_survives_being_killed_at_any_step() {
    let Some(device) = Supervisor::on_docker() else {
        return;
    };
    let docker = docker().await;
    Story::new(device.start().await, World::Docker(docker))
        .await
        .tell()
        .await;
}

async fn docker() -> Docker {
    let uri = std::env::var("SUPERVISOR_TEST_DOCKER").unwrap();
    Docker::connect_with_host(&uri)
        .unwrap()
        .negotiate_version()
        .await
        .unwrap()
}

/// How services are observed without the supervisor.
enum World {
    Wasm,
    Docker(Docker),
}

/// When the supervisor is killed.
#[derive(Debug)]
enum Kill {
    /// By itself, at `<moment>:<n>`.
    At(String),
    /// By the test, this long after the target was sent.
    After(Duration),
}

/// One running service: its container's id, and a value that changes when it is started again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServiceRun {
    id: String,
    started: String,
}

struct Story {
    device: Supervisor,
    world: World,
    registry: Registry,
    /// Distinguishes it from services of other tests on the same engine.
    suffix: String,
    seed: u64,
    /// The image of `kept`, `changed` and `bystander`.
    image: String,
}

impl Story {
    async fn new(device: Supervisor, world: World) -> Self {
        let seed = match std::env::var("SUPERVISOR_TEST_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => u64::from(std::process::id()),
        };
        println!("SUPERVISOR_TEST_SEED={seed} repeats this run");
        let registry = Registry::start().await;
        let mut story = Story {
            device,
            world,
            registry,
            suffix: format!("{seed:x}"),
            seed,
            image: String::new(),
        };
        story.image = story.publish("base");
        story
    }

    fn publish(&self, note: &str) -> String {
        let note = format!("{note}-{}", self.suffix);
        match self.world {
            World::Wasm => self
                .registry
                .publish_component(&fs::read(guest("guest")).unwrap(), &note),
            World::Docker(_) => self.registry.publish_busybox(&note),
        }
    }

    fn name(&self, service: &str) -> String {
        format!("{service}-{}", self.suffix)
    }

    /// The target whose first app is at this release. No other test uses the apps' numbers: on one engine, volumes and
    /// networks are named after them.
    fn release(&self, number: u64) -> Value {
        let command = match self.world {
            World::Wasm => json!(["wait"]),
            World::Docker(_) => json!(["sleep", "infinity"]),
        };
        let service = |name: &str, image: &str, revision: u64| {
            json!({
                "serviceName": self.name(name),
                "imageId": 1,
                "image": image,
                "environment": { "REVISION": revision.to_string() },
                "labels": {},
                "running": true,
                "command": command,
                "stop_signal": "SIGKILL",
                "stop_grace_period": "1s",
                "volumes": [format!("data:/data")],
            })
        };
        let app = |commit: String, release: u64, services: Value| {
            json!({
                "name": "app",
                "commit": commit,
                "releaseId": release.to_string(),
                "services": services,
                "volumes": { "data": {} },
                "networks": {},
            })
        };
        let pulled = self.publish(&format!("pulled{number}"));
        json!({ "local": { "name": "test", "config": {}, "apps": {
            "7001": app(format!("commit{number}"), number, json!({
                "1": service("kept", &self.image, 0),
                "2": service("changed", &self.image, number),
                "3": service("pulled", &pulled, 0),
            })),
            "7002": app("standing".into(), 1, json!({
                "1": service("bystander", &self.image, 0),
            })),
        } } })
    }

    async fn tell(mut self) {
        self.device.set_target(&self.release(1)).await;
        self.device.until_applied().await;
        let mut before = self.running().await;
        assert_eq!(before.len(), 4, "{before:?}");
        let marker = self.volume().await.join("marker");
        fs::write(&marker, "kept").unwrap();

        let begun = Instant::now();
        self.device.set_target(&self.release(2)).await;
        self.until_at(2).await;
        before = self.running().await;
        let update = begun.elapsed();

        let more = std::env::var("KILLS").map_or(0, |kills| kills.parse().unwrap());
        for round in 0..ROUNDS + more {
            let when = self.kill_of(round, update);
            let moment = format!("round {round}, killed {when:?}");
            println!("{moment}");
            let target = self.release(round + 3);
            let is_taken = match when {
                Kill::At(at) => {
                    self.device.terminate().await;
                    self.device
                        .start_again_with(&[("SUPERVISOR_TEST_ABORT_AT", &at)])
                        .await;
                    // The answer may be lost with the process. By then the target is stored, unless the process had to
                    // finish other work first and was killed at its first write.
                    let is_answered = self.send(&target).await;
                    self.device.until_killed().await;
                    is_answered || !at.starts_with("after-store-write")
                }
                Kill::After(time) => {
                    let process = Pid::from_raw(self.device.pid()).unwrap();
                    let killing = async {
                        tokio::time::sleep(time).await;
                        kill_process(process, Signal::KILL).unwrap();
                    };
                    let (is_taken, ()) = tokio::join!(self.send(&target), killing);
                    self.device.until_killed().await;
                    is_taken
                }
            };
            let while_dead = self.running().await;
            for untouched in ["kept", "bystander"] {
                let name = self.name(untouched);
                assert_eq!(
                    while_dead.get(&name),
                    before.get(&name),
                    "{moment}: {untouched}"
                );
            }

            self.device.start_again().await;
            if !is_taken {
                // As a client does that received no answer.
                self.device.set_target(&target).await;
            }
            self.until_at(round + 3).await;
            let after = self.running().await;
            let names: Vec<&String> = after.keys().collect();
            assert_eq!(names, before.keys().collect::<Vec<_>>(), "{moment}");
            for untouched in ["kept", "bystander"] {
                let name = self.name(untouched);
                assert_eq!(
                    after[&name], before[&name],
                    "{moment}: {untouched} was disturbed"
                );
            }
            for replaced in ["changed", "pulled"] {
                let name = self.name(replaced);
                assert_ne!(after[&name].id, before[&name].id, "{moment}: {replaced}");
            }
            assert_eq!(
                locks_below(self.device.host_root()),
                Vec::<PathBuf>::new(),
                "{moment}"
            );
            assert_eq!(fs::read_to_string(&marker).unwrap(), "kept", "{moment}");
            before = after;
        }
        let nothing = json!({ "local": { "name": "test", "config": {}, "apps": {} } });
        self.device.set_target(&nothing).await;
        self.device.until_applied().await;
        assert_eq!(self.running().await, BTreeMap::new());
    }

    /// Returns when a round is killed: at each moment in turn and then after a time, chosen by the seed. `update` is
    /// how long an undisturbed update takes.
    fn kill_of(&self, round: u64, update: Duration) -> Kill {
        let draw = (self.seed ^ (round << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let turn = usize::try_from(round).unwrap() % (MOMENTS.len() + 1);
        match MOMENTS.get(turn).filter(|_| round < ROUNDS) {
            Some((moment, most)) => Kill::At(format!("{moment}:{}", 1 + draw % most)),
            None => Kill::After(update * u32::try_from(draw % 1024).unwrap() / 1024),
        }
    }

    /// Sends a target to a supervisor that may be killed at the same time; returns whether it was accepted.
    async fn send(&self, target: &Value) -> bool {
        let request = self.device.request("POST", "/v2/local/target-state");
        let answer = request.json(target).send().await;
        answer.is_ok_and(|answer| answer.status() == 200)
    }

    /// Waits until the first app's release is applied and settled.
    async fn until_at(&self, number: u64) {
        let commit = format!("commit{number}");
        until("the release to be applied", || async {
            let app = self.device.json("/v2/applications/7001/state").await;
            let status = self.device.json("/v2/state/status").await;
            if app["commit"] == commit && status["appState"] == "applied" {
                Ok(())
            } else {
                Err((app, status, self.device.log()))
            }
        })
        .await;
    }

    /// Returns the running services, by name.
    ///
    /// Every container must run, and each service must have only one: others are duplicates or leftovers.
    async fn running(&self) -> BTreeMap<String, ServiceRun> {
        match &self.world {
            World::Wasm => running_processes(self.device.state_dir()),
            World::Docker(docker) => running_containers(docker, &self.suffix).await,
        }
    }

    /// Returns the folder of the first app's volume on this machine.
    async fn volume(&self) -> PathBuf {
        match &self.world {
            World::Wasm => find(self.device.state_dir(), &|path| {
                path.ends_with("data") && path.is_dir()
            })
            .into_iter()
            .find(|path| {
                let record = path.with_file_name("volume.json");
                fs::read_to_string(record).is_ok_and(|record| record.contains("\"7001_data\""))
            })
            .unwrap(),
            World::Docker(docker) => docker
                .inspect_volume("7001_data")
                .await
                .unwrap()
                .mountpoint
                .into(),
        }
    }
}

fn running_processes(state_dir: &Path) -> BTreeMap<String, ServiceRun> {
    let mut running = BTreeMap::new();
    let mut records = Vec::new();
    for pid in services_of(state_dir) {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let Some(record) = command.split('\0').find(|word| {
            Path::new(word).is_absolute() && Path::new(word).join("container.json").is_file()
        }) else {
            continue;
        };
        let record = PathBuf::from(record);
        let container: Value =
            serde_json::from_str(&fs::read_to_string(record.join("container.json")).unwrap())
                .unwrap();
        let name = label(&container, "io.platform.service-name");
        let id = record.file_name().unwrap().to_string_lossy().into_owned();
        let one = ServiceRun {
            id,
            started: pid.to_string(),
        };
        let other = running.insert(name.clone(), one);
        assert_eq!(other, None, "`{name}` runs twice");
        records.push(record);
    }
    running
}

/// Returns the first value of `key` anywhere in the document.
fn label(document: &Value, key: &str) -> String {
    fn search(value: &Value, key: &str) -> Option<String> {
        match value {
            Value::Object(entries) => entries.iter().find_map(|(name, value)| match value {
                Value::String(text) if name == key => Some(text.clone()),
                other => search(other, key),
            }),
            Value::Array(values) => values.iter().find_map(|value| search(value, key)),
            _ => None,
        }
    }
    search(document, key).unwrap()
}

async fn running_containers(docker: &Docker, suffix: &str) -> BTreeMap<String, ServiceRun> {
    let mut running = BTreeMap::new();
    let all = ListContainersOptionsBuilder::new().all(true).build();
    for container in docker.list_containers(Some(all)).await.unwrap() {
        let labels = container.labels.unwrap_or_default();
        let Some(name) = labels.get("io.platform.service-name") else {
            continue;
        };
        if !name.ends_with(&format!("-{suffix}")) {
            continue;
        }
        let id = container.id.unwrap();
        let inspected = match docker
            .inspect_container(&id, None::<InspectContainerOptions>)
            .await
        {
            // Docker lists a container that is being removed until it is completely gone.
            Err(DockerError::DockerResponseServerError {
                status_code: 404, ..
            }) => continue,
            inspected => inspected.unwrap(),
        };
        let state = inspected.state.unwrap();
        if state.running != Some(true) {
            // Only a dead supervisor may leave a container that was created and not started.
            continue;
        }
        let one = ServiceRun {
            id,
            started: state.started_at.unwrap(),
        };
        let other = running.insert(name.clone(), one);
        assert_eq!(other, None, "`{name}` runs twice");
    }
    running
}

fn locks_below(folder: &Path) -> Vec<PathBuf> {
    find(folder, &|path| {
        path.to_string_lossy().ends_with("updates.lock")
    })
}

fn find(folder: &Path, is_match: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_match(&path) {
            found.push(path.clone());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(find(&path, is_match));
        }
    }
    found
}
