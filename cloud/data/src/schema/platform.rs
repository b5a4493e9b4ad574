//! Tables without a resource, for the platform's own data.

use super::table::{Column, ColumnKind, Table};

/// Returns all of them.
pub(super) fn tables() -> [Table; 11] {
    [
        quotas(),
        settings(),
        generations(),
        heartbeats(),
        log_lines(),
        files(),
        pieces(),
        uploads(),
        parts(),
        sign_in_failures(),
        image_garbage(),
    ]
}

/// The platform's own settings, by name: secrets that sign tokens, the statements of views.
fn settings() -> Table {
    Table::new("platform_setting", [text("name"), text("value")]).unique(&["name"])
}

/// See [`crate::quota`].
fn quotas() -> Table {
    let columns = [
        going_with("organization", "organization"),
        text("name"),
        number("value"),
    ];
    Table::new("organization_quota", columns).unique(&["organization", "name"])
}

/// See [`crate::generation`].
fn generations() -> Table {
    let columns = [text("kind"), number("row_id"), number("generation")];
    Table::new("state_generation", columns).unique(&["kind", "row_id"])
}

/// When a polling device counts as silent, in milliseconds, and the last state sent to it, as the sum of its numbers
/// (see [`crate::generation`]; null if an older version wrote the row). Separate from `device`, whose rows are wide and
/// have many indexes, because this is written with each poll.
fn heartbeats() -> Table {
    let columns = [
        device_link(),
        number("deadline"),
        number("given").nullable(),
    ];
    Table::new("device_heartbeat", columns)
        .unique(&["device"])
        .index(&["deadline"])
}

/// The latest log lines of the services on devices.
fn log_lines() -> Table {
    let columns = [
        device_link(),
        number("created_at"),
        number("timestamp"),
        text("message"),
        Column::new("is_system", ColumnKind::Flag),
        Column::new("is_std_err", ColumnKind::Flag),
        number("service_id").nullable(),
    ];
    Table::new("device_log", columns)
        .index(&["device", "id"])
        .index(&["created_at"])
}

/// See [`crate::file`]. A file that is being uploaded belongs to no asset yet.
fn files() -> Table {
    let asset = going_with("release_asset", "release_asset").nullable();
    Table::new("release_asset_file", [asset, number("created_at")]).index(&["release_asset"])
}

fn pieces() -> Table {
    let columns = [
        going_with("file", "release_asset_file"),
        number("number"),
        Column::new("bytes", ColumnKind::Bytes),
    ];
    Table::new("release_asset_piece", columns).unique(&["file", "number"])
}

/// See [`crate::upload`].
fn uploads() -> Table {
    let columns = [
        text("uuid"),
        going_with("file", "release_asset_file"),
        going_with("release_asset", "release_asset"),
        text("filename"),
        text("content_type"),
        number("size"),
        number("chunk_size"),
    ];
    Table::new("release_asset_upload", columns)
        .unique(&["uuid"])
        .unique(&["file"])
        .unique(&["release_asset"])
}

fn parts() -> Table {
    let columns = [
        going_with("upload", "release_asset_upload"),
        number("number"),
        number("attempt"),
        text("etag").nullable(),
    ];
    Table::new("release_asset_part", columns).unique(&["upload", "number"])
}

/// When failed sign-ins of a user are forgotten, in milliseconds. Each wrong password extends the time.
fn sign_in_failures() -> Table {
    let columns = [going_with("user", "user"), number("forgotten_at")];
    Table::new("sign_in_failure", columns).unique(&["user"])
}

/// See [`crate::image_garbage`]. Times are in milliseconds.
fn image_garbage() -> Table {
    let columns = [
        text("location"),
        text("content_hash").nullable(),
        number("gone_at"),
        number("due_at"),
        number("failures"),
    ];
    Table::new("image_garbage", columns)
        .unique(&["location"])
        .index(&["due_at"])
        .index(&["gone_at"])
}

fn text(name: &'static str) -> Column {
    Column::new(name, ColumnKind::Text)
}

fn number(name: &'static str) -> Column {
    Column::new(name, ColumnKind::Number)
}

fn device_link() -> Column {
    going_with("device", "device")
}

/// Returns a link to a row of another table; the row is deleted together with that one.
fn going_with(name: &'static str, to: &'static str) -> Column {
    number(name).going_with(to)
}
