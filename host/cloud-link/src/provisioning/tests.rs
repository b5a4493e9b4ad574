use std::collections::VecDeque;
use std::sync::Mutex;

use futures::FutureExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::poll::{Settings, TargetRefusal};
use crate::{PlainHttp, establish, user_agent};

const UUID: &str = "0123456789abcdef0123456789abcdef";
const KEY: &str = "the-device-key";
const PATIENCE: Duration = Duration::from_secs(20);

/// A config.json in memory.
struct File(Mutex<Map<String, Value>>);

impl ConfigFile for File {
    fn read(&self) -> Result<Map<String, Value>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        change(&mut self.0.lock().unwrap());
        Ok(())
    }
}

struct Board(BTreeMap<String, String>);

impl IntroductionSource for Board {
    fn description(&self) -> Description {
        Description {
            device_type: "board".into(),
            supervisor_version: "19.0.0".into(),
            os_version: Some("Some OS 1.2".into()),
            ..Description::default()
        }
    }

    fn configuration(&self) -> BoxFuture<'_, BTreeMap<String, String>> {
        async { self.0.clone() }.boxed()
    }

    fn prefix(&self) -> String {
        "PLATFORM_".into()
    }
}

impl Device for Board {
    fn take(&self, _: Value, _: bool) -> BoxFuture<'_, Result<(), TargetRefusal>> {
        async { Ok(()) }.boxed()
    }

    fn unchanged(&self) {}

    fn apply_again(&self, _: bool, _: bool) {}

    fn checking(&self, _: bool) {}

    fn settings(&self) -> Settings {
        Settings {
            interval: PATIENCE,
            request_timeout: PATIENCE,
            instant_updates: true,
            connectivity_check: false,
        }
    }
}

/// An expected request, as `METHOD path key`, and its answer.
type ExpectedRequest = (&'static str, u16, &'static str);

/// A device with this config.json at a cloud with these answers: the bodies it sent, and its state after all requests.
struct Story {
    config: Map<String, Value>,
    bodies: Vec<Value>,
    ready: bool,
    renewed: bool,
    device_id: Option<u64>,
}

async fn story(
    config: Value,
    configuration: &[(&str, &str)],
    expected: &[ExpectedRequest],
) -> Story {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut content = json!({
        "apiEndpoint": format!("http://{}", listener.local_addr().unwrap()),
        "uuid": UUID, "deviceApiKey": KEY, "applicationId": "5", "bootstrapRetryDelay": 100,
    });
    for (key, value) in config.as_object().unwrap() {
        content[key] = value.clone();
    }
    let file = Arc::new(File(Mutex::new(content.as_object().unwrap().clone())));
    let own = UUID.parse().unwrap();
    let identity = establish(&*file, &own, "rootCA", PlainHttp::Loopback)
        .unwrap()
        .cloud
        .unwrap();
    let client = Arc::new(Client::new(identity, &user_agent("19.0.0", None, None)));
    let configuration = configuration.iter();
    let configuration = configuration.map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    let board = Arc::new(Board(configuration.collect()));
    let folder = tempfile::tempdir().unwrap();
    let store = store::Store::open(folder.path()).unwrap().store;
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    let provisioned = ProvisioningState::start(
        client.clone(),
        file.clone(),
        Arc::new(store),
        board.clone(),
        board,
        stop,
    );
    let mut bodies = Vec::new();
    let mut expected: VecDeque<ExpectedRequest> = expected.iter().copied().collect();
    while let Some((request, status, answer)) = expected.pop_front() {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        let (mut socket, _) = accepted
            .unwrap_or_else(|_| panic!("nobody asked {request}"))
            .unwrap();
        let (head, body) = read(&mut socket).await;
        assert_eq!(head, request);
        bodies.push(body);
        let length = answer.len();
        let answer = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{answer}"
        );
        socket.write_all(answer.as_bytes()).await.unwrap();
    }
    let settled = async {
        tokio::select! {
            () = provisioned.ready.cancelled() => {}
            () = provisioned.renewed.cancelled() => {}
            connection = listener.accept() => {
                let (head, _) = read(&mut connection.unwrap().0).await;
                panic!("also asked: {head}");
            }
        }
    };
    tokio::time::timeout(PATIENCE, settled).await.unwrap();
    Story {
        config: file.read().unwrap(),
        bodies,
        ready: provisioned.ready.is_cancelled(),
        renewed: provisioned.renewed.is_cancelled(),
        device_id: client.device_id(),
    }
}

async fn read(socket: &mut tokio::net::TcpStream) -> (String, Value) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let header = |name: &str| {
        let line = head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with(name));
        line.map(|line| line[name.len()..].trim().to_owned())
    };
    let length = header("content-length:").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    let line: Vec<&str> = head.lines().next().unwrap().split(' ').collect();
    let key = header("authorization: bearer").unwrap();
    let request = format!("{} {} {key}", line[0], line[1]);
    (request, serde_json::from_slice(&body).unwrap_or_default())
}

const REGISTER: &str = "POST /device/register provision";
const LOOK_OWN: &str = "GET /v7/device?%24select=id&%24filter=uuid%20eq%20%270123456789abcdef0123456789abcdef%27 the-device-key";
const LOOK: &str = "GET /v7/device?%24select=id&%24filter=uuid%20eq%20%270123456789abcdef0123456789abcdef%27 provision";
const GIVE_KEY: &str = "POST /api-key/device/7/device-key provision";
const FOUND: &str = r#"{"d":[{"id":7}]}"#;
const NONE: &str = r#"{"d":[]}"#;

#[tokio::test]
async fn a_device_registers_as_who_it_is_and_forgets_the_key_that_it_did_it_with() {
    let answer = r#"{"id":7,"uuid":"0123456789abcdef0123456789abcdef","api_key":"the-device-key"}"#;
    let config = json!({ "apiKey": "provision", "kept": 1 });
    let story = story(config, &[], &[(REGISTER, 201, answer)]).await;
    assert!(story.ready && !story.renewed);
    assert_eq!(story.device_id, Some(7));
    let expected = json!({
        "application": 5, "uuid": UUID, "device_type": "board", "api_key": KEY,
        "supervisor_version": "19.0.0", "os_version": "Some OS 1.2", "os_variant": null, "mac_address": null,
    });
    assert_eq!(story.bodies, [expected]);
    assert_eq!(story.config["deviceId"], 7);
    assert!(story.config["registered_at"].as_u64().unwrap() > 1_600_000_000_000);
    assert!(!story.config.contains_key("apiKey"));
    assert_eq!(story.config["kept"], 1);
}

#[tokio::test]
async fn a_failed_registration_is_repeated_with_the_same_identity() {
    let config = json!({ "apiKey": "provision", "userId": 3 });
    let failures = [
        (503, ""),
        (200, "<html>"),
        (201, "{}"),
        (201, r#"{"id":0}"#),
        (401, "no"),
    ];
    let mut expected: Vec<ExpectedRequest> = failures
        .iter()
        .map(|(status, body)| (REGISTER, *status, *body))
        .collect();
    expected.push((REGISTER, 201, r#"{"id":8}"#));
    let story = story(config, &[], &expected).await;
    assert_eq!(story.device_id, Some(8));
    assert_eq!(story.bodies.len(), 6);
    assert!(
        story
            .bodies
            .iter()
            .all(|body| *body == story.bodies[0] && body["user"] == 3)
    );
}

#[tokio::test]
async fn a_device_that_the_cloud_knows_already_shows_its_key_or_gives_it_one() {
    let config = || json!({ "apiKey": "provision" });
    // It registered, and was killed before it could store that.
    let steps = [(REGISTER, 409, ""), (LOOK_OWN, 200, FOUND)];
    let killed = story(config(), &[], &steps).await;
    assert_eq!(killed.device_id, Some(7));
    assert!(!killed.config.contains_key("apiKey"));
    // Its key was lost.
    let steps = [
        (REGISTER, 409, ""),
        (LOOK_OWN, 401, ""),
        (LOOK, 200, FOUND),
        (GIVE_KEY, 200, ""),
    ];
    let lost = story(config(), &[], &steps).await;
    assert_eq!((lost.device_id, lost.ready), (Some(7), true));
    assert_eq!(lost.bodies[3], json!({ "apiKey": KEY }));
    assert_eq!(lost.config["deviceApiKey"], KEY);
}

#[tokio::test]
async fn a_device_whose_uuid_another_has_becomes_another_one_and_a_cloud_out_of_order_makes_none() {
    let config = || json!({ "apiKey": "provision" });
    let steps = [(REGISTER, 409, ""), (LOOK_OWN, 401, ""), (LOOK, 200, NONE)];
    let other = story(config(), &[], &steps).await;
    assert!(other.renewed && !other.ready);
    assert_eq!(other.device_id, None);
    assert_ne!(other.config["uuid"], UUID);
    assert_ne!(other.config["deviceApiKey"], KEY);
    assert_eq!(
        other.config["apiKey"], "provision",
        "it is still to register"
    );

    let steps = [
        (REGISTER, 409, ""),
        (LOOK_OWN, 503, ""),
        (REGISTER, 409, ""),
        (LOOK_OWN, 401, ""),
        (LOOK, 502, ""),
        (REGISTER, 409, ""),
        (LOOK_OWN, 401, ""),
        (LOOK, 200, FOUND),
        (GIVE_KEY, 500, ""),
        (REGISTER, 409, ""),
        (LOOK_OWN, 200, FOUND),
    ];
    let same = story(config(), &[], &steps).await;
    assert_eq!(same.config["uuid"], UUID);
    assert_eq!(same.device_id, Some(7));
}

#[tokio::test]
async fn the_rest_of_an_earlier_registration_is_used() {
    // Registered, with an unknown number.
    let story1 = story(
        json!({ "registered_at": 12 }),
        &[],
        &[(LOOK_OWN, 200, FOUND)],
    )
    .await;
    assert_eq!(story1.config["deviceId"], 7);
    assert_eq!(story1.config["registered_at"], 12);
    // Registered, and the provisioning key still there.
    let config = json!({ "registered_at": 12, "deviceId": 7, "apiKey": "provision" });
    let story2 = story(config, &[], &[(LOOK_OWN, 200, FOUND)]).await;
    assert!(story2.ready && !story2.config.contains_key("apiKey"));
    // No key to register with: the target is requested anyway.
    let story3 = story(json!({}), &[], &[(LOOK_OWN, 401, "")]).await;
    assert!(story3.ready);
    assert_eq!(story3.device_id, None);
}

#[tokio::test]
async fn the_device_reports_its_setup_once_before_it_requests_a_target() {
    let registered = json!({
        "registered_at": 12, "deviceId": 7, "initialDeviceName": "roof", "pinDevice": { "commit": "c0ffee" },
    });
    let target =
        r#"{"0123456789abcdef0123456789abcdef":{"config":{"PLATFORM_HOST_CONFIG_a":"1"}}}"#;
    let device = "PATCH /v7/device(7) the-device-key";
    let variable = "POST /v7/device_config_variable the-device-key";
    let steps = [
        (
            "GET /v7/release?%24select=id&%24filter=commit%20eq%20%27c0ffee%27%20and%20status%20eq%20%27success%27 \
             the-device-key",
            200,
            r#"{"d":[{"id":31}]}"#,
        ),
        (device, 200, "OK"),
        (
            "GET /device/v3/0123456789abcdef0123456789abcdef/state the-device-key",
            200,
            target,
        ),
        (variable, 400, "no such name"),
        (variable, 201, r#"{"id":1}"#),
        (device, 200, ""),
    ];
    let set_up = [
        ("HOST_CONFIG_a", "2"),
        ("HOST_CONFIG_b", "3"),
        ("SUPERVISOR_PERSISTENT_LOGGING", "true"),
    ];
    let story = story(registered, &set_up, &steps).await;
    assert!(story.ready);
    assert_eq!(story.bodies[1], json!({ "is_pinned_on__release": 31 }));
    let of = |name: &str, value: &str| json!({ "device": 7, "name": name, "value": value });
    assert_eq!(story.bodies[3], of("PLATFORM_HOST_CONFIG_b", "3"));
    assert_eq!(
        story.bodies[4],
        of("PLATFORM_SUPERVISOR_PERSISTENT_LOGGING", "true")
    );
    assert_eq!(story.bodies[5], json!({ "device_name": "roof" }));
    assert!(!story.config.contains_key("pinDevice"));
}
