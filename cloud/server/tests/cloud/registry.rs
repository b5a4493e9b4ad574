//! The registry of images: who may pull and push (docs/spec/cloud.md#registry-tokens), with Debian's docker-registry.

use std::process::Command;

use data::testing::on_fresh;
use held_port::HeldPort;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::docker_registry::{DockerRegistry, is_there};
use crate::fake_device::known;
use crate::harness::{ApiCaller, Cloud, read};

/// Responds to a challenge like a client of the registry: requests a token by basic authentication.
pub(crate) async fn token(cloud: &Cloud, host: &str, key: &str, scope: &str) -> Response {
    let path = format!("/auth/v1/token?service={host}&scope={scope}");
    let request = cloud
        .ask(Method::GET, &path)
        .basic_auth("whoever", Some(key));
    request.send().await.expect("an answer")
}

/// Sends a request to the registry, with the token issued for this credential.
pub(crate) async fn at_registry(
    cloud: &Cloud,
    host: &str,
    key: &str,
    scope: &str,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Response {
    let (status, given) = read(token(cloud, host, key, scope).await).await;
    assert_eq!(status, StatusCode::OK, "{given}");
    let address = if path.starts_with("http") {
        path.to_owned()
    } else {
        format!("http://{host}{path}")
    };
    let kind = if path.contains("/manifests/") {
        "application/vnd.oci.image.manifest.v1+json"
    } else {
        "application/octet-stream"
    };
    crate::harness::client()
        .request(method, address)
        .bearer_auth(given["token"].as_str().expect("a token"))
        .header("content-type", kind)
        .header("accept", kind)
        .body(body)
        .send()
        .await
        .expect("an answer")
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Pushes an image of one small blob; returns its digest, or the status of the refusal.
async fn push(
    cloud: &Cloud,
    host: &str,
    key: &str,
    repository: &str,
) -> Result<String, StatusCode> {
    let scope = format!("repository:{repository}:pull,push");
    let ask = async |method, path: String, body| {
        at_registry(cloud, host, key, &scope, method, &path, body).await
    };
    let blob = b"{}".to_vec();
    let begun = ask(
        Method::POST,
        format!("/v2/{repository}/blobs/uploads/"),
        Vec::new(),
    )
    .await;
    if begun.status() != StatusCode::ACCEPTED {
        return Err(begun.status());
    }
    let place = begun.headers()["location"]
        .to_str()
        .expect("an address")
        .to_owned();
    let separator = if place.contains('?') { '&' } else { '?' };
    let put = format!("{place}{separator}digest={}", digest(&blob));
    assert_eq!(
        ask(Method::PUT, put, blob.clone()).await.status(),
        StatusCode::CREATED
    );
    let entry = json!({ "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(&blob), "size": 2 });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": entry, "layers": [entry],
    });
    let manifest = manifest.to_string().into_bytes();
    let hash = digest(&manifest);
    let put = ask(
        Method::PUT,
        format!("/v2/{repository}/manifests/{hash}"),
        manifest,
    )
    .await;
    assert_eq!(put.status(), StatusCode::CREATED, "{:?}", put.text().await);
    Ok(hash)
}

async fn pull(cloud: &Cloud, host: &str, key: &str, repository: &str, hash: &str) -> StatusCode {
    let scope = format!("repository:{repository}:pull");
    let path = format!("/v2/{repository}/manifests/{hash}");
    at_registry(cloud, host, key, &scope, Method::GET, &path, Vec::new())
        .await
        .status()
}

/// Creates an image of a service of a fleet; returns its id and its repository.
async fn image(ann: &ApiCaller<'_>, host: &str, fleet: i64) -> (i64, String) {
    let service = json!({ "service_name": "main", "application": fleet });
    let service = ann.create("service", service).await;
    let image = json!({
        "is_a_build_of__service": service, "status": "running", "start_timestamp": "2025-01-01T00:00:00Z",
    });
    let image = ann.create("image", image).await;
    let row = ann
        .rows(&format!(
            "/v7/image({image})?$select=is_stored_at__image_location"
        ))
        .await;
    let location = row[0]["is_stored_at__image_location"]
        .as_str()
        .expect("a place")
        .to_owned();
    let repository = location
        .strip_prefix(&format!("{host}/"))
        .expect("at the registry");
    (image, repository.to_owned())
}

/// Creates the release that a fleet should run, with this image.
async fn release(ann: &ApiCaller<'_>, fleet: i64, image: i64, hash: &str) {
    let pushed = json!({ "status": "success", "push_timestamp": "2025-01-01T00:00:01Z", "content_hash": hash });
    let (status, answer) = ann
        .send(Method::PATCH, &format!("/v7/image({image})"), pushed)
        .await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let release = json!({
        "belongs_to__application": fleet, "commit": "c0".repeat(16), "status": "running",
        "composition": { "services": { "main": {} } }, "source": "cloud", "start_timestamp": "2025-01-01T00:00:00Z",
    });
    let release = ann.create("release", release).await;
    let part = json!({ "image": image, "is_part_of__release": release });
    ann.create("release_image", part).await;
    let done = json!({ "status": "success" });
    let (status, answer) = ann
        .send(Method::PATCH, &format!("/v7/release({release})"), done)
        .await;
    assert_eq!(status, StatusCode::OK, "{answer}");
}

#[tokio::test]
async fn a_device_pulls_what_its_releases_are_made_of_and_users_push_to_their_images() {
    if !is_there() {
        return;
    }
    on_fresh(async |url| {
        let port = HeldPort::new().expect("a port");
        let host = port.address().to_string();
        let cloud = Cloud::start_with(&url, &format!("registry = '{host}'")).await;
        let certificate = Command::new(env!("CARGO_BIN_EXE_fleet-cloud"))
            .args(["registry-certificate", "--database", &url])
            .output()
            .expect("the program");
        let certificate = String::from_utf8(certificate.stdout).expect("PEM");
        let realm = format!("{}/auth/v1/token", cloud.url);
        let _registry = DockerRegistry::start(port, &certificate, &realm).await;

        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pumps", "raspberrypi4-64").await;
        let other = ann.fleet("fans", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let stranger = known(&cloud, &ann, other).await;
        let (id, repository) = image(&ann, &host, fleet).await;

        let refused = push(&cloud, &host, &device.key, &repository).await;
        assert_eq!(
            refused,
            Err(StatusCode::UNAUTHORIZED),
            "a device pushes nothing"
        );
        let elsewhere = format!("v2/{}", "0".repeat(32));
        let refused = push(&cloud, &host, &ann.token, &elsewhere).await;
        assert_eq!(
            refused,
            Err(StatusCode::UNAUTHORIZED),
            "there is no such image"
        );
        let hash = push(&cloud, &host, &ann.token, &repository)
            .await
            .expect("it is pushed");
        release(&ann, fleet, id, &hash).await;

        for (whose, key, status) in [
            ("the device's", &device.key, StatusCode::OK),
            ("the user's", &ann.token, StatusCode::OK),
            (
                "another fleet's device's",
                &stranger.key,
                StatusCode::UNAUTHORIZED,
            ),
        ] {
            assert_eq!(
                pull(&cloud, &host, key, &repository, &hash).await,
                status,
                "{whose}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_token_is_given_to_those_with_a_credential_and_says_what_they_may() {
    on_fresh(async |url| {
        let host = "registry.acme.example";
        let cloud = Cloud::start_with(&url, &format!("registry = '{host}'")).await;
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pumps", "raspberrypi4-64").await;
        let (_, repository) = image(&ann, host, fleet).await;
        let scope = format!("repository:{repository}:pull,push");
        let (status, given) = read(token(&cloud, host, &ann.token, &scope).await).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(given["token"], given["access_token"]);
        assert_eq!(given["expires_in"], 300);
        assert!(
            given["issued_at"].as_str().expect("a time").ends_with('Z'),
            "{given}"
        );

        let path = format!("/auth/v1/token?service={host}&scope={scope}");
        for (case, request, status) in [
            ("nobody", cloud.ask(Method::GET, &path), 401),
            (
                "a bad key",
                cloud.ask(Method::GET, &path).basic_auth("x", Some("y")),
                401,
            ),
            ("a bearer", ann.ask(Method::GET, &path), 200),
            (
                "another registry",
                ann.ask(Method::GET, "/auth/v1/token?service=elsewhere"),
                400,
            ),
            (
                "signing in",
                ann.ask(Method::GET, &format!("/auth/v1/token?service={host}")),
                200,
            ),
        ] {
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.status().as_u16(), status, "{case}");
            if status == 401 {
                assert_eq!(
                    answer.headers()["www-authenticate"],
                    "Basic realm=\"fleet-cloud\"",
                    "{case}"
                );
                assert_eq!(read(answer).await.1, Value::Null);
            }
        }
    })
    .await;
}
