//! A cloud with some rows of every kind, created over HTTP like its users would.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, read};

/// The names that requests use: `<pump>` for the number of a row, and likewise for texts.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Ids by their names.
    ids: BTreeMap<String, (&'static str, i64)>,
    /// Callers by name, with their credentials.
    credentials: BTreeMap<String, String>,
}

impl Names {
    pub(crate) fn call(&mut self, name: &str, resource: &'static str, id: i64) {
        self.ids.insert(name.to_owned(), (resource, id));
    }

    /// Returns a request with numbers in place of the names.
    pub(crate) fn filled(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, (_, id)) in &self.ids {
            filled = filled.replace(&format!("<{name}>"), &id.to_string());
        }
        filled
    }

    /// Returns the name of a row; its resource if it has none.
    pub(crate) fn name(&self, resource: &str, id: i64) -> String {
        let named = self
            .ids
            .iter()
            .find(|(_, it)| **it == (resource_of(resource), id));
        match named {
            Some((name, _)) => format!("<{name}>"),
            None => format!("<{resource}>"),
        }
    }

    /// Adds a caller by name.
    pub(crate) fn trust(&mut self, who: &str, credential: String) {
        self.credentials.insert(who.to_owned(), credential);
    }

    /// Returns a caller's credential.
    pub(crate) fn token(&self, who: &str) -> Option<&str> {
        self.credentials.get(who).map(String::as_str)
    }

    /// Creates requests of a caller: `ann`, `bob`, `nobody`, or a device by its name.
    pub(crate) fn by<'a>(&self, cloud: &'a Cloud, who: &str) -> ApiCaller<'a> {
        cloud.by(self.credentials.get(who).expect(who).clone())
    }
}

/// Returns the table of a resource: older versions have several resources for one table.
fn resource_of(name: &str) -> &'static str {
    let resource = resources::v7().resource(name);
    resource.map_or("", |it| it.name)
}

/// Creates the scene.
struct Maker<'a> {
    cloud: &'a Cloud,
    ann: ApiCaller<'a>,
    names: Names,
}

/// `ann` has the organizations `acme`, with the fleets `pump` (tracking its releases), `valve` and `press`, and
/// `platform_os`, with an operating system and a supervisor; `bob` has the fleet `open`, which is public, and
/// `secret`, which is not. `pump` has the devices `calm` and `other`, and `calm` has a key and reports.
pub(crate) async fn scene(cloud: &Cloud) -> Names {
    let mut maker = Maker {
        cloud,
        ann: cloud.sign_in().await,
        names: Names::default(),
    };
    let credentials = &mut maker.names.credentials;
    credentials.insert("ann".to_owned(), maker.ann.token.clone());
    maker.people().await;
    maker.fleets().await;
    maker.releases().await;
    maker.devices().await;
    maker.variables().await;
    maker.names
}

impl Maker<'_> {
    async fn make(&mut self, name: &str, resource: &'static str, body: Value) -> i64 {
        let body = self.names.filled(&body.to_string());
        let id = self.ann.create_from(resource, body).await;
        self.names.call(name, resource, id);
        id
    }

    async fn find(&mut self, name: &str, resource: &'static str, key: &str) {
        let rows = self
            .ann
            .rows(&format!("/v7/{resource}({key})?$select=id"))
            .await;
        let id = rows[0]["id"].as_i64().expect(key);
        self.names.call(name, resource, id);
    }

    async fn people(&mut self) {
        self.find("ann", "user", "username='admin'").await;
        let actor = self.ann.get("/actor/v1/whoami").await.1["id"].as_i64();
        self.names
            .call("ann-actor", "actor", actor.expect("an actor"));
        let body = json!({ "name": "acme", "handle": "acme" });
        self.make("acme", "organization", body).await;
        let systems = "/cloud/v1/system-organization";
        let (status, systems) = self.ann.send(Method::POST, systems, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{systems}");
        let id = systems["id"].as_i64().expect("an id");
        self.names.call("platform_os", "organization", id);
        let bob =
            json!({ "username": "bob", "email": "bob@other.example", "password": "battery horse" });
        let (status, row) = self.ann.send(Method::POST, "/user/register", bob).await;
        assert_eq!(status, StatusCode::CREATED, "{row}");
        let given = json!({ "username": "bob", "password": "battery horse" });
        let answer = self
            .cloud
            .ask(Method::POST, "/login_")
            .json(&given)
            .send()
            .await;
        let token = answer.expect("an answer").text().await.expect("a token");
        let bob = self.cloud.by(token.clone());
        let id = bob.rows("/v7/organization(handle='bob')?$select=id").await[0]["id"].as_i64();
        self.names
            .call("bob-org", "organization", id.expect("an id"));
        self.names.credentials.insert("bob".to_owned(), token);
        let key = json!({ "name": "ci", "description": "builds" });
        let (status, _) = self.ann.send(Method::POST, "/api-key/user/full", key).await;
        assert_eq!(status, StatusCode::OK);
        let keys = self
            .ann
            .rows("/v7/api_key?$filter=name eq 'ci'&$select=id")
            .await;
        self.names
            .call("ci", "api_key", keys[0]["id"].as_i64().expect("an id"));
        let body =
            json!({ "user": "<ann>", "title": "laptop", "public_key": "ssh-ed25519 AAAA ann" });
        self.make("laptop", "user__has__public_key", body).await;
    }

    async fn fleets(&mut self) {
        for (name, slug) in [("pi", "raspberrypi4-64"), ("nuc", "intel-nuc")] {
            self.find(name, "device_type", &format!("slug='{slug}'"))
                .await;
            let path = format!("/v7/device_type(slug='{slug}')?$select=is_of__cpu_architecture");
            let arch = self.ann.rows(&path).await[0]["is_of__cpu_architecture"]["__id"].as_i64();
            let arch = arch.expect("an architecture");
            self.names
                .call(&format!("{name}-arch"), "cpu_architecture", arch);
        }
        for (name, app_name, organization, device_type, more) in [
            (
                "pump",
                "pump",
                "acme",
                "pi",
                json!({ "uuid": "5f0c4d4e9b7a4c8fa1b2c3d4e5f60718" }),
            ),
            ("valve", "valve", "acme", "pi", json!({})),
            ("press", "press", "acme", "nuc", json!({})),
            (
                "os",
                "intel-nuc",
                "platform_os",
                "nuc",
                json!({ "is_host": true, "is_public": true }),
            ),
            (
                "supervisor",
                "aarch64-supervisor",
                "platform_os",
                "pi",
                json!({ "is_public": true }),
            ),
        ] {
            let mut body = more;
            body["app_name"] = json!(app_name);
            body["organization"] = json!(format!("<{organization}>"));
            body["is_for__device_type"] = json!(format!("<{device_type}>"));
            self.make(name, "application", body).await;
        }
        let bob = self.names.by(self.cloud, "bob");
        for (name, public) in [("open", true), ("secret", false)] {
            let body = json!({
                "app_name": name, "organization": "<bob-org>", "is_for__device_type": "<pi>", "is_public": public,
            });
            let id = bob
                .create_from("application", self.names.filled(&body.to_string()))
                .await;
            self.names.call(name, "application", id);
        }
    }

    async fn releases(&mut self) {
        for (name, fleet, commit, more) in [
            (
                "1.2.3",
                "pump",
                "f7caf4f0000000000000000000000000",
                json!({ "semver": "1.2.3" }),
            ),
            (
                "failed",
                "pump",
                "bb00000000000000000000000000bb00",
                json!({ "status": "failed" }),
            ),
            (
                "draft",
                "pump",
                "aa00000000000000000000000000aa00",
                json!({ "semver": "1.3.0", "is_final": false }),
            ),
            (
                "system",
                "os",
                "0500000000000000000000000000aa00",
                json!({ "semver": "2.88.4", "variant": "prod" }),
            ),
            (
                "16.0.0",
                "supervisor",
                "1600000000000000000000000000aa00",
                json!({ "semver": "16.0.0" }),
            ),
        ] {
            let mut body = json!({
                "belongs_to__application": format!("<{fleet}>"), "commit": commit,
                "composition": { "services": { "main": { "restart": "always" } } },
                "status": "success", "source": "cloud", "start_timestamp": "2026-01-02T03:04:05.678Z",
            });
            body.as_object_mut()
                .expect("it")
                .extend(more.as_object().expect("it").clone());
            self.make(name, "release", body).await;
        }
        let body = json!({ "application": "<pump>", "service_name": "main" });
        self.make("main", "service", body).await;
        let body = json!({
            "is_a_build_of__service": "<main>", "status": "success", "image_size": "9007199254740993",
            "start_timestamp": "2026-01-02T03:04:05.678Z", "push_timestamp": "2026-01-02T03:05:00Z",
            "content_hash": format!("sha256:{}", "ab".repeat(32)),
        });
        self.make("image", "image", body).await;
        let body = json!({ "image": "<image>", "is_part_of__release": "<1.2.3>" });
        self.make("part", "release_image", body).await;
        let body = json!({ "release": "<1.2.3>", "tag_key": "channel", "value": "stable" });
        self.make("channel", "release_tag", body).await;
        let body = json!({ "application": "<pump>", "tag_key": "site", "value": "north" });
        self.make("site", "application_tag", body).await;
        let body =
            json!({ "application": "<os>", "tag_key": "release-policy", "value": "default" });
        self.make("policy", "application_tag", body).await;
    }

    async fn devices(&mut self) {
        for (name, fleet, uuid, device_name) in [
            (
                "calm",
                "pump",
                "7cf02a62bdc94e6fa4d5cb9b1d94a5c1",
                "calm-river",
            ),
            (
                "other",
                "pump",
                "0123456789abcdef0123456789abcdef",
                "café & co; (x), y+z",
            ),
            (
                "lone",
                "valve",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "lone-hill",
            ),
        ] {
            let body = json!({
                "belongs_to__application": format!("<{fleet}>"), "is_of__device_type": "<pi>",
                "uuid": uuid, "device_name": device_name,
            });
            self.make(name, "device", body).await;
        }
        let calm = self.names.filled("<calm>");
        let path = format!("/v7/device({calm})?$select=actor");
        let actor = self.ann.rows(&path).await[0]["actor"]["__id"]
            .as_i64()
            .expect("an actor");
        self.names.call("calm-actor", "actor", actor);
        let path = format!("/api-key/device/{calm}/device-key");
        let (status, key) = self.ann.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        let key = key.as_str().expect("a key").to_owned();
        self.names
            .credentials
            .insert("calm".to_owned(), key.clone());
        let device = self.cloud.by(key);
        let report = json!({ "status": "Idle", "os_version": "Platform OS 2.88.4", "supervisor_version": "16.0.0" });
        let (status, why) = device
            .send(Method::PATCH, &format!("/v7/device({calm})"), report)
            .await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let install = json!({
            "device": "<calm>", "installs__image": "<image>", "is_provided_by__release": "<1.2.3>",
            "install_date": "2026-01-03T00:00:00Z", "status": "Running",
        });
        let id = device
            .create_from("image_install", self.names.filled(&install.to_string()))
            .await;
        self.names.call("install", "image_install", id);
        for (name, device, tag_key, value) in [
            ("env", "calm", "env", "prod"),
            ("odd", "calm", "it's100%", "yes"),
            ("its", "calm", "it's", "so"),
        ] {
            let body =
                json!({ "device": format!("<{device}>"), "tag_key": tag_key, "value": value });
            self.make(name, "device_tag", body).await;
        }
    }

    async fn variables(&mut self) {
        for (name, resource, parent, variable) in [
            (
                "greeting",
                "application_environment_variable",
                "application",
                "GREETING",
            ),
            (
                "poll",
                "application_config_variable",
                "application",
                "PLATFORM_SUPERVISOR_POLL_INTERVAL",
            ),
            ("a", "device_environment_variable", "device", "A"),
            (
                "service variable",
                "service_environment_variable",
                "service",
                "KEY",
            ),
        ] {
            let of = match parent {
                "application" => "<pump>",
                "device" => "<calm>",
                _ => "<main>",
            };
            let mut body = json!({ "name": variable, "value": "900000" });
            body[parent] = json!(of);
            self.make(name, resource, body).await;
        }
        let path = self
            .names
            .filled("/v7/service_install(device=<calm>,installs__service=<main>)?$select=id");
        let installs = self.ann.rows(&path).await;
        let id = installs[0]["id"]
            .as_i64()
            .expect("the service should run there");
        self.names.call("calm-main", "service_install", id);
        let body = json!({ "service_install": "<calm-main>", "name": "KEY", "value": "there" });
        self.make("key", "device_service_environment_variable", body)
            .await;
    }
}

impl ApiCaller<'_> {
    /// Creates a row from a body as text, in which numbers may be written as text; returns its id.
    async fn create_from(&self, resource: &str, body: String) -> i64 {
        let request = self.ask(Method::POST, &format!("/v7/{resource}"));
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let (status, row) = read(request.send().await.expect("an answer")).await;
        assert_eq!(status, StatusCode::CREATED, "{resource}: {row}");
        row["id"].as_i64().expect("an id")
    }
}
