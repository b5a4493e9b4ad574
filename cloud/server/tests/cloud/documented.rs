//! docs/cloud-api.md: runs every command on the page, and compares each answer with the one on the page; a table names
//! the test of each operation and example. `UPDATE_DOCS=1` writes both into the page.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::harness::Cloud;
use crate::scene::scene;

/// How many items of a long list the page shows.
const SHOWN: usize = 4;
/// How many fields of a large object the page shows.
const FIELDS: usize = 14;
const MORE: &str = "…";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> PathBuf {
    repository().join("docs/cloud-api.md")
}

/// A command of the page and the answer below it.
struct Example {
    /// The position of both.
    place: Range<usize>,
    command: String,
    answer: String,
}

fn examples(text: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(begin) = text[from..].find("```console\n").map(|at| from + at + 11) {
        let end = begin + text[begin..].find("```").expect("a block ends");
        let lines: Vec<&str> = text[begin..end].lines().collect();
        let of_command = 1 + lines.iter().take_while(|line| line.ends_with('\\')).count();
        let command = lines[..of_command].join("\n");
        found.push(Example {
            place: begin..end,
            command: command.strip_prefix("$ ").expect("a command").to_owned(),
            answer: lines[of_command..].join("\n"),
        });
        from = end + 3;
    }
    found
}

/// The state of a reader's shell.
struct Reader<'a> {
    cloud: &'a Cloud,
    token: String,
    key: String,
}

impl Reader<'_> {
    /// Runs a command of the page like a reader, and returns the answer in the form of the page.
    fn run(&mut self, command: &str) -> String {
        let script = command.replacen(
            "curl ",
            "curl -sS -w '\\n# %{http_code} %{content_type}' ",
            1,
        );
        let output = Command::new("sh")
            .args(["-c", &script])
            .env("cloud", &self.cloud.url)
            .env("auth", format!("Authorization: Bearer {}", self.token))
            .env("key", &self.key)
            .stdin(Stdio::null())
            .output()
            .expect("a shell and curl");
        let printed = String::from_utf8(output.stdout).expect("text");
        let printed = printed.replace(&self.cloud.url, "https://cloud.example");
        let (body, head) = printed.rsplit_once("\n#").expect("a status");
        if command.contains("/login_") {
            body.clone_into(&mut self.token);
            return format!("#{head}\neyJhbGciOiJIUzI1NiJ9…");
        }
        let body = if command.contains("/api-key/") {
            let key: String = serde_json::from_str(body).expect("a key");
            if command.contains("/user/full") {
                self.key = key;
            }
            "\"0f1e2d3c4b5a69788796a5b4c3d2e1f0\"".to_owned()
        } else {
            laid_out(&with_one_key(body))
        };
        format!("#{head}\n{body}").trim_end().to_owned()
    }
}

/// Replaces the keys of files, which are random, by the one on the page.
fn with_one_key(body: &str) -> String {
    match body.split_once("?key=") {
        Some((before, rest)) => {
            let (_, after) = rest.split_at(32);
            format!("{before}?key=0f1e2d3c4b5a69788796a5b4c3d2e1f0{after}")
        }
        None => body.to_owned(),
    }
}

/// Formats JSON as on the page: indented, with long lists cut short.
fn laid_out(body: &str) -> String {
    match serde_json::from_str::<Value>(body) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            let shown = cut(value);
            let one_line = one_line(&shown);
            if one_line.chars().count() <= 110 {
                one_line
            } else {
                format!("{shown:#}")
            }
        }
        _ => body.to_owned(),
    }
}

/// Adds a space after each colon and comma, as people write it.
fn one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| {
                format!("{}: {}", Value::from(name.as_str()), one_line(value))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(one_line).collect::<Vec<_>>().join(", ")
            )
        }
        other => other.to_string(),
    }
}

fn cut(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let more = (items.len() > SHOWN).then(|| MORE.into());
            items.into_iter().take(SHOWN).map(cut).chain(more).collect()
        }
        Value::Object(fields) => {
            let many = fields.len() > FIELDS;
            let more = many.then(|| (MORE.to_owned(), MORE.into()));
            let shown = fields.into_iter().take(if many { 3 } else { FIELDS });
            let shown = shown.map(|(name, value)| (name, cut(value)));
            shown.chain(more).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

/// Replaces what differs from run to run in an answer: times.
fn settled(answer: &str) -> String {
    let mut settled = String::new();
    for word in answer.split_inclusive('"') {
        let is_moment = word
            .trim_end_matches('"')
            .parse::<jiff::Timestamp>()
            .is_ok();
        settled.push_str(if is_moment { "TIME\"" } else { word });
    }
    settled
}

#[tokio::test]
async fn every_answer_of_the_page_is_the_one_that_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("page.sqlite").display());
    let cloud = Cloud::start(&database).await;
    scene(&cloud).await;
    let mut reader = Reader {
        cloud: &cloud,
        token: String::new(),
        key: String::new(),
    };
    let text = fs::read_to_string(page()).expect("the page");
    let (mut written, mut from) = (String::new(), 0);
    let mut wrong = Vec::new();
    for example in examples(&text) {
        let answer = reader.run(&example.command);
        let same = settled(&answer) == settled(example.answer.trim_end());
        if !same {
            wrong.push(format!(
                "`{}`: {}\n{answer}",
                example.command, example.answer
            ));
        }
        // A correct page remains unchanged.
        let shown = if same {
            example.answer.trim_end()
        } else {
            &answer
        };
        written.push_str(&text[from..example.place.start]);
        written.push_str(&format!("$ {}\n{shown}\n", example.command));
        from = example.place.end;
    }
    written.push_str(&text[from..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(page(), written).expect("the page is written");
        return;
    }
    assert!(
        wrong.is_empty(),
        "docs/cloud-api.md is not what the cloud answers (UPDATE_DOCS=1 rewrites it):\n{}",
        wrong.join("\n")
    );
}

/// The files of requests, and the tests that send them.
const FILES: [(&str, &str); 11] = [
    ("operations", "operations"),
    ("fleets", "fleets"),
    ("devices_read", "devices_are_read"),
    ("devices_written", "devices_are_written"),
    ("tags", "tags"),
    ("variables", "variables_and_services"),
    ("releases", "releases"),
    ("catalogue", "catalogue_organizations_and_keys"),
    ("more", "counts_aliases_navigation_rights_and_history"),
    ("bytes", "bytes_on_the_wire"),
    ("mistakes", "likely_mistakes"),
];

/// The rows of the description's tables: operations of fleets, states, addressing, query options.
const OPERATIONS: [&str; 21] = [
    "list fleets",
    "get by id",
    "get by slug",
    "get by name",
    "fleet with devices",
    "get target release",
    "create",
    "pin to release",
    "enable tracking",
    "disable tracking",
    "delete",
    "collection",
    "one record by numeric id",
    "one record by uuid",
    "one fleet by slug",
    "record with a composite key",
    "$select",
    "$filter by a field",
    "$filter by a field of a link",
    "$expand",
    "$expand with a nested $select",
];

/// Operations that are in no file of requests.
const BESIDE: [(&str, &str); 66] = [
    (
        "session token",
        "accounts.rs::a_name_or_an_address_and_the_password_give_a_token",
    ),
    (
        "named API key",
        "accounts.rs::keys_are_made_shown_once_and_end_with_their_row",
    ),
    (
        "whoami",
        "accounts.rs::a_credential_tells_what_it_stands_for_and_a_bad_one_is_refused",
    ),
    (
        "users see what is theirs",
        "accounts.rs::an_administrator_makes_users_who_see_what_is_theirs",
    ),
    (
        "`/user/register`, if registration is open",
        "accounts.rs::where_everybody_may_register_nobody_does_so_without_end",
    ),
    (
        "`/user/v1/invitation/:token`",
        "invitations.rs::an_invited_person_accepts_once_and_only_under_the_address",
    ),
    (
        "rate limit, `Retry-After`",
        "data_api.rs::a_caller_with_too_many_requests_learns_when_to_retry",
    ),
    (
        "rate limit of signing in",
        "accounts.rs::guessing_is_refused_after_some_tries_with_the_time_to_wait",
    ),
    (
        "rate limit of logs",
        "device_logs.rs::too_many_batches_are_refused_until_later",
    ),
    (
        "rate limit of measurements",
        "device_report.rs::measurements_alone_are_written_once_a_minute_and_else_with_the_rest",
    ),
    (
        "statuses and bodies of errors",
        "data_api.rs::errors_are_json_strings_with_a_clear_status",
    ),
    (
        "POST answers the row and its place",
        "data_api.rs::a_created_row_is_answered_bare_with_its_place",
    ),
    (
        "ETag, CORS",
        "data_api.rs::an_unchanged_answer_is_not_sent_twice_and_browsers_receive_cors_headers",
    ),
    (
        "`release_asset`: multipart/form-data",
        "release_assets.rs::another_file_takes_the_place_of_the_first_and_what_is_deleted_is_gone",
    ),
    (
        "`release_asset`: download, ranges",
        "release_assets.rs::a_file_that_was_uploaded_comes_back_whole_and_in_ranges",
    ),
    (
        "`release_asset`: rights",
        "release_assets.rs::a_file_is_for_those_who_may_read_its_release",
    ),
    (
        "POST `/device/register`",
        "device_register.rs::a_device_registers_and_has_its_key_its_name_and_its_services",
    ),
    (
        "POST `/device/register`: failures",
        "device_register.rs::invalid_registrations_are_refused_with_the_messages_that_devices_recognize",
    ),
    (
        "GET `/device/v3/:uuid/state`",
        "device_state.rs::the_state_has_the_form_that_devices_read",
    ),
    (
        "GET `/device/v2/:uuid/state`",
        "device_state.rs::version_2_tells_the_same_by_numbers",
    ),
    (
        "GET `/device/v3/fleet/:uuid/state`",
        "device_state.rs::a_fleet_has_a_state_for_any_of_its_devices",
    ),
    (
        "PATCH `/device/v3/state`",
        "device_report.rs::reports_of_a_device_are_stored_and_cut_to_their_bounds",
    ),
    (
        "PATCH `/device/v2/:uuid/state`",
        "device_report.rs::version_2_reports_by_numbers_and_a_device_that_is_gone_is_left_in_peace",
    ),
    (
        "PATCH `/device/v3/tags`",
        "device_report.rs::a_device_labels_itself",
    ),
    (
        "POST `/device/v2/:uuid/logs`",
        "device_logs.rs::a_batch_of_lines_is_kept_and_read_back",
    ),
    (
        "POST `/device/v2/:uuid/log-stream`",
        "device_logs.rs::excess_lines_of_a_device_are_reported_as_one_line",
    ),
    (
        "GET `/device/v2/:uuid/logs`",
        "device_logs.rs::a_stream_is_followed_live_after_what_was_there_without_a_gap",
    ),
    (
        "POST `/supervisor/<path>`",
        "reach/proxy.rs::the_cloud_passes_a_request_to_the_device_and_its_answer_back",
    ),
    (
        "POST `/supervisor/<path>` to a fleet",
        "reach/proxy.rs::a_fleet_answers_with_a_list_of_what_each_device_says",
    ),
    (
        "POST `/application/:id/restart`",
        "reach/proxy.rs::a_fleet_is_restarted_by_each_of_its_devices_that_is_connected",
    ),
    (
        "`/ping`, `/connectivity-check`, `/config`, `/config/vars`, `/os/v1/config/`",
        "clients.rs::clients_learn_what_they_need_to_know_without_a_credential",
    ),
    (
        "`/device-types/v1`",
        "clients.rs::boards_are_listed_and_found_by_any_of_their_names",
    ),
    (
        "`/device-types/v1/:slug/images/:version/download-size`",
        "clients.rs::the_size_of_an_operating_system_is_that_of_its_images",
    ),
    (
        "`/download-config`",
        "clients.rs::the_configuration_of_a_fleet_lets_devices_register",
    ),
    (
        "`/auth/v1/token`",
        "registry.rs::a_token_is_given_to_those_with_a_credential_and_says_what_they_may",
    ),
    (
        "`/auth/v1/public-keys`, `/access/v1/hostos`, `/services/vpn/auth`",
        "clients.rs::only_the_host_of_a_device_learns_who_may_access_it",
    ),
    (
        "`/services/vpn/client-connect` and `client-disconnect`",
        "clients.rs::a_tunnel_server_beside_the_cloud_tells_which_devices_it_holds",
    ),
    (
        "mistake 14, revisions that are given at once",
        "at_once.rs::drafts_that_are_finalised_at_once_get_a_revision_each",
    ),
    (
        "mistake 15, the state of a device that was deleted",
        "device_state_changes.rs::a_caller_without_access_is_refused_and_a_deleted_device_keeps_its_target",
    ),
    (
        "mistake 15, its reports",
        "device_report.rs::a_report_that_is_wrong_or_not_of_the_caller_is_refused_as_a_whole",
    ),
    (
        "mistake 15, its reports by version 2",
        "device_report.rs::version_2_reports_by_numbers_and_a_device_that_is_gone_is_left_in_peace",
    ),
    (
        "mistake 15, its logs",
        "device_logs.rs::a_device_sends_lines_and_people_read_them",
    ),
    (
        "mistake 16, an ETag that stays until something changes",
        "device_state_changes.rs::each_source_of_the_target_state_changes_it_only_for_the_affected_devices",
    ),
    (
        "mistake 17, images of a report",
        "device_report.rs::images_follow_what_the_device_reports",
    ),
    (
        "mistake 17, measurements too often are answered 200",
        "device_report.rs::measurements_alone_are_written_once_a_minute_and_else_with_the_rest",
    ),
    (
        "mistake 18, the heartbeat",
        "device_heartbeat.rs::a_device_that_polls_is_online_and_one_that_stops_is_so_no_more",
    ),
    (
        "mistake 18, the tunnel apart from it",
        "reach/tunnel.rs::a_device_is_connected_for_as_long_as_it_holds_a_tunnel",
    ),
    (
        "isolation",
        "accounts.rs::an_administrator_makes_users_who_see_what_is_theirs",
    ),
    (
        "what online means",
        "device_heartbeat.rs::a_device_that_polls_is_online_and_one_that_stops_is_so_no_more",
    ),
    (
        "operating systems of hosts",
        "device_state.rs::the_supervisor_and_the_operating_system_are_apps_of_their_own",
    ),
    (
        "order by counts",
        "examples.rs::counts_aliases_navigation_rights_and_history",
    ),
    ("one request that makes or changes", "examples.rs::tags"),
    (
        "a change for many devices",
        "reach/push.rs::the_cloud_notifies_only_the_devices_that_a_change_affects",
    ),
    (
        "what the command line asks",
        "clients.rs::boards_are_listed_and_found_by_any_of_their_names",
    ),
    (
        "names and options that are mistyped",
        "examples.rs::likely_mistakes",
    ),
    ("moves and pins", "examples.rs::devices_are_written"),
    (
        "v1 to v7, every operation",
        "version_operations.rs::every_operation_of_the_page_is_done_in_every_version",
    ),
    (
        "v1 to v6, `$metadata`",
        "versions.rs::every_version_describes_itself_and_no_other_is_known",
    ),
    (
        "v1 to v6, addresses of rows and links",
        "versions.rs::rows_and_links_of_older_versions_have_their_addresses",
    ),
    (
        "v1 to v6, every resource",
        "versions.rs::every_resource_of_every_version_is_read_in_its_shape",
    ),
    (
        "v1 to v6, unknown names",
        "versions.rs::older_versions_pass_over_names_that_they_do_not_know_where_rows_are_shown_alone",
    ),
    (
        "v1 to v6, writes",
        "versions.rs::changes_answer_ok_and_creations_return_the_row_in_the_names_of_the_version",
    ),
    (
        "v1 to v6, pins of devices",
        "versions.rs::the_pin_of_a_device_had_another_name",
    ),
    (
        "v1 to v6, release types and contracts",
        "versions.rs::releases_were_of_a_type_and_their_contracts_text",
    ),
    (
        "v1 to v6, resources of then",
        "versions.rs::resources_of_then_are_rows_of_today",
    ),
    (
        "v1 to v5, fleets by user, board and commit",
        "versions.rs::fleets_were_found_by_whom_they_belong_to_and_by_names",
    ),
];

/// Returns the rows of the table: the operation, its first request, the test.
fn proof() -> Vec<[String; 3]> {
    let mut rows: Vec<[String; 3]> = Vec::new();
    for (file, test) in FILES {
        let path = format!("cloud/server/tests/cloud/examples/{file}.txt");
        let text = fs::read_to_string(repository().join(path)).expect(file);
        for block in text.split("\n\n") {
            let mut lines = block.lines();
            let label = lines
                .next()
                .and_then(|line| line.strip_prefix("# "))
                .expect(block);
            let request = lines
                .next()
                .and_then(|line| line.split_once(' '))
                .expect(block)
                .1;
            let what: Vec<String> = match file {
                "operations" => vec![label.split([':', ',']).next().unwrap_or(label).to_owned()],
                _ => {
                    let kind = if file == "mistakes" {
                        "mistake"
                    } else {
                        "example"
                    };
                    let marks = label.split([' ', ',']).filter(|word| !word.is_empty());
                    let marks = marks
                        .take_while(|word| word.trim_start_matches('K').parse::<u32>().is_ok());
                    marks.map(|mark| format!("{kind} {mark}")).collect()
                }
            };
            for what in what {
                if !rows.iter().any(|row| row[0] == what) {
                    let request = request.replace('|', "\\|");
                    rows.push([
                        what,
                        format!("`{request}`"),
                        format!("`examples.rs::{test}`"),
                    ]);
                }
            }
        }
    }
    let beside = BESIDE.iter();
    rows.extend(
        beside.map(|(what, test)| [(*what).to_owned(), String::new(), format!("`{test}`")]),
    );
    rows
}

#[test]
fn the_page_has_each_operation_and_example_with_the_test_that_proves_it() {
    let mut table =
        "| what | the first request of it | test, in `cloud/server/tests/cloud` |\n|---|---|---|\n"
            .to_owned();
    let rows = proof();
    for operation in OPERATIONS {
        assert!(
            rows.iter().any(|row| row[0] == operation),
            "nothing asks for `{operation}`"
        );
    }
    for number in 1..=20 {
        let mistake = format!("mistake {number}");
        assert!(
            rows.iter()
                .any(|row| row[0].split(',').next() == Some(mistake.as_str())),
            "nothing proves that {mistake} is none of ours"
        );
    }
    for [what, request, test] in rows {
        let (file, name) = test.trim_matches('`').split_once("::").expect("a test");
        let path = repository().join("cloud/server/tests/cloud").join(file);
        let source = fs::read_to_string(path).expect(file);
        assert!(
            source.contains(&format!("async fn {name}(")),
            "{what}: no test {test}"
        );
        table.push_str(&format!("| {what} | {request} | {test} |\n"));
    }
    let text = fs::read_to_string(page()).expect("the page");
    let (before, rest) = text
        .split_once("<!-- proof -->\n")
        .expect("the table begins");
    let (_, after) = rest
        .split_once("<!-- end of proof -->")
        .expect("the table ends");
    let written = format!("{before}<!-- proof -->\n\n{table}\n<!-- end of proof -->{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(page(), written).expect("the page is written");
        return;
    }
    assert!(
        text == written,
        "the table of docs/cloud-api.md is an older one (UPDATE_DOCS=1 rewrites it)"
    );
}
