//! A device whose owner requires signed targets, and a cloud that was taken over: whatever it sends, the device runs
//! what its owner signed.

use std::fs;

use minisign::KeyPair;
use model::{Branding, TargetState};
use serde_json::{Value, json};
use signed_targets::{Allowances, SignedText, Statement};
use tests::{
    DEVICE, RecordedCloud, Registry, Supervisor, guest, repository, service, services_of, target,
    until,
};

const APP: &str = "5f0ee0e1d1b84a1f9a6f5a7d3a1c9b20";
const FIRST: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";
/// After the year 2100, in milliseconds.
const LATER: u64 = 4_200_000_000_000;

/// A fleet: its cloud, the registry of its images, and the owner's key, which neither of them has.
struct Fleet {
    cloud: RecordedCloud,
    registry: Registry,
    owner: KeyPair,
    policy: tempfile::TempDir,
}

impl Fleet {
    /// A fleet whose release runs an image by its digest.
    async fn start() -> Fleet {
        let registry = Registry::start().await;
        let fleet = Fleet {
            cloud: RecordedCloud::start(&guest("guest")).await,
            registry,
            owner: KeyPair::generate_unencrypted_keypair().unwrap(),
            policy: tempfile::tempdir().unwrap(),
        };
        let image = fleet.image("first");
        fleet
            .cloud
            .release(FIRST, |service| service["image"] = json!(image));
        fleet.wants("keys = [\"fleet\"]");
        fleet
    }

    fn image(&self, note: &str) -> String {
        let component = fs::read(guest("guest")).unwrap();
        let image = self.registry.publish_component(&component, note);
        self.registry.by_digest(&image)
    }

    /// Writes the owner's policy: the key's name, and these lines of `[targets]`.
    fn wants(&self, targets: &str) {
        let shipped = fs::read_to_string(repository().join("packaging/policy.toml")).unwrap();
        let key = self.owner.pk.to_base64();
        let policy = format!("{shipped}\n[keys.fleet]\npublic = \"{key}\"\n[targets]\n{targets}\n");
        // In one step.
        fs::write(self.path("new.toml"), policy).unwrap();
        fs::rename(self.path("new.toml"), self.path("policy.toml")).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.policy.path().join(name).display().to_string()
    }

    /// Returns the device's target at the cloud.
    fn says(&self) -> Value {
        let mut says = Value::Null;
        self.cloud.change(|device| says = device.clone());
        says
    }

    fn say(&self, device: &Value) {
        self.cloud.change(|says| *says = device.clone());
    }

    /// Returns the text that the owner creates from the cloud's target.
    fn signed(&self, key: &KeyPair, version: u64, expires_ms: u64) -> String {
        let document = json!({ DEVICE: self.says() });
        let uuid = DEVICE.parse().unwrap();
        let branding = Branding::default();
        let target = TargetState::from_cloud_json(&document, &uuid, &branding).unwrap();
        let allowances = Allowances {
            version,
            expires_ms: Some(expires_ms),
            variables: [(None, ["A".to_owned()].into())].into(),
            ..Allowances::default()
        };
        let app = target.apps.values().next().unwrap();
        let statement = Statement::from_app(app, &target.config, &allowances).unwrap();
        let statement = statement.to_text().unwrap();
        let signature = minisign::sign(None, &key.sk, statement.as_bytes(), None, None);
        SignedText {
            signature: &signature.unwrap().into_string(),
            statement: &statement,
        }
        .join()
    }

    fn sign(&self, version: u64) {
        let text = self.signed(&self.owner, version, LATER);
        self.put_signed(&text);
    }

    fn put_signed(&self, text: &str) {
        self.cloud
            .change(|device| release(device)["signed_statement"] = json!(text));
    }

    async fn device(&self) -> Supervisor {
        Supervisor::on_wasm()
            .argument("--policy")
            .argument(self.path("policy.toml"))
            .config_json(self.cloud.config_json())
            .start()
            .await
    }
}

/// Returns the only release of a cloud's target.
fn release(device: &mut Value) -> &mut Value {
    let releases = device["apps"][APP]["releases"].as_object_mut().unwrap();
    releases.values_mut().next().unwrap()
}

fn main_service(device: &mut Value) -> &mut Value {
    &mut release(device)["services"]["main"]
}

async fn update(device: &Supervisor) {
    assert_eq!(device.post("/v1/update", &json!({})).await.status, 204);
}

async fn until_runs(device: &Supervisor, commit: &str) {
    until("the release to run", || async {
        let status = device.json("/v2/state/status").await;
        if status["release"] == commit && status["appState"] == "applied" {
            Ok(())
        } else {
            Err((status, device.log()))
        }
    })
    .await;
}

async fn until_refused(device: &Supervisor, reason: &str) {
    until(reason, || async {
        let plan = device.json("/v3/plan").await;
        let refused = plan["signedTargets"]["refused"].to_string();
        if refused.contains(reason) {
            Ok(())
        } else {
            Err((refused, device.log()))
        }
    })
    .await;
}

/// The name of an attack, the change at the stolen cloud, and what the device reports about it.
type Attack = (&'static str, Box<dyn Fn(&Fleet)>, &'static str);

fn attack(
    name: &'static str,
    change: impl Fn(&mut Value) + 'static,
    reason: &'static str,
) -> Attack {
    let change = move |fleet: &Fleet| fleet.cloud.change(&change);
    (name, Box::new(change), reason)
}

fn attacks() -> Vec<Attack> {
    vec![
        (
            "another image",
            Box::new(|fleet| {
                let image = fleet.image("second");
                let change = |device: &mut Value| main_service(device)["image"] = json!(image);
                fleet.cloud.change(change);
            }),
            "the image of the service `main` is",
        ),
        attack(
            "a service more",
            |device| {
                let mut service = main_service(device).clone();
                service["id"] = json!(22);
                release(device)["services"]["more"] = service;
            },
            "the service `more`, which is not signed",
        ),
        attack(
            "a privileged service",
            |device| main_service(device)["composition"]["privileged"] = json!(true),
            "the compose field `privileged` of the service `main`, which is not signed",
        ),
        attack(
            "another command",
            |device| main_service(device)["composition"]["command"] = json!(["spin"]),
            "the compose field `command` of the service `main` differs",
        ),
        attack(
            "a label that opens the host",
            |device| {
                main_service(device)["labels"]["org.example.features.supervisor-api"] = json!("1");
            },
            "which is not signed",
        ),
        attack(
            "a variable that nobody allows",
            |device| main_service(device)["environment"]["LD_PRELOAD"] = json!("x"),
            "the variable `LD_PRELOAD`",
        ),
        attack(
            "a volume",
            |device| release(device)["volumes"]["data"] = json!({}),
            "the volume `data`, which is not signed",
        ),
        attack(
            "local mode",
            |device| device["config"]["PLATFORM_SUPERVISOR_LOCAL_MODE"] = json!("1"),
            "the setting `SUPERVISOR_LOCAL_MODE`",
        ),
        attack(
            "an app more",
            |device| {
                let mut app = device["apps"][APP].clone();
                app["id"] = json!(5);
                app["releases"][FIRST]["signed_statement"] = Value::Null;
                device["apps"]["6f0ee0e1d1b84a1f9a6f5a7d3a1c9b20"] = app;
            },
            "is not signed",
        ),
        attack(
            "the app under another number",
            |device| device["apps"][APP]["id"] = json!(9),
            "the number of the app is",
        ),
        attack(
            "no app",
            |device| device["apps"] = json!({}),
            "on the device and not in the target",
        ),
        attack(
            "no signature",
            |device| drop(release(device)["signed_statement"].take()),
            "is not signed",
        ),
        (
            "another key",
            Box::new(|fleet| {
                let thief = KeyPair::generate_unencrypted_keypair().unwrap();
                fleet.put_signed(&fleet.signed(&thief, 11, LATER));
            }),
            "with a key that the policy does not name",
        ),
        (
            "an older release",
            Box::new(|fleet| fleet.sign(9)),
            "the version 9",
        ),
        (
            "a newer release that has expired",
            Box::new(|fleet| fleet.put_signed(&fleet.signed(&fleet.owner, 11, 1_000))),
            "could be accepted until 1970",
        ),
    ]
}

#[tokio::test]
async fn a_stolen_cloud_changes_nothing_of_what_runs_and_a_signed_release_is_applied() {
    let fleet = Fleet::start().await;
    fleet.sign(10);
    let device = fleet.device().await;
    until_runs(&device, FIRST).await;
    assert_eq!(device.json("/v3/plan").await["signedTargets"], json!({}));
    let container = device.json("/v2/containerId").await;
    let honest = fleet.says();
    for (name, change, reason) in attacks() {
        change(&fleet);
        update(&device).await;
        until_refused(&device, reason).await;
        assert_eq!(device.json("/v2/containerId").await, container, "{name}");
        assert_eq!(services_of(device.state_dir()).len(), 1, "{name}");
        fleet.say(&honest);
    }
    until("the cloud to be told", || async {
        let report = fleet.cloud.reported_state();
        if report["status"] == "Refused a target that is not signed: see logs" {
            Ok(())
        } else {
            Err((report, device.log()))
        }
    })
    .await;

    // What the cloud may set: the variable that the statement names.
    fleet
        .cloud
        .change(|device| main_service(device)["environment"]["A"] = json!("2"));
    update(&device).await;
    until("the service to be recreated", || async {
        let plan = device.json("/v3/plan").await;
        let now = device.json("/v2/containerId").await;
        let is_new = now["services"]["main"].is_string() && now != container;
        if is_new && plan["signedTargets"] == json!({}) {
            Ok(())
        } else {
            Err((plan, device.log()))
        }
    })
    .await;

    // A release without a signature is reported as rejected; the same one runs once it is signed.
    fleet.cloud.release("c2", |service| {
        service["composition"]["command"] = json!(["print-and-wait", "second"]);
    });
    update(&device).await;
    until_refused(&device, "the release is `c2`").await;
    fleet.sign(11);
    update(&device).await;
    until_runs(&device, "c2").await;
}

#[tokio::test]
async fn an_accepted_target_is_stored_over_a_restart_and_not_checked_again() {
    let fleet = Fleet::start().await;
    fleet.sign(10);
    let mut device = fleet.device().await;
    until_runs(&device, FIRST).await;
    let container = device.json("/v2/containerId").await;
    device.terminate().await;

    // The key is replaced, and the cloud sends an older target.
    let honest = fleet.says();
    fleet.wants("keys = [\"new\"]");
    fleet.sign(9);
    device.start_again().await;
    until_refused(&device, "with a key that the policy does not name").await;
    fleet.wants("keys = [\"fleet\"]");
    update(&device).await;
    until_refused(&device, "the version 9").await;
    fleet.wants("keys = [\"new\"]");
    fleet.say(&honest);
    update(&device).await;
    until("the signed target to be taken again", || async {
        let plan = device.json("/v3/plan").await;
        if plan["signedTargets"] == json!({}) {
            Ok(())
        } else {
            Err((plan, device.log()))
        }
    })
    .await;
    assert_eq!(device.json("/v2/containerId").await, container);
}

#[tokio::test]
async fn a_policy_asks_for_signatures_from_one_target_to_the_next() {
    let fleet = Fleet::start().await;
    fleet.wants("");
    let without = fs::read_to_string(fleet.path("policy.toml")).unwrap();
    fs::write(fleet.path("policy.toml"), without.replace("[targets]", "")).unwrap();
    let device = fleet.device().await;
    until_runs(&device, FIRST).await;
    let plan = device.json("/v3/plan").await;
    assert!(plan.get("signedTargets").is_none(), "{plan}");

    fleet.wants("keys = [\"fleet\"]");
    fleet.cloud.release("c2", |_| ());
    update(&device).await;
    until_refused(&device, "its release `c2` is not signed").await;
    until("the cloud to be told", || async {
        let report = fleet.cloud.reported_state();
        let releases = &report["apps"][APP]["releases"];
        if releases["c2"]["update_status"] == "rejected" {
            Ok(())
        } else {
            Err((report, device.log()))
        }
    })
    .await;

    // A policy that cannot be read might require anything.
    fleet.wants("keys = \"fleet\"");
    update(&device).await;
    until_refused(&device, "it cannot be read").await;
    fleet.wants("keys = [\"fleet\"]");
    fleet.sign(10);
    update(&device).await;
    until_runs(&device, "c2").await;
}

#[tokio::test]
async fn a_local_target_is_accepted_if_the_policy_allows_it() {
    let fleet = Fleet::start().await;
    let device = Supervisor::on_wasm()
        .argument("--policy")
        .argument(fleet.path("policy.toml"))
        .start()
        .await;
    let image = fleet.image("first");
    let more = json!({ "image": image, "command": ["wait"] });
    let target_state = target(1, &[service("main", &guest("guest"), &more)]);
    let refused = device.post("/v2/local/target-state", &target_state).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text.contains("`local = true`"), "{refused:?}");
    fleet.wants("keys = [\"fleet\"]\nlocal = true");
    device.set_target(&target_state).await;
    device.until_applied().await;
}
