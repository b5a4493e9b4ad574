//! The same tests on Docker, with containers from `busybox`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::{Supervisor, target, until};

/// The image, in the registry that `cargo xtask test` started.
fn busybox() -> String {
    let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").expect("a registry beside the engine");
    format!("{registry}/busybox:latest")
}

fn container(name: &str, more: &Value) -> Value {
    let mut service = json!({
        "serviceName": name, "imageId": 1, "image": busybox(), "environment": {}, "labels": {},
        "stop_grace_period": "1s",
    });
    for (key, value) in more.as_object().unwrap() {
        service[key] = value.clone();
    }
    service
}

fn id_of(status: &Value, service: &str) -> String {
    let containers = status["containers"].as_array().unwrap();
    let found = containers
        .iter()
        .find(|container| container["serviceName"] == service);
    found.unwrap()["containerId"].as_str().unwrap().to_owned()
}

/// Removes the services: the engine is shared with other tests, and nothing else would remove them.
async fn leave_nothing(device: &Supervisor) {
    device.set_target(&json!({"local": {"apps": {}}})).await;
    let status = device.until_applied().await;
    assert_eq!(status["containers"], json!([]));
}

#[tokio::test]
async fn containers_talk_to_each_other_and_to_the_device_and_outlive_the_supervisor() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let mut device = builder.start().await;
    let mut logs = device.read_logs().await;
    let serve = "mkdir /www; echo a greeting > /www/index.html; exec httpd -f -p 8080 -h /www";
    // A statically linked busybox cannot resolve names by itself, except in `nslookup`.
    let ask = "while true; do \
                 server=$(nslookup server | grep ^Address | tail -n 1 | cut -d ' ' -f 2); \
                 timeout 5 wget -q -O - http://$server:8080/; \
                 timeout 5 wget -q -O - $PLATFORM_SUPERVISOR_ADDRESS/v2/version?apikey=$PLATFORM_SUPERVISOR_API_KEY; \
                 echo; sleep 1; \
               done";
    let label = json!({"io.platform.features.supervisor-api": "1"});
    let mut services = [
        container("server", &json!({"command": ["sh", "-c", serve]})),
        container(
            "client",
            &json!({"command": ["sh", "-c", ask], "labels": label}),
        ),
    ];
    device.set_target(&target(1, &services)).await;
    logs.until_message("a greeting").await;
    let version = r#"{"status":"success","version":"19.0.0"}"#;
    logs.until_message(version).await;
    let before = device.until_applied().await;

    services[1]["environment"] = json!({"CHANGED": "yes"});
    device.set_target(&target(1, &services)).await;
    let after = device.until_applied().await;
    assert_eq!(id_of(&after, "server"), id_of(&before, "server"));
    assert_ne!(id_of(&after, "client"), id_of(&before, "client"));

    assert_eq!(device.terminate().await.code(), Some(0));
    device.start_again().await;
    let again = device.until_applied().await;
    for service in ["server", "client"] {
        assert_eq!(id_of(&again, service), id_of(&after, service));
    }
    leave_nothing(&device).await;
}

#[tokio::test]
async fn one_app_may_have_containers_and_components() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    let mut logs = device.read_logs().await;
    let component = tests::service(
        "component",
        &tests::guest("guest"),
        &json!({"command": ["print-and-wait", "a component"]}),
    );
    let shell = container(
        "shell",
        &json!({"command": ["sh", "-c", "echo a container; sleep 1000"]}),
    );
    device.set_target(&target(2, &[component, shell])).await;
    let mut lines = [
        logs.until_message("a co").await,
        logs.until_message("a co").await,
    ]
    .map(|line| line["message"].as_str().unwrap().to_owned());
    lines.sort();
    assert_eq!(lines, ["a component", "a container"]);
    let status = device.until_applied().await;
    assert_eq!(status["containers"].as_array().unwrap().len(), 2);
    leave_nothing(&device).await;
}

#[tokio::test]
async fn an_image_that_no_registry_has_is_waited_for_and_holds_up_no_other_service() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    let missing = container("missing", &json!({"image": format!("{}-none", busybox())}));
    let present = container("present", &json!({"command": ["sleep", "1000"]}));
    // Services of one app wait for all its images; another app does not.
    let mut both = target(3, &[missing]);
    both["local"]["apps"]["4"] = target(4, &[present])["local"]["apps"]["4"].clone();
    device.set_target(&both).await;
    until("the other app to run", || async {
        let apps = device.json("/v2/applications/state").await;
        if apps["app4"]["services"]["present"]["status"] == "Running" {
            Ok(())
        } else {
            Err(apps)
        }
    })
    .await;
    assert_eq!(
        device.json("/v2/state/status").await["appState"],
        "applying"
    );
    leave_nothing(&device).await;
}

/// The number of services to start, unless `STARTS` sets another.
const STARTS: usize = 10;
/// How many of them are started at a time.
const AT_A_TIME: usize = 10;
/// How often each is killed as it starts, at most.
const MOST_KILLS: usize = 3;

/// Kills the first processes of an app's containers: those with which runc creates them, or the service's own. Leaves a
/// container alone that replaces another one of the same round, so that each round ends.
struct Killer {
    is_over: Arc<AtomicBool>,
    /// The number of rounds that have begun.
    rounds: Arc<AtomicUsize>,
    kills: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Killer {
    fn start(docker: Docker, service: &'static str) -> Self {
        let (is_over, kills) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let rounds = Arc::<AtomicUsize>::default();
        let runtime = tokio::runtime::Handle::current();
        let thread = thread::spawn({
            let (is_over, kills) = (Arc::clone(&is_over), Arc::clone(&kills));
            let rounds = Arc::clone(&rounds);
            move || {
                let mut left = HashMap::new();
                let mut seen: HashMap<String, usize> = HashMap::new();
                while !is_over.load(Ordering::Relaxed) {
                    for (id, found) in runtime.block_on(containers(&docker, service)) {
                        let number = left.len();
                        left.entry(id).or_insert_with(|| {
                            let of_name = seen.entry(found.name).or_default();
                            let is_replacement = *of_name >= rounds.load(Ordering::Relaxed);
                            *of_name += usize::from(!is_replacement);
                            if is_replacement {
                                0
                            } else {
                                1 + number % MOST_KILLS
                            }
                        });
                    }
                    kill_processes_of(&mut left, &kills);
                }
            }
        });
        Killer {
            is_over,
            rounds,
            kills,
            thread: Some(thread),
        }
    }
}

impl Drop for Killer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Kills one process of each container that has kills left. Their control groups show which container they belong to.
fn kill_processes_of(left: &mut HashMap<String, usize>, kills: &AtomicUsize) {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in numbers.filter_map(Pid::from_raw) {
        let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_pid()));
        let groups = groups.unwrap_or_default();
        let Some((_, left)) = left
            .iter_mut()
            .find(|(id, left)| **left > 0 && groups.contains(id.as_str()))
        else {
            continue;
        };
        if kill_process(pid, Signal::KILL).is_ok() {
            *left -= 1;
            kills.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The name and the state of a container, as Docker lists it.
#[derive(Debug)]
struct ContainerListing {
    name: String,
    state: String,
}

/// Returns the containers of services whose names begin like this, by their ids.
async fn containers(docker: &Docker, service: &str) -> BTreeMap<String, ContainerListing> {
    let filters = HashMap::from([("name", vec![service])]);
    let options = ListContainersOptionsBuilder::new()
        .all(true)
        .filters(&filters);
    let listed = docker.list_containers(Some(options.build())).await;
    let listed = listed.unwrap_or_default().into_iter();
    listed
        .filter_map(|found| {
            let name = found.names?.into_iter().next()?;
            let state = found.state?.to_string();
            Some((found.id?, ContainerListing { name, state }))
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_that_are_killed_as_they_start_run_in_the_end() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let device = builder.start().await;
    let uri = std::env::var("SUPERVISOR_TEST_DOCKER").unwrap();
    let docker = Docker::connect_with_host(&uri).unwrap();
    let docker = docker.negotiate_version().await.unwrap();
    let starts = std::env::var("STARTS").map_or(STARTS, |starts| starts.parse().unwrap());
    let killer = Killer::start(docker.clone(), "killedstart");
    for round in 0..starts.div_ceil(AT_A_TIME) {
        let services: Vec<Value> = (0..AT_A_TIME)
            .map(|number| {
                let more = json!({
                    "command": ["sleep", "100000"], "restart": "always",
                    "environment": { "ROUND": round.to_string() }, "imageId": number + 1,
                });
                container(&format!("killedstart{number}"), &more)
            })
            .collect();
        killer.rounds.fetch_add(1, Ordering::Relaxed);
        device.set_target(&target(1001, &services)).await;
        until("all of them to run", || async {
            let plan = device.json("/v3/plan").await;
            let found = containers(&docker, "killedstart").await;
            let run = found
                .values()
                .filter(|found| found.state == "running")
                .count();
            if run == AT_A_TIME && plan["state"] == "settled" {
                Ok(())
            } else {
                Err((round, found, plan, device.log()))
            }
        })
        .await;
    }
    let kills = killer.kills.load(Ordering::Relaxed);
    println!("{starts} starts, {kills} processes killed");
    assert!(kills >= starts, "{kills} kills in {starts} starts");
    drop(killer);
    leave_nothing(&device).await;
}
