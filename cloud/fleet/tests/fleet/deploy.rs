//! Releases from compose files, with real registries.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc;

use held_port::HeldPort;
use serde_json::{Value, json};

use crate::harness::{Api, Cloud, PATIENCE, Person};
use crate::registry::{Registry, digest};

/// A fleet `pump` of a cloud with this registry, and a person who may deploy to it.
fn pump(registry: &str) -> (Cloud, Person) {
    let cloud = Cloud::start_with(&["--registry", registry]);
    let ann = Person::signed_in(&cloud);
    ann.fleet("pump");
    (cloud, ann)
}

fn compose(ann: &Person, text: &str) {
    std::fs::write(ann.home.path().join("compose.yml"), text).expect("a file");
}

const DEPLOY: [&str; 4] = ["deploy", "compose.yml", "--fleet", "pump"];

/// Returns the repository and digest of a service in the output of `deploy`.
fn placed(answer: &Value, service: &str) -> (String, String) {
    let services = answer["services"].as_array().expect("services");
    let found = services
        .iter()
        .find(|one| one["service"] == json!(service))
        .expect(service);
    let location = found["image"].as_str().expect("a location");
    let (_, repository) = location.split_once('/').expect("a repository");
    (
        repository.to_owned(),
        found["content_hash"].as_str().expect("a digest").to_owned(),
    )
}

#[test]
fn images_are_copied_and_the_release_becomes_the_target() {
    let (Some(own), Some(other)) = (Registry::start(), Registry::start()) else {
        return;
    };
    let image = other.put_image("base/hello", "1", "hello");
    let many = other.put_index("base/many", "1", &["amd64", "arm64"]);
    let (_cloud, ann) = pump(&own.host);
    compose(
        &ann,
        &format!(
            "services:\n  main:\n    image: {0}/base/hello:1\n    environment: [A=1]\n    depends_on: [many]\n  \
             many:\n    image: {0}/base/many:1\n",
            other.host
        ),
    );
    let answer = ann.json(
        &[
            &DEPLOY[..],
            &["--release-version", "1.2.3", "--note", "first"],
        ]
        .concat(),
    );
    assert_eq!(answer["version"], json!("1.2.3"));
    let (repository, content) = placed(&answer, "main");
    assert_eq!(json!(content), image["digest"]);
    own.manifest(&repository, &content);
    // The fleet's processors are arm64: only that image of the two.
    let (repository, content) = placed(&answer, "many");
    assert_ne!(json!(content), many["digest"]);
    let manifest = own.manifest(&repository, &content);
    assert_eq!(manifest["layers"][0]["digest"], json!(digest(b"arm64")));

    let shown = ann.json(&["release", "show", "1.2.3", "--fleet", "pump"]);
    assert_eq!(shown["status"], json!("success"));
    assert_eq!(shown["target"], json!(true));
    assert_eq!(shown["note"], json!("first"));
    assert_eq!(
        shown["composition"]["services"]["main"]["environment"],
        json!(["A=1"])
    );
    assert_eq!(shown["services"].as_array().map(Vec::len), Some(2));

    // The whole index, on request; existing blobs are taken over.
    let answer = ann.json(&[&DEPLOY[..], &["--all-platforms", "--draft"]].concat());
    let (repository, content) = placed(&answer, "many");
    assert_eq!(json!(content), many["digest"]);
    own.manifest(&repository, &content);
    let shown = ann.json(&[
        "release",
        "show",
        answer["release"].as_str().expect("a commit"),
    ]);
    assert_eq!(
        (&shown["final"], &shown["target"]),
        (&json!(false), &json!(false))
    );
}

/// The smallest component that devices accept as a service.
fn service() -> Vec<u8> {
    let text = "(component (instance $run) (export \"wasi:cli/run@0.2.6\" (instance $run)))";
    wat::parse_str(text).expect("a component")
}

#[test]
fn a_component_in_a_file_becomes_an_image_of_the_wasm_engine() {
    let Some(own) = Registry::start() else {
        return;
    };
    let (_cloud, ann) = pump(&own.host);
    let component = service();
    std::fs::write(ann.home.path().join("main.wasm"), &component).expect("a file");
    compose(&ann, "services: { main: { image: ./main.wasm } }");
    let answer = ann.json(&DEPLOY);
    let (repository, content) = placed(&answer, "main");
    let manifest = own.manifest(&repository, &content);
    assert_eq!(
        manifest["config"]["mediaType"],
        json!("application/vnd.wasm.config.v0+json")
    );
    assert_eq!(
        manifest["layers"][0]["mediaType"],
        json!("application/wasm")
    );
    let layer = manifest["layers"][0]["digest"].as_str().expect("a digest");
    assert_eq!(own.blob(&repository, layer), component);
    // The same deployment again: another release with the same content.
    let again = ann.done(&DEPLOY);
    assert!(again.starts_with("created the release "), "{again}");
    assert_eq!(
        ann.json(&["releases", "--fleet", "pump"])
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_registry_that_asks_for_tokens_takes_those_of_the_session_and_of_a_key() {
    let Some(other) = Registry::start() else {
        return;
    };
    other.put_image("base/hello", "1", "hello");
    let port = HeldPort::new().expect("a port");
    let (cloud, ann) = pump(&port.address().to_string());
    let Some(_own) = Registry::start_for(&cloud, port) else {
        return;
    };
    compose(
        &ann,
        &format!(
            "services: {{ main: {{ image: '{}/base/hello:1' }} }}",
            other.host
        ),
    );
    ann.done(&DEPLOY);
    // Again, so that blobs are taken over from the first release's repository.
    let key = ann.done(&["keys", "create", "ci"]);
    let program = Person::new()
        .with("FLEET_URL", &cloud.url)
        .with("FLEET_TOKEN", key.trim());
    compose(
        &program,
        &format!(
            "services: {{ main: {{ image: '{}/base/hello:1' }} }}",
            other.host
        ),
    );
    program.done(&DEPLOY);
    let listed = ann.json(&["releases", "--fleet", "pump"]);
    let listed = listed.as_array().expect("releases");
    assert!(
        listed
            .iter()
            .all(|release| release["status"] == json!("success")),
        "{listed:?}"
    );
    assert_eq!(listed.len(), 2);

    // The cloud's registry serves authenticated users, as it serves devices.
    let shown = ann.json(&[
        "release",
        "show",
        listed[0]["commit"].as_str().expect("a commit"),
    ]);
    let (location, hash) = (
        &shown["services"][0]["image"],
        &shown["services"][0]["content_hash"],
    );
    let image = format!(
        "{}@{}",
        location.as_str().unwrap_or_default(),
        hash.as_str().unwrap_or_default()
    );
    compose(
        &ann,
        &format!("services: {{ main: {{ image: '{image}' }} }}"),
    );
    assert_eq!(json!(placed(&ann.json(&DEPLOY), "main").1), *hash);
}

#[test]
fn unavailable_images_prevent_a_release() {
    let Some(own) = Registry::start() else {
        return;
    };
    own.put_index("base/many", "1", &["amd64"]);
    let (_cloud, ann) = pump(&own.host);
    for (text, code, expected) in [
        (
            "services: { main: { build: . } }".to_owned(),
            2,
            "`fleet` does not build images",
        ),
        (
            "services: { main: { image: ./none.wasm } }".to_owned(),
            4,
            "there is no file",
        ),
        (
            format!("services: {{ main: {{ image: '{}/none:1' }} }}", own.host),
            4,
            "does not have the image",
        ),
        (
            format!(
                "services: {{ main: {{ image: '{}/base/many:1' }} }}",
                own.host
            ),
            1,
            "linux/amd64",
        ),
        (
            "services: { main: { image: 'http://x' } }".to_owned(),
            2,
            "is not a name of an image",
        ),
    ] {
        compose(&ann, &text);
        let message = ann.refused(code, &DEPLOY);
        assert!(message.contains(expected), "{text}: {message}");
    }
    compose(&ann, "services: { main: { image: ./main.wasm } }");
    ann.refused(2, &[&DEPLOY[..], &["--release-version", "one"]].concat());
    ann.refused(4, &["deploy", "none.yml", "--fleet", "pump"]);
    assert_eq!(ann.json(&["releases", "--fleet", "pump"]), json!([]));
}

#[test]
fn a_push_that_fails_leaves_a_failed_release_that_nobody_runs() {
    // Nothing listens there.
    let (cloud, ann) = pump("127.0.0.1:1");
    std::fs::write(ann.home.path().join("main.wasm"), service()).expect("a file");
    compose(&ann, "services: { main: { image: ./main.wasm } }");
    let message = ann.refused(1, &DEPLOY);
    assert!(message.contains("to the cloud's registry"), "{message}");
    let listed = ann.json(&["releases", "--fleet", "pump"]);
    assert_eq!(
        (&listed[0]["status"], &listed[0]["target"]),
        (&json!("failed"), &json!(false))
    );
    let images = Api::new(&cloud).rows("image?$select=status,error_message");
    assert_eq!(images[0]["status"], json!("failed"));
    assert!(
        images[0]["error_message"]
            .to_string()
            .contains("127.0.0.1:1"),
        "{}",
        images[0]
    );

    let without = Cloud::start();
    let bob = Person::signed_in(&without);
    bob.fleet("pump");
    std::fs::write(bob.home.path().join("main.wasm"), service()).expect("a file");
    compose(&bob, "services: { main: { image: ./main.wasm } }");
    let message = bob.refused(1, &DEPLOY);
    assert!(message.contains("the cloud has no registry"), "{message}");
}

#[test]
fn a_deployment_that_is_stopped_leaves_an_interrupted_release() {
    let Some(own) = Registry::start() else {
        return;
    };
    let (stalled, reached) = stalled_registry();
    let (_cloud, ann) = pump(&own.host);
    compose(
        &ann,
        &format!("services: {{ main: {{ image: '{stalled}/slow:1' }} }}"),
    );
    let mut child = ann
        .command(&DEPLOY)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("fleet");
    reached.recv_timeout(PATIENCE).expect("the copy began");
    let stopped = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill");
    assert!(stopped.success());
    assert_eq!(child.wait().expect("an end").code(), Some(1));
    let listed = ann.json(&["releases", "--fleet", "pump"]);
    assert_eq!(listed[0]["status"], json!("interrupted"));
}

/// A registry that has an image but never sends its blobs; it reports when one is requested.
fn stalled_registry() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    let (tell, reached) = mpsc::channel();
    std::thread::spawn(move || {
        let blob = json!({ "digest": digest(b"x"), "size": 1 });
        let manifest = json!({ "schemaVersion": 2, "config": blob, "layers": [] }).to_string();
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let mut first = String::new();
            let _ = reader.read_line(&mut first);
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            if first.contains("/manifests/") {
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.oci.image.manifest.v1+json\r\n\
                     connection: close\r\ncontent-length: {}\r\n\r\n{manifest}",
                    manifest.len()
                );
            } else {
                let _ = tell.send(());
                held.push(stream);
            }
        }
    });
    (host, reached)
}
