//! A cloud in its initial state, and requests to it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use data::catalogue::{CATALOGUE, FirstUser};
use data::query::{self, Caller, QueryContext, ReadStatement};
use data::quota::Quotas;
use data::testing::on_both;
use data::write::{Environment, Verb, Write, WriteError, WriteOutcome, Writer, write};
use data::{Database, Effect, Keyring, SystemPurpose};
use resources::{Branding, Role};
use serde_json::{Map, Value, json};

/// A database with the catalogue, an administrator and their organization `acme`.
#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) database: Database,
    pub(crate) environment: Environment,
    /// The administrator.
    pub(crate) ann: Caller,
    pub(crate) effects: Arc<Mutex<Vec<Effect>>>,
    /// Milliseconds; each request is one millisecond later.
    now: Arc<AtomicI64>,
}

/// 2026-01-02T03:04:05.678Z
const BEGIN: i64 = 1_767_323_045_678;

/// Runs a test on a fresh cloud on each database.
pub(crate) async fn on_clouds<T: Future<Output = ()>>(test: impl Fn(Cloud) -> T) {
    on_both(|database| async { test(Cloud::new(database).await).await }).await;
}

impl Cloud {
    async fn new(database: Database) -> Self {
        let environment = Environment {
            deletes_images: true,
            branding: Branding::default(),
            registry: "registry.example".to_owned(),
            quotas: Quotas::default(),
            keyring: Keyring::default(),
            rules: data::ROW_RULES,
        };
        let catalogue = CATALOGUE.parse().expect("the catalogue");
        database
            .add_catalogue(&catalogue, &environment, BEGIN)
            .await
            .expect("the catalogue is added");
        let first = FirstUser {
            organization: "acme".to_owned(),
            username: "ann".to_owned(),
            email: "ann@acme.example".to_owned(),
            password_hash: "x".to_owned(),
        };
        let user = database
            .first_user(&first, &environment, BEGIN)
            .await
            .expect("the first user is made")
            .expect("there was none");
        database
            .keep_system_organization(&environment, BEGIN)
            .await
            .expect("the system's organization is made");
        let effects = Arc::new(Mutex::new(Vec::new()));
        let sent = effects.clone();
        database.listen(move |effects| {
            sent.lock().expect("no panic").extend_from_slice(effects);
        });
        let mut cloud = Cloud {
            database,
            environment,
            ann: Caller::guest(),
            effects,
            now: Arc::new(AtomicI64::new(BEGIN)),
        };
        cloud.ann = cloud.user(user).await;
        cloud
    }

    async fn user(&self, user: i64) -> Caller {
        let row = self
            .get(
                &Caller::Platform(SystemPurpose::Rules),
                &format!("/user({user})?$select=actor"),
            )
            .await;
        Caller::Holder {
            role: Role::User,
            actor: row[0]["actor"]["__id"].as_i64(),
            user: Some(user),
        }
    }

    /// Creates another person, with their own organization if it has a name.
    pub(crate) async fn person(&self, name: &str, organization: Option<&str>) -> Caller {
        let body = json!({"username": name, "email": format!("{name}@example.com")});
        let user = self
            .made(&Caller::Platform(SystemPurpose::Rules), "user", body)
            .await;
        let caller = self.user(user).await;
        if let Some(handle) = organization {
            self.made(
                &caller,
                "organization",
                json!({"name": handle, "handle": handle}),
            )
            .await;
        }
        caller
    }

    /// Returns the caller with a key of this device.
    pub(crate) async fn device_key(&self, device: i64) -> Caller {
        Caller::Holder {
            role: Role::DeviceKey,
            actor: Some(self.link("device", device, "actor").await),
            user: None,
        }
    }

    /// Returns the next moment.
    pub(crate) fn later(&self) -> i64 {
        self.now.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn setting<'a>(&self, caller: &'a Caller, now: i64) -> QueryContext<'a> {
        QueryContext {
            model: resources::v7(),
            dialect: self.database.dialect(),
            caller,
            now,
            addresses: "/v7",
            always_addressed: false,
            lenient: false,
            tunnel_variables: &[],
            origin: "",
        }
    }

    pub(crate) async fn write(
        &self,
        caller: &Caller,
        verb: Verb,
        url: &str,
        body: Value,
    ) -> Result<WriteOutcome, WriteError> {
        let (path, query) = match url.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (url, None),
        };
        let request = odata::parse(path, query).expect(url);
        let write_it = Write {
            version: resources::Version::V7,
            verb,
            request: &request,
            body: &object(body),
            file: None,
        };
        let setting = self.setting(caller, self.later());
        write(&self.database, &self.environment, setting, write_it).await
    }

    pub(crate) async fn post(
        &self,
        caller: &Caller,
        resource: &str,
        body: Value,
    ) -> Result<i64, WriteError> {
        match self
            .write(caller, Verb::Post, &format!("/{resource}"), body)
            .await?
        {
            WriteOutcome::Created { id, .. } => Ok(id),
            WriteOutcome::Changed(_) => panic!("a POST made nothing"),
        }
    }

    /// Sends a POST that must succeed.
    pub(crate) async fn made(&self, caller: &Caller, resource: &str, body: Value) -> i64 {
        match self.post(caller, resource, body.clone()).await {
            Ok(id) => id,
            Err(error) => panic!("POST {resource} {body}: {error:?}"),
        }
    }

    pub(crate) async fn patch(
        &self,
        caller: &Caller,
        url: &str,
        body: Value,
    ) -> Result<u64, WriteError> {
        changed(self.write(caller, Verb::Patch, url, body).await)
    }

    pub(crate) async fn put(
        &self,
        caller: &Caller,
        url: &str,
        body: Value,
    ) -> Result<u64, WriteError> {
        changed(self.write(caller, Verb::Put, url, body).await)
    }

    pub(crate) async fn delete(&self, caller: &Caller, url: &str) -> Result<u64, WriteError> {
        changed(self.write(caller, Verb::Delete, url, json!({})).await)
    }

    /// Sends a PATCH by the administrator that must change one row.
    pub(crate) async fn set(&self, url: &str, body: Value) {
        match self.patch(&self.ann, url, body.clone()).await {
            Ok(1) => {}
            other => panic!("PATCH {url} {body}: {other:?}"),
        }
    }

    /// Returns the rows of a GET.
    pub(crate) async fn get(&self, caller: &Caller, url: &str) -> Value {
        let (path, query) = match url.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (url, None),
        };
        let request = odata::parse(path, query).expect(url);
        let setting = self.setting(caller, self.later());
        let read = query::read(&setting, &request);
        match read.unwrap_or_else(|error| panic!("{url}: {error}")) {
            ReadStatement::Records(select) => {
                let texts = self.database.texts(&select).await.expect(url);
                let rows = texts.into_iter().flatten();
                rows.map(|text| serde_json::from_str::<Value>(&text).expect(url))
                    .collect()
            }
            ReadStatement::Count(select) => {
                let row = self.database.row(&select).await.expect(url);
                row.and_then(|row| row.number(0).ok().flatten()).into()
            }
            ReadStatement::Metadata => Value::Null,
        }
    }

    /// Returns a field of a row.
    pub(crate) async fn field(&self, resource: &str, id: i64, field: &str) -> Value {
        let url = format!("/{resource}({id})?$select={field}");
        self.get(&Caller::Platform(SystemPurpose::Rules), &url)
            .await[0][field]
            .clone()
    }

    /// Returns the target of a link; -1 if it has none.
    pub(crate) async fn link(&self, resource: &str, id: i64, field: &str) -> i64 {
        let value = self.field(resource, id, field).await;
        value["__id"].as_i64().unwrap_or(-1)
    }

    /// Returns the number of rows, whoever may see them.
    pub(crate) async fn count(&self, resource_and_filter: &str) -> i64 {
        let (resource, filter) = match resource_and_filter.split_once('?') {
            Some((resource, filter)) => (resource, format!("?{filter}")),
            None => (resource_and_filter, String::new()),
        };
        let url = format!("/{resource}/$count{filter}");
        self.get(&Caller::Platform(SystemPurpose::Rules), &url)
            .await
            .as_i64()
            .expect("a count")
    }

    /// Returns the number of a kind of board.
    pub(crate) async fn board(&self, slug: &str) -> i64 {
        let url = format!("/device_type(slug='{slug}')?$select=id");
        self.get(&Caller::Platform(SystemPurpose::Rules), &url)
            .await[0]["id"]
            .as_i64()
            .expect(slug)
    }

    /// Creates a fleet of the administrator, for boards of this kind.
    pub(crate) async fn fleet_for(&self, name: &str, board: &str) -> i64 {
        let organization = self.get(&self.ann, "/organization?$select=id").await[0]["id"].clone();
        let board = self.board(board).await;
        let body = json!({
            "app_name": name, "organization": organization, "is_for__device_type": board,
        });
        self.made(&self.ann, "application", body).await
    }

    /// Creates a fleet of the administrator, for Raspberry Pi 4 boards.
    pub(crate) async fn fleet(&self, name: &str) -> i64 {
        self.fleet_for(name, "raspberrypi4-64").await
    }

    /// Creates a device of a fleet.
    pub(crate) async fn device(&self, fleet: i64) -> i64 {
        let board = self.board("raspberrypi4-64").await;
        let body = json!({"belongs_to__application": fleet, "is_of__device_type": board});
        self.made(&self.ann, "device", body).await
    }

    /// Returns the body of a request for a successful release of a fleet.
    pub(crate) fn release_body(&self, fleet: i64, commit: &str) -> Value {
        json!({
            "belongs_to__application": fleet, "commit": commit, "composition": {"services": {}},
            "status": "success", "source": "cloud", "start_timestamp": self.later(),
        })
    }

    /// Creates a successful release of a fleet.
    pub(crate) async fn release(&self, fleet: i64, commit: &str) -> i64 {
        self.made(&self.ann, "release", self.release_body(fleet, commit))
            .await
    }

    /// Creates a successful release of a fleet, with more fields.
    pub(crate) async fn release_with(&self, fleet: i64, commit: &str, more: Value) -> i64 {
        let body = with(self.release_body(fleet, commit), more);
        self.made(&self.ann, "release", body).await
    }

    /// Creates a service with an image in a release; returns the service.
    pub(crate) async fn service_in(&self, release: i64, name: &str) -> i64 {
        let fleet = self
            .link("release", release, "belongs_to__application")
            .await;
        let body = json!({"application": fleet, "service_name": name});
        let service = self.made(&self.ann, "service", body).await;
        let image = self.image_of(service).await;
        let body = json!({"image": image, "is_part_of__release": release});
        self.made(&self.ann, "release_image", body).await;
        service
    }

    pub(crate) async fn image_of(&self, service: i64) -> i64 {
        let body = json!({
            "is_a_build_of__service": service, "start_timestamp": self.later(), "status": "success",
            "push_timestamp": self.later(),
        });
        self.made(&self.ann, "image", body).await
    }

    /// Returns the services of a device, by their ids.
    pub(crate) async fn installed(&self, device: i64) -> Vec<i64> {
        let url = format!("/service_install?$select=installs__service&$filter=device eq {device}");
        let rows = self
            .get(&Caller::Platform(SystemPurpose::Rules), &url)
            .await;
        let rows = rows.as_array().expect("rows").iter();
        let mut services: Vec<i64> = rows
            .filter_map(|row| row["installs__service"]["__id"].as_i64())
            .collect();
        services.sort_unstable();
        services
    }

    /// Returns the effects reported since the last call.
    pub(crate) fn take_effects(&self) -> Vec<Effect> {
        std::mem::take(&mut *self.effects.lock().expect("no panic"))
    }

    /// Changes rows as the platform, in one transaction.
    pub(crate) async fn platform_sets(&self, resource: &str, id: i64, body: Value) {
        let mut transaction = self.database.begin().await.expect("a transaction");
        let mut writer = Writer::platform(
            SystemPurpose::Rules,
            &mut transaction,
            &self.environment,
            self.later(),
        );
        writer
            .change(resource, &[id], &object(body))
            .await
            .expect("the platform may");
        transaction.commit().await.expect("a commit");
    }
}

fn changed(written: Result<WriteOutcome, WriteError>) -> Result<u64, WriteError> {
    match written? {
        WriteOutcome::Changed(rows) => Ok(rows),
        WriteOutcome::Created { .. } => panic!("a row was made"),
    }
}

/// Returns a body with more fields, or other values.
pub(crate) fn with(body: Value, more: Value) -> Value {
    let mut body = object(body);
    body.extend(object(more));
    Value::Object(body)
}

fn object(body: Value) -> Map<String, Value> {
    match body {
        Value::Object(body) => body,
        other => panic!("{other} is no object"),
    }
}

/// Checks for a 400 whose text contains this part.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, WriteError>, part: &str) {
    match result {
        Err(WriteError::Refused(text)) if text.contains(part) => {}
        other => panic!("expected a refusal with `{part}`, not {other:?}"),
    }
}

/// Checks for a 409 with this text.
#[track_caller]
pub(crate) fn conflict<T: std::fmt::Debug>(result: Result<T, WriteError>, expected: &str) {
    match result {
        Err(WriteError::Conflict(text)) if text == expected => {}
        other => panic!("expected a conflict `{expected}`, not {other:?}"),
    }
}

/// Checks for a 401.
#[track_caller]
pub(crate) fn no_rights<T: std::fmt::Debug>(result: Result<T, WriteError>) {
    match result {
        Err(WriteError::NoRights) => {}
        other => panic!("expected no rights, not {other:?}"),
    }
}
