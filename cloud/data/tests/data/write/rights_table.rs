//! The hand-written table of rights in docs/security.md, compared with the database: each cell, and so also each right
//! that it does not mention.

use std::collections::{BTreeMap, HashMap};

use data::SystemPurpose;
use data::query::{self, Caller};
use resources::{Method, Resource, Role, Source, Type};
use serde_json::json;

use super::cloud::{Cloud, on_clouds};
use super::every::{is_free, value};

const METHODS: [(char, Method); 4] = [
    ('R', Method::Read),
    ('C', Method::Create),
    ('U', Method::Update),
    ('D', Method::Delete),
];

/// The columns of the table.
const COLUMNS: [&str; 11] = [
    "guest",
    "stranger",
    "observer",
    "operator",
    "developer",
    "member",
    "administrator",
    "key",
    "provisioning",
    "device",
    "tunnel server",
];

/// Creates a row of each resource that belong together: one organization, one fleet, one device, one user.
async fn one_of_each(cloud: &Cloud) -> HashMap<&'static str, i64> {
    let mut rows: HashMap<&str, i64> = HashMap::from([("cpu_architecture", 1)]);
    let tables = resources::v7().resources().iter();
    let mut waiting: Vec<_> = tables
        .filter(|one| one.source == Source::Table && one.name != "cpu_architecture")
        .collect();
    while !waiting.is_empty() {
        let ready = |one: &&Resource| {
            one.fields.iter().all(|field| match field.kind {
                Type::Link { to, .. } => field.nullable || field.owns || rows.contains_key(to),
                _ => true,
            })
        };
        let at = waiting
            .iter()
            .position(ready)
            .expect("a resource that can be made");
        let resource = waiting.remove(at);
        let mut body = json!({});
        for field in resource
            .fields
            .iter()
            .filter(|field| is_free(resource, field))
        {
            if let Some(value) = value(field, 40, &rows) {
                body[field.name] = value;
            }
        }
        let id = cloud
            .made(&Caller::Platform(SystemPurpose::Rules), resource.name, body)
            .await;
        rows.insert(resource.name, id);
    }
    let links = [
        ("device", "belongs_to__application", "application"),
        ("application", "organization", "organization"),
    ];
    for (resource, link, to) in links {
        cloud
            .platform_sets(resource, rows[resource], json!({link: rows[to]}))
            .await;
    }
    cloud
        .platform_sets(
            "organization",
            rows["organization"],
            json!({"is_system": false}),
        )
        .await;
    cloud
        .platform_sets("user", rows["user"], json!({"is_disabled": false}))
        .await;
    let actor = cloud.link("user", rows["user"], "actor").await;
    rows.insert("actor", actor);
    rows
}

async fn named(cloud: &Cloud, resource: &str, name: &str) -> i64 {
    let url = format!("/{resource}(name='{name}')?$select=id");
    let rows = cloud
        .get(&Caller::Platform(SystemPurpose::Rules), &url)
        .await;
    rows[0]["id"].as_i64().expect(name)
}

/// Returns the callers, by their column.
async fn callers(cloud: &Cloud, rows: &HashMap<&'static str, i64>) -> Vec<(&'static str, Caller)> {
    let (fleet, organization) = (rows["application"], rows["organization"]);
    let holder = |role, actor, user| Caller::Holder { role, actor, user };
    let mut callers = vec![
        ("guest", Caller::guest()),
        ("stranger", cloud.person("stranger", Some("stranger")).await),
    ];
    for role in ["observer", "operator", "developer"] {
        let who = cloud.person(role, None).await;
        let share = json!({
            "user": who.user(), "is_member_of__application": fleet,
            "application_membership_role": named(cloud, "application_membership_role", role).await,
        });
        cloud
            .made(
                &Caller::Platform(SystemPurpose::Rules),
                "user_application_membership",
                share,
            )
            .await;
        callers.push((role, who));
    }
    let member = cloud.person("member", None).await;
    let membership = json!({"user": member.user(), "is_member_of__organization": organization});
    cloud
        .made(
            &Caller::Platform(SystemPurpose::Rules),
            "organization_membership",
            membership,
        )
        .await;
    callers.push(("member", member));
    // The user of the rows is the administrator.
    let (user, actor) = (
        rows["user"],
        cloud.link("user", rows["user"], "actor").await,
    );
    let role = named(cloud, "organization_membership_role", "administrator").await;
    let role = json!({"organization_membership_role": role});
    cloud
        .platform_sets(
            "organization_membership",
            rows["organization_membership"],
            role,
        )
        .await;
    cloud
        .platform_sets("api_key", rows["api_key"], json!({"is_of__actor": actor}))
        .await;
    callers.push(("administrator", holder(Role::User, Some(actor), Some(user))));
    callers.push(("key", holder(Role::UserKey, Some(actor), Some(user))));
    let actor = Some(cloud.link("application", fleet, "actor").await);
    callers.push(("provisioning", holder(Role::ProvisioningKey, actor, None)));
    callers.push(("device", cloud.device_key(rows["device"]).await));
    callers.push(("tunnel server", holder(Role::TunnelServer, None, None)));
    callers
}

/// Returns the rights of a caller on a row.
async fn rights(cloud: &Cloud, who: &Caller, resource: &str, id: i64) -> String {
    let mut rights = String::new();
    for (letter, method) in METHODS {
        let setting = cloud.setting(who, cloud.later());
        let found = match query::permitted(&setting, resource, id, method) {
            Ok(select) => cloud
                .database
                .row(&select)
                .await
                .expect("an answer")
                .is_some(),
            Err(query::QueryError::NoRights(_)) => false,
            Err(error) => panic!("{resource}: {error}"),
        };
        if found {
            rights.push(letter);
        }
    }
    rights
}

/// Returns the table as written: for each resource the content of each column.
fn written() -> BTreeMap<String, Vec<String>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, table) = page
        .split_once("## Every right, by role")
        .expect("the section");
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let resource = cells
            .next()
            .expect("a resource")
            .trim_matches('`')
            .to_owned();
        let cells = cells
            .take(COLUMNS.len())
            .map(|cell| cell.trim_matches('–').to_owned());
        (resource, cells.collect())
    })
    .collect()
}

#[tokio::test]
async fn every_right_is_in_the_table_and_what_it_does_not_name_is_refused() {
    on_clouds(|cloud| async move {
        let rows = one_of_each(&cloud).await;
        let callers = callers(&cloud, &rows).await;
        let order: Vec<_> = callers.iter().map(|(column, _)| *column).collect();
        assert_eq!(order, COLUMNS);
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (column, who) in &callers {
            // A guest's rights are those on public fleets; for all others, a non-public one is checked.
            let public = json!({"is_public": *column == "guest"});
            cloud
                .platform_sets("application", rows["application"], public)
                .await;
            for (resource, id) in &rows {
                let rights = rights(&cloud, who, resource, *id).await;
                found
                    .entry((*resource).to_owned())
                    .or_default()
                    .push(rights);
            }
        }
        let written = written();
        if std::env::var_os("SHOW_RIGHTS").is_some() {
            for (resource, cells) in &found {
                let cells = cells
                    .iter()
                    .map(|one| if one.is_empty() { "–" } else { one });
                println!(
                    "| `{resource}` | {} |",
                    cells.collect::<Vec<_>>().join(" | ")
                );
            }
        }
        for (resource, cells) in &found {
            let row = written
                .get(resource)
                .unwrap_or_else(|| panic!("the table has no `{resource}`"));
            for (at, column) in COLUMNS.iter().enumerate() {
                assert_eq!(row[at], cells[at], "{resource}, {column}");
            }
        }
        assert_eq!(
            written.len(),
            found.len(),
            "the table names what is not there"
        );
    })
    .await;
}
