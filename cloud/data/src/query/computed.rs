//! Computed fields (docs/spec/cloud.md#model-overall-status, docs/spec/cloud.md#rule-raw-version).

use sea_query::Expr;

use super::context::QueryContext;
use super::scope::TableRow;
use crate::dialect::Dialect;

/// Returns the expression of a computed field, if there is one.
pub(super) fn expression(
    context: &QueryContext<'_>,
    row: &TableRow<'_>,
    name: &str,
) -> Option<Expr> {
    let write = ComputedFields { context, row };
    let text = match (row.resource.table, name) {
        ("device", "should_be_running__release") => TARGET_RELEASE.to_owned(),
        ("device", "overall_status") => return Some(write.overall_status()),
        ("device", "overall_progress") => overall_progress(),
        ("device", "overall_status_v6") => overall_status_v6(),
        ("device", "device_type") => one("slug", "device_type", "is_of__device_type"),
        ("device", "is_on__commit") => one("commit", "release", "is_running__release"),
        ("application", "user") => FIRST_MEMBER.to_owned(),
        ("application", "device_type") => one("slug", "device_type", "is_for__device_type"),
        ("application", "commit") => one("commit", "release", "should_be_running__release"),
        ("release", "is_for__device_type") => one(
            "is_for__device_type",
            "application",
            "belongs_to__application",
        ),
        ("release", "release_type") => {
            "CASE WHEN {revision} IS NULL THEN 'draft' ELSE 'final' END".to_owned()
        }
        ("release", "is_final") => "{revision} IS NOT NULL".to_owned(),
        ("release", "semver") => semver(),
        ("release", "raw_version") => raw_version(context.dialect),
        ("release", "version") => version(context.dialect),
        ("release_asset", "asset") => return Some(write.asset()),
        _ => return None,
    };
    Some(write.expression(&text, Vec::new()))
}

const TARGET_RELEASE: &str = "coalesce({is_pinned_on__release}, \
     (SELECT a.should_be_running__release FROM application AS a \
      WHERE a.id = {belongs_to__application}))";

/// The device itself is downloading.
const DOWNLOADING: &str = "{api_heartbeat_state} IN ('online', 'timeout') \
     AND {download_progress} IS NOT NULL AND coalesce({status}, '') = 'Downloading'";

/// The device was never connected.
const NEVER_SEEN: &str = "NOT {is_connected_to_vpn} AND {last_connectivity_event} IS NULL \
     AND {api_heartbeat_state} = 'unknown'";

/// The device is not connected now.
const AWAY: &str = "NOT {is_connected_to_vpn} AND {api_heartbeat_state} IN ('offline', 'unknown')";

/// The first member of a fleet's organization: the owner of the fleet in versions from before organizations.
const FIRST_MEMBER: &str = "SELECT m.\"user\" FROM organization_membership AS m \
     WHERE m.is_member_of__organization = {organization} ORDER BY m.id LIMIT 1";

/// Selects a column of the row that a link refers to.
fn one(column: &str, table: &str, link: &str) -> String {
    format!("SELECT x.\"{column}\" FROM {table} AS x WHERE x.id = {{{link}}}")
}

/// Returns the status as in version 6: it has one word for every working state, and shows updates even if a device is
/// offline.
fn overall_status_v6() -> String {
    format!(
        "CASE WHEN NOT {{is_active}} THEN 'inactive' \
         WHEN {{provisioning_state}} = 'Post-Provisioning' THEN 'post-provisioning' \
         WHEN {NEVER_SEEN} THEN 'configuring' \
         WHEN {AWAY} THEN 'offline' \
         WHEN {{download_progress}} IS NOT NULL AND coalesce({{status}}, '') = 'Downloading' \
         THEN 'updating' \
         WHEN {{provisioning_progress}} IS NOT NULL THEN 'configuring' \
         WHEN EXISTS (SELECT 1 FROM image_install AS i WHERE i.device = {{id}} \
         AND i.download_progress IS NOT NULL AND i.status = 'Downloading') THEN 'updating' \
         ELSE 'idle' END"
    )
}

/// Builds expressions for a row.
struct ComputedFields<'c, 'a> {
    context: &'c QueryContext<'a>,
    row: &'c TableRow<'a>,
}

impl ComputedFields<'_, '_> {
    /// Builds an expression from custom SQL, with `{name}` for a column of the row and `?` for a value.
    fn expression(&self, text: &str, values: Vec<Expr>) -> Expr {
        let mut sql = String::with_capacity(text.len() * 2);
        let mut number = 0;
        let mut rest = text;
        sql.push('(');
        while let Some(at) = rest.find(['{', '?']) {
            sql.push_str(&rest[..at]);
            if rest[at..].starts_with('?') {
                number += 1;
                match self.context.dialect {
                    Dialect::Postgres => sql.push_str(&format!("${number}")),
                    Dialect::Sqlite => sql.push('?'),
                }
                rest = &rest[at + 1..];
                continue;
            }
            let name = &rest[at + 1..];
            match name.split_once('}') {
                Some((name, after))
                    if name.bytes().all(|c| c == b'_' || c.is_ascii_lowercase()) =>
                {
                    sql.push_str(&format!("\"{}\".\"{name}\"", self.row.alias));
                    rest = after;
                }
                // A brace in JSON.
                _ => {
                    sql.push('{');
                    rest = name;
                }
            }
        }
        sql.push_str(rest);
        sql.push(')');
        Expr::cust_with_exprs(sql, values)
    }

    /// Files are stored with the path of their download; the current origin is added when they are read. A quote within
    /// a JSON text has a backslash before it, so nothing else can look like this field.
    fn asset(&self) -> Expr {
        let before = "\"href\":\"";
        let href = format!("{before}{}", self.context.origin);
        let values = vec![before.into(), href.into()];
        self.expression("replace({asset}, ?, ?)", values)
    }

    fn overall_status(&self) -> Expr {
        // Current names take precedence over older ones.
        let names = self.context.tunnel_variables;
        let values_of = |table: &str, owner: &str, of: &str| {
            let one = format!(
                "(SELECT v.value FROM {table} AS v WHERE v.{owner} = {{{of}}} AND v.name = ?)"
            );
            vec![one; names.len()]
        };
        let mut places = values_of("device_config_variable", "device", "id");
        places.extend(values_of(
            "application_config_variable",
            "application",
            "belongs_to__application",
        ));
        let values = names
            .iter()
            .chain(names)
            .map(|name| name.as_str().into())
            .collect();
        let text = format!(
            "CASE WHEN NOT {{is_active}} THEN 'inactive' \
             WHEN {{provisioning_state}} = 'Post-Provisioning' THEN 'post-provisioning' \
             WHEN {NEVER_SEEN} THEN 'configuring' \
             WHEN {AWAY} THEN 'disconnected' \
             WHEN {DOWNLOADING} THEN 'updating' \
             WHEN {{provisioning_progress}} IS NOT NULL THEN 'configuring' \
             WHEN {{api_heartbeat_state}} IN ('online', 'timeout') AND EXISTS (SELECT 1 \
             FROM image_install AS i WHERE i.device = {{id}} AND i.download_progress IS NOT NULL \
             AND i.status = 'Downloading') THEN 'updating' \
             WHEN {{api_heartbeat_state}} = 'timeout' \
             OR {{is_connected_to_vpn}} AND {{api_heartbeat_state}} <> 'online' \
             OR NOT {{is_connected_to_vpn}} AND {{api_heartbeat_state}} = 'online' \
             AND coalesce({}, '') <> 'false' THEN 'reduced-functionality' \
             ELSE 'operational' END",
            if places.is_empty() {
                "NULL".to_owned()
            } else {
                places.join(", ")
            }
        );
        self.expression(&text, values)
    }
}

fn overall_progress() -> String {
    format!(
        "CASE WHEN NOT {{is_active}} THEN NULL \
         WHEN {{provisioning_state}} = 'Post-Provisioning' THEN {{provisioning_progress}} \
         WHEN {NEVER_SEEN} THEN {{provisioning_progress}} \
         WHEN {AWAY} THEN NULL \
         WHEN {DOWNLOADING} THEN {{download_progress}} \
         WHEN {{provisioning_progress}} IS NOT NULL THEN {{provisioning_progress}} \
         WHEN EXISTS (SELECT 1 FROM image_install AS i \
         WHERE i.device = {{id}} AND i.status = 'Downloading') \
         THEN (SELECT CAST(round(avg(coalesce(i.download_progress, 100))) AS bigint) \
         FROM image_install AS i WHERE i.device = {{id}} AND i.status <> 'deleted' \
         AND (i.status = 'Downloading' OR i.is_provided_by__release = {TARGET_RELEASE})) \
         END"
    )
}

const CORE: &str = "CAST({semver_major} AS TEXT) || '.' || CAST({semver_minor} AS TEXT) || '.' \
     || CAST({semver_patch} AS TEXT)";

fn semver() -> String {
    format!(
        "{CORE} || CASE WHEN {{semver_prerelease}} <> '' THEN '-' || {{semver_prerelease}} ELSE '' END \
         || CASE WHEN {{semver_build}} <> '' THEN '+' || {{semver_build}} ELSE '' END"
    )
}

/// The part after the `-`, empty if there is none; for a draft it includes the creation time.
const PRERELEASE: &str = "CASE WHEN {revision} IS NOT NULL THEN {semver_prerelease} \
     WHEN {semver_prerelease} <> '' THEN {semver_prerelease} || '.' || CAST({created_at} AS TEXT) \
     ELSE CAST({created_at} AS TEXT) END";

/// Returns the part after the `+`, with a dot before each item.
fn build(dialect: Dialect) -> String {
    let find = match dialect {
        Dialect::Postgres => "strpos",
        Dialect::Sqlite => "instr",
    };
    format!(
        "(CASE WHEN {{semver_build}} <> '' THEN '.' || {{semver_build}} ELSE '' END \
         || CASE WHEN {{revision}} > 0 AND {find}('.' || {{semver_build}} || '.', \
         '.rev' || CAST({{revision}} AS TEXT) || '.') = 0 \
         THEN '.rev' || CAST({{revision}} AS TEXT) ELSE '' END \
         || CASE WHEN {{variant}} <> '' THEN '.' || {{variant}} ELSE '' END)"
    )
}

fn raw_version(dialect: Dialect) -> String {
    let build = build(dialect);
    format!(
        "{CORE} || CASE WHEN ({PRERELEASE}) <> '' THEN '-' || ({PRERELEASE}) ELSE '' END \
         || CASE WHEN {build} <> '' THEN '+' || substr({build}, 2) ELSE '' END"
    )
}

fn version(dialect: Dialect) -> String {
    let build = build(dialect);
    let raw = raw_version(dialect);
    // Every part consists of letters, digits, dots and dashes and needs no escaping. Other text (`variant`) is quoted
    // by the database.
    let quoted = |text: &str| match dialect {
        Dialect::Postgres => format!("CAST(to_json({text}) AS TEXT)"),
        Dialect::Sqlite => format!("json_quote({text})"),
    };
    let list = |text: &str| {
        format!(
            "CASE WHEN ({text}) = '' THEN '[]' ELSE '[' || replace({}, '.', '\",\"') || ']' END",
            quoted(&format!("({text})"))
        )
    };
    // Parsers of semantic versions read a part of digits as a number; one that they could not represent exactly stays
    // text.
    let numbered = |text: &str| {
        let (number, parts) = match dialect {
            Dialect::Postgres => (
                "p !~ '[^0-9]' AND length(p) < 16",
                format!("unnest(string_to_array(({text}), '.')) WITH ORDINALITY AS u(p, n)"),
            ),
            Dialect::Sqlite => (
                "p NOT GLOB '*[^0-9]*' AND length(p) < 16",
                format!(
                    "(SELECT value AS p, key AS n FROM json_each({}))",
                    list(text)
                ),
            ),
        };
        let joined = match dialect {
            Dialect::Postgres => "string_agg",
            Dialect::Sqlite => "group_concat",
        };
        let part = format!("CASE WHEN {number} THEN p ELSE {} END", quoted("p"));
        format!(
            "(SELECT '[' || coalesce({joined}({part}, ',' ORDER BY n), '') || ']' FROM {parts})"
        )
    };
    format!(
        "'{{\"raw\":' || {} || ',\"major\":' || {{semver_major}} || ',\"minor\":' || {{semver_minor}} \
         || ',\"patch\":' || {{semver_patch}} || ',\"prerelease\":' || {} || ',\"build\":' || {} \
         || ',\"version\":' || {} || '}}'",
        quoted(&format!("({raw})")),
        numbered(PRERELEASE),
        list(&format!("substr({build}, 2)")),
        quoted(&format!(
            "({CORE} || CASE WHEN ({PRERELEASE}) <> '' THEN '-' || ({PRERELEASE}) ELSE '' END)"
        )),
    )
}
