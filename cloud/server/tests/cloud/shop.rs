//! A fleet with a release of two services, and its devices.

use data::{Database, Options, Sql};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, read};

/// Returns the uuid of the device with this number.
pub(crate) fn uuid(number: u32) -> String {
    format!("{number:032x}")
}

/// A fleet that runs a release.
pub(crate) struct Shop<'a> {
    pub(crate) cloud: &'a Cloud,
    /// Its administrator.
    pub(crate) ann: ApiCaller<'a>,
    /// Its number and its uuid.
    pub(crate) fleet: i64,
    pub(crate) uuid: String,
    /// A key that creates devices.
    pub(crate) key: String,
    /// The services `main` and `side`.
    pub(crate) services: [i64; 2],
    pub(crate) release: Release,
}

/// A release with an image of each service.
pub(crate) struct Release {
    pub(crate) id: i64,
    pub(crate) commit: String,
    pub(crate) images: Vec<i64>,
    /// Their locations in the registry.
    pub(crate) locations: Vec<String>,
}

impl<'a> Shop<'a> {
    pub(crate) async fn open(cloud: &'a Cloud) -> Self {
        Self::named(cloud, "shop").await
    }

    pub(crate) async fn named(cloud: &'a Cloud, name: &str) -> Self {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet(name, "raspberrypi4-64").await;
        let row = &ann
            .rows(&format!("/v7/application({fleet})?$select=uuid"))
            .await[0];
        let uuid = row["uuid"].as_str().expect("a uuid").to_owned();
        let path = format!("/api-key/application/{fleet}/provisioning");
        let (status, key) = ann.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        let mut services = [0; 2];
        for (service, name) in services.iter_mut().zip(["main", "side"]) {
            let body = json!({ "application": fleet, "service_name": name });
            *service = ann.create("service", body).await;
        }
        let composition = json!({
            "services": {
                "main": { "image": "x", "build": ".", "restart": "always" },
                "side": { "build": { "context": "." }, "privileged": true },
            },
            "networks": { "inner": {} },
            "volumes": { "data": {} },
        });
        let release = release(&ann, fleet, &services, &format!("{name}-one"), composition).await;
        Shop {
            cloud,
            ann,
            fleet,
            uuid,
            key: key.as_str().expect("a key").to_owned(),
            services,
            release,
        }
    }

    /// Creates another release of the same services, which the fleet then runs.
    pub(crate) async fn release(&self, commit: &str, composition: Value) -> Release {
        release(&self.ann, self.fleet, &self.services, commit, composition).await
    }

    /// Creates the device with a number.
    pub(crate) async fn device(&self, number: u32) -> Device<'a> {
        let body = json!({
            "application": self.fleet, "device_type": "raspberrypi4-64", "uuid": uuid(number),
            "api_key": format!("key-of-device-{number:05}"),
        });
        let (status, made) = self
            .cloud
            .by(self.key.clone())
            .send(Method::POST, "/device/register", body)
            .await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        Device {
            id: made["id"].as_i64().expect("an id"),
            uuid: uuid(number),
            signed: self
                .cloud
                .by(made["api_key"].as_str().expect("a key").to_owned()),
        }
    }

    /// Executes a statement directly in the database, without the cloud.
    pub(crate) async fn execute(&self, statement: Sql) -> u64 {
        execute(&self.cloud.database, statement).await
    }

    /// Returns fields of a device as its administrator sees them.
    pub(crate) async fn fields(&self, device: &Device<'_>, fields: &str) -> Value {
        let path = format!("/v7/device({})?$select={fields}", device.id);
        self.ann.rows(&path).await.remove(0)
    }
}

/// Executes a statement directly in a database, without the cloud; returns how many rows it
/// changes.
pub(crate) async fn execute(database: &str, statement: Sql) -> u64 {
    let options = Options::default().with_connections(2);
    let database = Database::open(database, &options)
        .await
        .expect("the database");
    let changed = database.execute(&statement).await.expect("its statement");
    database.close().await;
    changed
}

async fn release(
    ann: &ApiCaller<'_>,
    fleet: i64,
    services: &[i64],
    commit: &str,
    composition: Value,
) -> Release {
    let now = "2026-11-21T10:00:00Z";
    let mut images = Vec::new();
    let mut locations = Vec::new();
    for service in services {
        let body = json!({
            "is_a_build_of__service": service, "start_timestamp": now, "push_timestamp": now,
            "status": "success", "content_hash": format!("sha256:{:064x}", service),
        });
        let image = ann.create("image", body).await;
        let path = format!("/v7/image({image})?$select=is_stored_at__image_location");
        let row = &ann.rows(&path).await[0];
        locations.push(
            row["is_stored_at__image_location"]
                .as_str()
                .expect("a place")
                .to_owned(),
        );
        images.push(image);
    }
    let body = json!({
        "belongs_to__application": fleet, "commit": commit, "composition": composition,
        "status": "running", "source": "cloud", "start_timestamp": now,
    });
    let id = ann.create("release", body).await;
    for image in &images {
        ann.create(
            "release_image",
            json!({ "image": image, "is_part_of__release": id }),
        )
        .await;
    }
    let done = json!({ "status": "success" });
    let (status, body) = ann
        .send(Method::PATCH, &format!("/v7/release({id})"), done)
        .await;
    assert_eq!(status, StatusCode::OK, "{body}");
    // The latest release is the one that was created last; these were created together.
    let target = json!({ "should_be_running__release": id });
    let (status, body) = ann
        .send(Method::PATCH, &format!("/v7/application({fleet})"), target)
        .await;
    assert_eq!(status, StatusCode::OK, "{body}");
    Release {
        id,
        commit: commit.to_owned(),
        images,
        locations,
    }
}

/// A device with its key.
pub(crate) struct Device<'a> {
    pub(crate) id: i64,
    pub(crate) uuid: String,
    pub(crate) signed: ApiCaller<'a>,
}

impl Device<'_> {
    /// Requests its state, with an ETag if there is one.
    pub(crate) async fn poll(&self, tag: Option<&str>) -> Response {
        let path = format!("/device/v3/{}/state", self.uuid);
        let mut request = self.signed.ask(Method::GET, &path);
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        request.send().await.expect("an answer")
    }

    /// Returns its state, below its uuid, and the ETag.
    pub(crate) async fn state(&self) -> (Value, String) {
        let answer = self.poll(None).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let tag = answer.headers()["etag"].to_str().expect("text").to_owned();
        let (_, state) = read(answer).await;
        (state[&self.uuid].clone(), tag)
    }

    /// Sends a report about itself; returns the status.
    pub(crate) async fn report(&self, report: Value) -> StatusCode {
        let body = json!({ &self.uuid: report });
        self.signed
            .send(Method::PATCH, "/device/v3/state", body)
            .await
            .0
    }
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let begun = std::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed().as_secs() < 30, "{what}: not within 30 s");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}
