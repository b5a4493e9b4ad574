//! A hostile tenant: the requests in the files of `hostile/`, one per line. After each of them, the whole database is
//! unchanged, and the answer contains nothing of the victim.
//!
//! ```text
//! # A comment.
//! mallory PATCH /v7/device(<calm>) {"note":"mine"} -> refused
//! ```
//!
//! A line consists of the caller, the method, the path, an optional body, and the required result:
//!
//! | | |
//! |---|---|
//! | `refused` | any 4xx, or a 200 without a row: of what one may not see there is none |
//! | `401` | this status |
//! | `made as NAME` | 2xx: something that the attacker may do, and prepares the next line with; `<NAME>` is its id |
//!
//! The callers are: `guest`; `mallory`, a user of another organization, with the fleet `<lair>`, its release
//! `<lair-release>`, its service `<lair-service>` and the device `<lair-device>`; `mallory-device`, the key of that
//! device; `mallory-provisioning`, the key that creates devices of that fleet; `observer`, `operator` and `developer`,
//! with whom the victim shares the fleet `<pump>`; `member`, who belongs to the victim's organization without being an
//! administrator; `calm`, the key of the victim's device `<calm>` in the hands of somebody who broke into it. The other
//! names are those of `scene.rs`, `<window>` (the victim's public fleet), and `<vault-…>` for rows of the victim's
//! fleet `<valve>`, which is shared with nobody. `<operator-org>` and so on are the callers' own organizations.

use std::collections::BTreeSet;
use std::path::Path;

use data::testing::text;
use data::{Database, Dialect, Options};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, EMAIL, on_both};
use crate::scene::{Names, scene};

/// A marker in every text of the victim that nobody else may read.
const VAULT: &str = "leak-of-the-vault";
/// The same for the fleet that is shared with some callers.
const SHARED: &str = "leak-of-the-pump";
/// The victim's device whose existence must remain hidden.
const LONE: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const MALLORYS_DEVICE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// The victim's fleet that everybody may read, except for the values of its variables.
const WINDOW: &str = "5f0c4d4e9b7a4c8fa1b2c3d4e5f60719";

struct Attack {
    /// The file and the line number.
    place: String,
    who: String,
    method: Method,
    path: String,
    body: Option<String>,
    expected: Expectation,
}

#[derive(Debug)]
enum Expectation {
    Refused,
    Status(u16),
    Made(String),
}

impl Attack {
    fn read(place: String, line: &str) -> Self {
        let (request, expected) = line.rsplit_once(" -> ").expect(line);
        let mut words = request.splitn(3, ' ');
        let mut word = || words.next().expect(line);
        let (who, method, rest) = (word(), word(), word());
        let body = [" {", " ["].iter().filter_map(|sign| rest.find(sign)).min();
        let (path, body) = match body {
            Some(at) => (&rest[..at], Some(rest[at + 1..].to_owned())),
            None => (rest, None),
        };
        let expected = match expected.trim() {
            "refused" => Expectation::Refused,
            other => match (other.strip_prefix("made as "), other.parse()) {
                (Some(name), _) => Expectation::Made(name.to_owned()),
                (None, Ok(status)) => Expectation::Status(status),
                (None, Err(_)) => panic!("{place}: `{other}` is nothing to expect"),
            },
        };
        Attack {
            who: who.to_owned(),
            method: method.parse().expect("a method"),
            path: path.to_owned(),
            body,
            expected,
            place,
        }
    }
}

/// Returns the lines of all files, in the order of their names.
fn attacks() -> Vec<Attack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cloud/hostile");
    let files = std::fs::read_dir(&folder).expect("the folder");
    let files: BTreeSet<_> = files.map(|file| file.expect("a file").path()).collect();
    let mut attacks = Vec::new();
    for file in files {
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&file).expect("a text");
        for (number, line) in text.lines().enumerate() {
            if !line.is_empty() && !line.starts_with('#') {
                attacks.push(Attack::read(format!("{name}:{}", number + 1), line));
            }
        }
    }
    attacks
}

#[tokio::test]
async fn nothing_that_a_hostile_tenant_sends_changes_or_shows_what_is_the_victims() {
    let attacks = attacks();
    let refused = attacks
        .iter()
        .filter(|it| !matches!(it.expected, Expectation::Made(_)));
    assert!(refused.count() >= 80);
    on_both(async |cloud| {
        let mut world = World::made(&cloud).await;
        let mut before = world.everything().await;
        let mut wrong = Vec::new();
        for attack in &attacks {
            if let Err(why) = world.suffer(&cloud, attack, &mut before).await {
                let body = attack.body.as_deref().unwrap_or_default();
                let (who, method, path) = (&attack.who, &attack.method, &attack.path);
                wrong.push(format!(
                    "{}: {who} {method} {path} {body}\n    {why}",
                    attack.place
                ));
            }
        }
        let many = wrong.len();
        assert!(
            wrong.is_empty(),
            "{many} attacks had an effect:\n{}",
            wrong.join("\n")
        );
    })
    .await;
}

/// A victim with a cloud, and the attackers.
struct World {
    names: Names,
    database: Database,
    /// The statement that returns all contents of the database.
    rows: String,
    /// Credentials of the victim, which no answer may contain.
    secrets: Vec<String>,
}

impl World {
    async fn made(cloud: &Cloud) -> Self {
        let mut names = scene(cloud).await;
        let ann = names.by(cloud, "ann");
        let secrets = ["ann", "calm", "bob"].map(|who| names.by(cloud, who).token);
        Self::fill_the_vault(&ann, &mut names).await;
        Self::report_from_the_vault(cloud, &ann, &mut names).await;
        for (who, role) in [
            ("observer", Some("observer")),
            ("operator", Some("operator")),
            ("developer", Some("developer")),
            ("member", None),
            ("mallory", None),
        ] {
            let by = new_user(cloud, &ann, who).await;
            let own = by
                .rows(&format!("/v7/organization(handle='{who}')?$select=id"))
                .await;
            names.call(
                &format!("{who}-org"),
                "organization",
                own[0]["id"].as_i64().expect("an id"),
            );
            if who != "mallory" {
                invite(&ann, &by, &names, who, role).await;
            }
            names.trust(who, by.token);
        }
        Self::furnish_the_lair(cloud, &mut names).await;
        let options = Options::default().with_connections(2);
        let database = Database::open(&cloud.database, &options).await;
        let database = database.expect("the database");
        World {
            names,
            rows: all_rows(&database).await,
            database,
            secrets: secrets.to_vec(),
        }
    }

    /// Creates everything that the victim can have, with the marker.
    async fn fill_the_vault(ann: &ApiCaller<'_>, names: &mut Names) {
        let shared = json!({ "application": "<pump>", "name": "SHARED", "value": SHARED });
        let vault = |name: &str| format!("{VAULT}-{name}");
        for (name, resource, body) in [
            ("vault-shared", "application_environment_variable", shared),
            (
                "vault-secret",
                "device_environment_variable",
                json!({ "device": "<calm>", "name": "TOKEN", "value": vault("secret"), "is_secret": true }),
            ),
            (
                "window",
                "application",
                json!({
                    "app_name": "window", "organization": "<acme>", "is_for__device_type": "<pi>", "is_public": true,
                    "uuid": WINDOW,
                }),
            ),
            (
                "window-variable",
                "application_environment_variable",
                json!({ "application": "<window>", "name": "PASSWORD", "value": vault("window") }),
            ),
            (
                "vault-variable",
                "application_environment_variable",
                json!({ "application": "<valve>", "name": "PASSWORD", "value": vault("fleet") }),
            ),
            (
                "vault-config",
                "application_config_variable",
                json!({ "application": "<valve>", "name": "PLATFORM_HOST_CONFIG_x", "value": vault("config") }),
            ),
            (
                "vault-build",
                "build_environment_variable",
                json!({ "application": "<valve>", "name": "BUILD", "value": vault("build") }),
            ),
            (
                "vault-tag",
                "application_tag",
                json!({ "application": "<valve>", "tag_key": "t", "value": vault("tag") }),
            ),
            (
                "vault-device-variable",
                "device_environment_variable",
                json!({ "device": "<lone>", "name": "PASSWORD", "value": vault("device") }),
            ),
            (
                "vault-device-config",
                "device_config_variable",
                json!({ "device": "<lone>", "name": "PLATFORM_HOST_CONFIG_x", "value": vault("device-config") }),
            ),
            (
                "vault-device-tag",
                "device_tag",
                json!({ "device": "<lone>", "tag_key": "t", "value": vault("device-tag") }),
            ),
            (
                "vault-service",
                "service",
                json!({ "application": "<valve>", "service_name": "main" }),
            ),
            (
                "vault-service-variable",
                "service_environment_variable",
                json!({ "service": "<vault-service>", "name": "KEY", "value": vault("service") }),
            ),
            (
                "vault-release",
                "release",
                json!({
                    "belongs_to__application": "<valve>", "commit": "1ea4000000000000000000000000000f", "status": "success",
                    "source": "cloud", "start_timestamp": "2026-01-02T03:04:05.678Z", "semver": "4.5.6",
                    "composition": { "services": { "main": { "command": vault("composition") } } },
                    "note": vault("release"),
                }),
            ),
            (
                "vault-release-tag",
                "release_tag",
                json!({ "release": "<vault-release>", "tag_key": "t", "value": vault("release-tag") }),
            ),
            (
                "vault-image",
                "image",
                json!({
                    "is_a_build_of__service": "<vault-service>", "status": "success", "build_log": vault("build-log"),
                    "start_timestamp": "2026-01-02T03:04:05.678Z", "push_timestamp": "2026-01-02T03:05:00Z",
                    "content_hash": format!("sha256:{}", "cd".repeat(32)),
                }),
            ),
            (
                "vault-part",
                "release_image",
                json!({ "image": "<vault-image>", "is_part_of__release": "<vault-release>" }),
            ),
            (
                "vault-team",
                "team",
                json!({ "name": vault("team"), "belongs_to__organization": "<acme>" }),
            ),
            (
                "vault-invite",
                "organization_invite",
                json!({ "invitee": "leak-of-the-vault@acme.example", "is_invited_to__organization": "<acme>" }),
            ),
        ] {
            let id = ann.create(resource, filled(names, &body)).await;
            names.call(name, resource, id);
        }
        for (path, note) in [
            ("/v7/device(<lone>)", "device"),
            ("/v7/release(<vault-release>)", "release"),
        ] {
            let (status, why) = ann
                .send(
                    Method::PATCH,
                    &names.filled(path),
                    json!({ "note": vault(note) }),
                )
                .await;
            assert_eq!(status, StatusCode::OK, "{why}");
        }
        let key = json!({ "name": vault("key"), "description": vault("key") });
        let (status, _) = ann.send(Method::POST, "/api-key/user/full", key).await;
        assert_eq!(status, StatusCode::OK);
    }

    /// Creates rows that only a device writes, by its report.
    async fn report_from_the_vault(cloud: &Cloud, ann: &ApiCaller<'_>, names: &mut Names) {
        let path = names.filled("/api-key/device/<lone>/device-key");
        let (status, key) = ann.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        let device = cloud.by(key.as_str().expect("a key").to_owned());
        let field = json!({ "gauge": { "level": { "value": format!("{VAULT}-field") } } });
        let report = json!({ LONE: { "plugin_fields": field } });
        let (status, why) = device.send(Method::PATCH, "/device/v3/state", report).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let row = ann.rows("/v7/device_plugin_field?$select=id").await;
        let id = row[0]["id"].as_i64().expect("an id");
        names.call("vault-field", "device_plugin_field", id);
    }

    /// Creates what mallory has, which anybody may create.
    async fn furnish_the_lair(cloud: &Cloud, names: &mut Names) {
        let mallory = names.by(cloud, "mallory");
        let (_, who) = mallory.get("/user/v1/whoami").await;
        names.call("mallory", "user", who["id"].as_i64().expect("an id"));
        for (name, resource, body) in [
            (
                "lair",
                "application",
                json!({ "app_name": "lair", "organization": "<mallory-org>", "is_for__device_type": "<pi>" }),
            ),
            (
                "lair-service",
                "service",
                json!({ "application": "<lair>", "service_name": "main" }),
            ),
            (
                "lair-release",
                "release",
                json!({
                    "belongs_to__application": "<lair>", "commit": "bad0000000000000000000000000000f", "status": "success",
                    "source": "cloud", "start_timestamp": "2026-01-02T03:04:05.678Z", "semver": "16.0.0",
                    "composition": { "services": { "main": { "privileged": true } } },
                }),
            ),
        ] {
            let id = mallory.create(resource, filled(names, &body)).await;
            names.call(name, resource, id);
        }
        let path = names.filled("/api-key/application/<lair>/provisioning");
        let (status, key) = mallory.send(Method::POST, &path, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        let key = key.as_str().expect("a key").to_owned();
        let body = json!({ "application": "<lair>", "device_type": "raspberrypi4-64", "uuid": MALLORYS_DEVICE });
        let body = filled(names, &body);
        let (status, made) = cloud
            .by(key.clone())
            .send(Method::POST, "/device/register", body)
            .await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        names.call("lair-device", "device", made["id"].as_i64().expect("an id"));
        let device = made["api_key"].as_str().expect("a key").to_owned();
        names.trust("mallory-provisioning", key);
        names.trust("mallory-device", device);
    }

    /// Runs an attack, and compares its effects with the permitted ones.
    async fn suffer(
        &mut self,
        cloud: &Cloud,
        attack: &Attack,
        before: &mut BTreeSet<String>,
    ) -> Result<(), String> {
        let path = self.names.filled(&attack.path);
        let request = match attack.who.as_str() {
            "guest" => cloud.ask(attack.method.clone(), &path),
            who => self.names.by(cloud, who).ask(attack.method.clone(), &path),
        };
        let request = match &attack.body {
            None => request,
            Some(body) => {
                let body = self.names.filled(body);
                request
                    .header("content-type", "application/json")
                    .body(body)
            }
        };
        let answer = request.send().await.map_err(|error| error.to_string())?;
        let (status, headers) = (answer.status(), format!("{:?}", answer.headers()));
        let text = answer.text().await.map_err(|error| error.to_string())?;
        if let Some(secret) = self
            .secrets_from(&attack.who)
            .find(|it| text.contains(it.as_str()) || headers.contains(it.as_str()))
        {
            return Err(format!("{status}, and the answer has `{secret}`: {text}"));
        }
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        let fits = match &attack.expected {
            Expectation::Refused if status == StatusCode::OK => is_nothing(&text, &body),
            Expectation::Refused => status.is_client_error(),
            Expectation::Status(expected) => status == *expected,
            Expectation::Made(_) => status.is_success(),
        };
        let after = self.everything().await;
        if let (true, Expectation::Made(name)) = (fits, &attack.expected) {
            if let Some(id) = body["id"].as_i64() {
                self.names.call(name, "", id);
            }
            // It may only change mallory's rows. The victim's rows contain the markers.
            let marked =
                |row: &&String| row.contains(VAULT) || row.contains(SHARED) || row.contains(EMAIL);
            let lost = before
                .iter()
                .filter(marked)
                .find(|row| !after.contains(*row))
                .cloned();
            *before = after;
            return lost.map_or(Ok(()), |row| {
                Err(format!("{status}, and this is no longer there: {row}"))
            });
        }
        let gone: Vec<_> = before.difference(&after).cloned().collect();
        let new: Vec<_> = after.difference(before).cloned().collect();
        *before = after;
        if !gone.is_empty() || !new.is_empty() {
            let rows = |rows: &[String]| rows.join("\n    ");
            return Err(format!(
                "{status}, before:\n    {}\n    after:\n    {}",
                rows(&gone),
                rows(&new)
            ));
        }
        if fits {
            Ok(())
        } else {
            Err(format!("{status} instead of {:?}: {text}", attack.expected))
        }
    }

    /// Returns the texts that no answer to this caller may contain.
    fn secrets_from(&self, who: &str) -> impl Iterator<Item = String> {
        let texts: &[&str] = match who {
            // They may read everything of their organization.
            "member" => &[],
            // The device runs the shared fleet's release.
            "observer" | "operator" | "developer" | "calm" => &[VAULT],
            _ => &[VAULT, SHARED, EMAIL],
        };
        let own = self.names.token(who).map(str::to_owned);
        let credentials = self
            .secrets
            .iter()
            .filter(move |it| Some(*it) != own.as_ref());
        let texts = texts.iter().map(|text| (*text).to_owned());
        texts.chain(credentials.cloned())
    }

    /// Returns every row of every table, except data that changes by itself and with each request.
    async fn everything(&self) -> BTreeSet<String> {
        texts(&self.database, &self.rows)
            .await
            .into_iter()
            .collect()
    }
}

/// Returns a statement that selects every row of every table as text.
async fn all_rows(database: &Database) -> String {
    let postgres = database.dialect() == Dialect::Postgres;
    let tables = if postgres {
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
    } else {
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    };
    let mut selects = Vec::new();
    for table in texts(database, tables).await {
        let columns = if postgres {
            format!(
                "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'public' AND table_name = '{table}'"
            )
        } else {
            format!("SELECT name FROM pragma_table_info('{table}')")
        };
        let restless = |name: &str| RESTLESS.contains(&name);
        let columns = texts(database, &columns).await;
        let shown = columns
            .iter()
            .filter(|column| !restless(&format!("{table}.{column}")));
        let shown = shown.map(|column| {
            if postgres {
                format!("coalesce(\"{column}\"::text, 'null')")
            } else {
                format!("quote(\"{column}\")")
            }
        });
        let shown = shown.collect::<Vec<_>>().join(" || ' | ' || ");
        if !restless(&table) {
            selects.push(format!("SELECT '{table}: ' || {shown} FROM \"{table}\""));
        }
    }
    selects.join(" UNION ALL ")
}

async fn texts(database: &Database, statement: &str) -> Vec<String> {
    let texts = database.texts(&text(statement)).await;
    texts.expect("an answer").into_iter().flatten().collect()
}

/// Tables and columns that change by themselves or with each request, whoever sends it.
const RESTLESS: [&str; 4] = [
    // Refused requests are recorded as well.
    "audit_event",
    "device_heartbeat",
    "service_instance.last_heartbeat",
    "sign_in_failure",
];

/// Whether a 200 contains no data.
fn is_nothing(text: &str, body: &Value) -> bool {
    let rows = &body["d"];
    let empty = rows.as_array().is_some_and(Vec::is_empty) || rows == 0;
    empty || text.is_empty() || *body == json!("OK") || *body == json!([]) || *body == json!(0)
}

fn filled(names: &Names, body: &Value) -> Value {
    let text = body.to_string();
    // In a body, a name inside a string is text, not a number.
    let mut parts = text.split("\"<");
    let mut bare = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(">\"") {
            Some((name, rest)) => bare.push_str(&format!("<{name}>{rest}")),
            None => bare.push_str(&format!("\"<{part}")),
        }
    }
    serde_json::from_str(&names.filled(&bare)).expect("JSON")
}

async fn new_user<'a>(cloud: &'a Cloud, ann: &ApiCaller<'_>, name: &str) -> ApiCaller<'a> {
    let password = format!("password of {name}");
    let body =
        json!({ "username": name, "email": format!("{name}@else.example"), "password": password });
    let (status, made) = ann.send(Method::POST, "/user/register", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let given = json!({ "username": name, "password": password });
    let answer = cloud.ask(Method::POST, "/login_").json(&given).send().await;
    cloud.by(answer.expect("an answer").text().await.expect("a token"))
}

/// Makes the victim invite somebody, into the fleet with a role, or into the organization; they accept.
async fn invite(
    ann: &ApiCaller<'_>,
    by: &ApiCaller<'_>,
    names: &Names,
    who: &str,
    role: Option<&str>,
) {
    let invitee = format!("{who}@else.example");
    let (path, body) = match role {
        Some(role) => {
            let path =
                format!("/v7/application_membership_role?$select=id&$filter=name eq '{role}'");
            let role = ann.rows(&path).await[0]["id"].clone();
            let body = json!({ "invitee": invitee, "is_invited_to__application": "<pump>", "application_membership_role": role });
            ("/v7/application_invite", body)
        }
        None => {
            let body = json!({ "invitee": invitee, "is_invited_to__organization": "<acme>" });
            ("/v7/organization_invite", body)
        }
    };
    let (status, invite) = ann.send(Method::POST, path, filled(names, &body)).await;
    assert_eq!(status, StatusCode::CREATED, "{invite}");
    let token = invite["invitation_token"].as_str().expect("a token");
    let path = format!("/user/v1/invitation/{token}");
    let (status, why) = by.send(Method::POST, &path, json!({})).await;
    assert_eq!(status, StatusCode::OK, "{why}");
}
