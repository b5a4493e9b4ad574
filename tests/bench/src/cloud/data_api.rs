//! Reads of the cloud's data API compared with handwritten queries for the same rows, in the same database.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use data::query::{Caller, QueryContext, ReadStatement, read};
use data::{BuiltStatement, Database, Dialect, Options, SystemPurpose};
use resources::{Role, v7};
use serde_json::Value;

use super::place::Kind;
use super::scene;
use crate::figures::{Latencies, Section, millis};

/// The number of fleets, and of devices with two tags each.
const FLEETS: i64 = 100;
const DEVICES: i64 = 10_000;
const TIMES: usize = 60;

/// A query in the query language and handwritten as SQL; `?` is the user.
struct BenchQuery {
    what: &'static str,
    path: &'static str,
    query: &'static str,
    postgres: String,
    sqlite: String,
}

/// Devices that the user may see: of fleets of their organizations, of fleets that are shared with them, and of fleets
/// that their teams have.
const SEEN: &str = "FROM device d JOIN application f ON f.id = d.belongs_to__application WHERE \
    (f.organization IN (SELECT is_member_of__organization FROM organization_membership WHERE \"user\" = ?) \
    OR f.id IN (SELECT is_member_of__application FROM user_application_membership WHERE \"user\" = ?) \
    OR f.id IN (SELECT t.grants_access_to__application FROM team_application_access t \
    JOIN team_membership m ON m.is_member_of__team = t.team WHERE m.\"user\" = ?))";

/// The organization of a fleet that the user sees, if they are a member of it.
const OF_FLEET: &str = "FROM organization o WHERE o.id = a.organization AND o.id IN \
    (SELECT is_member_of__organization FROM organization_membership WHERE \"user\" = ?)";

const TAGGED: &str = "EXISTS (SELECT 1 FROM device_tag t WHERE t.device = d.id AND t.tag_key = 'env' \
    AND t.value = 'v7')";

fn queries() -> [BenchQuery; 2] {
    [
        BenchQuery {
            what: "100 devices with two nested expansions",
            path: "/device",
            query: "$select=id,device_name&$orderby=id&$top=100&$expand=belongs_to__application($select=slug;\
                    $expand=organization($select=handle)),device_tag($select=tag_key,value)",
            postgres: format!(
                "SELECT CAST(row_to_json(r) AS text) FROM (SELECT d.id, d.device_name, \
                (SELECT coalesce(json_agg(x), '[]') FROM (SELECT a.slug, (SELECT coalesce(json_agg(y), '[]') FROM \
                (SELECT o.handle {OF_FLEET}) y) AS organization \
                FROM application a WHERE a.id = d.belongs_to__application) x) AS belongs_to__application, \
                (SELECT coalesce(json_agg(t), '[]') FROM (SELECT tag_key, value FROM device_tag t \
                WHERE t.device = d.id ORDER BY t.id) t) AS device_tag {SEEN} ORDER BY d.id LIMIT 100) r"
            ),
            sqlite: format!(
                "SELECT json_object('id', d.id, 'device_name', d.device_name, 'belongs_to__application', \
                (SELECT json_group_array(json_object('slug', a.slug, 'organization', \
                (SELECT json_group_array(json_object('handle', o.handle)) {OF_FLEET}))) \
                FROM application a WHERE a.id = d.belongs_to__application), \
                'device_tag', (SELECT json_group_array(json_object('tag_key', t.tag_key, 'value', t.value) \
                ORDER BY t.id) FROM device_tag t WHERE t.device = d.id)) {SEEN} ORDER BY d.id LIMIT 100"
            ),
        },
        BenchQuery {
            what: "the devices with a tag, of 10,000",
            path: "/device",
            query: "$select=id,device_name&$filter=device_tag/any(t:t/tag_key eq 'env' and t/value eq 'v7')",
            postgres: format!(
                "SELECT CAST(row_to_json(r) AS text) FROM (SELECT d.id, d.device_name {SEEN} AND {TAGGED} \
                ORDER BY d.id) r"
            ),
            sqlite: format!(
                "SELECT json_object('id', d.id, 'device_name', d.device_name) {SEEN} AND {TAGGED} ORDER BY d.id"
            ),
        },
    ]
}

pub(crate) async fn measure(kinds: &[Kind]) -> Result<Section> {
    let mut section = Section::new("Reads of the cloud's data API");
    for kind in kinds {
        let place = kind.fresh().await?;
        let (name, url) = (place.name, place.url.clone());
        let database = Database::open(&url, &Options::default()).await?;
        fill(&database)
            .await
            .context("the devices cannot be made")?;
        for bench_query in &queries() {
            let (ours, by_hand) = side_by_side(&database, bench_query).await?;
            let (ours, by_hand) = (Latencies::new(ours), Latencies::new(by_hand));
            let ratio = ours.p50().as_secs_f64() / by_hand.p50().as_secs_f64();
            section.add(
                format!("{}, {name}", bench_query.what),
                format!("median {}, {ratio:.2} times", millis(ours.p50())),
                format!("by hand {}", millis(by_hand.p50())),
                "1.3 times",
            );
        }
        database.close().await;
        place.end().await;
    }
    section.note(
        "In the process, without HTTP: the request is read, checked and made SQL each time, and the rows come as \
         JSON text. Both are asked in turn, over one pool.",
    );
    Ok(section)
}

async fn side_by_side(
    database: &Database,
    bench_query: &BenchQuery,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let by_hand = by_hand(database.dialect(), bench_query);
    let (ours, theirs) = (
        query(database, bench_query).await?,
        database.texts(&by_hand).await?,
    );
    if rows(&ours)? != rows(&theirs)? {
        return Err(anyhow!(
            "`{}` answers other rows than by hand",
            bench_query.what
        ));
    }
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let begun = Instant::now();
        query(database, bench_query).await?;
        ours.push(begun.elapsed());
        let begun = Instant::now();
        database.texts(&by_hand).await?;
        others.push(begun.elapsed());
    }
    Ok((ours, others))
}

/// Returns the handwritten query in the SQL of one database.
fn by_hand(dialect: Dialect, bench_query: &BenchQuery) -> BuiltStatement {
    let text = match dialect {
        Dialect::Postgres => bench_query.postgres.replace('?', "$1"),
        Dialect::Sqlite => bench_query.sqlite.replace('?', "?1"),
    };
    SystemPurpose::Operation.text(text, [1_i64.into()])
}

fn rows(texts: &[Option<String>]) -> Result<Vec<Value>> {
    let rows = texts.iter().flatten();
    let rows = rows.map(|row| serde_json::from_str(row));
    Ok(rows.collect::<Result<_, _>>()?)
}

async fn query(database: &Database, bench_query: &BenchQuery) -> Result<Vec<Option<String>>> {
    let caller = Caller::Holder {
        role: Role::User,
        actor: Some(1),
        user: Some(1),
    };
    let setting = QueryContext {
        model: v7(),
        dialect: database.dialect(),
        caller: &caller,
        now: 0,
        addresses: "/v7",
        origin: "",
        always_addressed: false,
        lenient: false,
        tunnel_variables: &[],
    };
    let request = odata::parse(bench_query.path, Some(bench_query.query))?;
    match read(&setting, &request)? {
        ReadStatement::Records(select) => Ok(database.texts(&select).await?),
        ReadStatement::Count(_) | ReadStatement::Metadata => {
            Err(anyhow!("`{}` lists nothing", bench_query.what))
        }
    }
}

/// Creates a member of the first of twenty organizations, which owns every second fleet.
async fn fill(database: &Database) -> Result<()> {
    let numbers = |most: i64| {
        format!("WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < {most}) ")
    };
    let statements = [
        format!(
            "{}INSERT INTO actor (id, created_at, modified_at) SELECT n, 1, 1 FROM g",
            numbers(DEVICES + FLEETS + 1)
        ),
        "INSERT INTO \"user\" (id, created_at, modified_at, actor, username, email) \
         VALUES (1, 1, 1, 1, 'ann', 'ann@example.com')"
            .to_owned(),
        format!(
            "{}INSERT INTO organization (id, created_at, modified_at, name, handle) \
             SELECT n, 1, 1, 'o' || n, 'o' || n FROM g",
            numbers(20)
        ),
        "INSERT INTO organization_membership_role (id, created_at, modified_at, name) \
         VALUES (1, 1, 1, 'member')"
            .to_owned(),
        "INSERT INTO organization_membership (created_at, modified_at, \"user\", \
         is_member_of__organization, organization_membership_role) VALUES (1, 1, 1, 1, 1)"
            .to_owned(),
        "INSERT INTO cpu_architecture (id, created_at, modified_at, slug) VALUES (1, 1, 1, 'amd64')".to_owned(),
        "INSERT INTO device_type (id, created_at, modified_at, slug, name, is_of__cpu_architecture, is_private) \
         VALUES (1, 1, 1, 'generic', 'Generic', 1, FALSE)"
            .to_owned(),
        "INSERT INTO application_type (id, created_at, modified_at, name, slug, supports_web_url, \
         supports_multicontainer, supports_gateway_mode, requires_payment, is_legacy) \
         VALUES (1, 1, 1, 'Default', 'default', FALSE, TRUE, TRUE, FALSE, FALSE)"
            .to_owned(),
        format!(
            "{}INSERT INTO application (id, created_at, modified_at, actor, uuid, app_name, slug, organization, \
             is_for__device_type, application_type, should_track_latest_release, is_of__class, is_public, is_host, \
             is_archived, is_discoverable) SELECT n, 1, 1, n + 1, 'f' || n, 'fleet' || n, 'o/fleet' || n, \
             CASE WHEN n % 2 = 0 THEN 1 ELSE n % 20 + 1 END, 1, 1, TRUE, 'fleet', FALSE, FALSE, FALSE, FALSE FROM g",
            numbers(FLEETS)
        ),
        format!(
            "{}INSERT INTO device (id, created_at, modified_at, actor, uuid, device_name, is_of__device_type, \
             belongs_to__application, api_heartbeat_state, is_connected_to_vpn, is_online, is_undervolted, \
             is_active, is_web_accessible) SELECT n, 1, 1, n + {FLEETS} + 1, 'd' || n, 'device ' || n, 1, \
             n % {FLEETS} + 1, 'online', TRUE, TRUE, FALSE, TRUE, FALSE FROM g",
            numbers(DEVICES)
        ),
        "INSERT INTO device_tag (created_at, modified_at, device, tag_key, value) \
         SELECT 1, 1, id, 'env', 'v' || (id % 50) FROM device"
            .to_owned(),
        "INSERT INTO device_tag (created_at, modified_at, device, tag_key, value) \
         SELECT 1, 1, id, 'zone', 'z' || id FROM device"
            .to_owned(),
        "ANALYZE".to_owned(),
    ];
    scene::execute(database, statements).await
}
