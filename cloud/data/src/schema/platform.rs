//! Tables that no resource is behind: what the platform keeps for itself.

use resources::OnDelete;

use super::declared::{Column, ColumnKind, Link, Table, index};
use crate::names;

/// All of them.
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

/// What the platform remembers of itself, by name: secrets that sign tokens, the statements of views.
fn settings() -> Table {
    let table = "platform_setting";
    Table {
        name: table.to_owned(),
        columns: vec![id(), text("name"), text("value")],
        indexes: vec![index(table, &["name"], true)],
    }
}

/// See [`crate::quota`].
fn quotas() -> Table {
    let table = names::QUOTAS;
    Table {
        name: table.to_owned(),
        columns: vec![
            id(),
            going_with("organization", "organization"),
            text("name"),
            number("value"),
        ],
        indexes: vec![index(table, &["organization", "name"], true)],
    }
}

/// See [`crate::generation`].
fn generations() -> Table {
    let table = names::GENERATIONS;
    Table {
        name: table.to_owned(),
        columns: vec![id(), text("kind"), number("row_id"), number("generation")],
        indexes: vec![index(table, &["kind", "row_id"], true)],
    }
}

/// When a device that polls counts as silent, in milliseconds, and the state that it was given last, as the sum of
/// its numbers (see [`crate::generation`]; nothing where an older version wrote the row). Apart from `device`,
/// whose rows are wide and have many indexes: this is written with each poll.
fn heartbeats() -> Table {
    let table = "device_heartbeat";
    let given = Column {
        nullable: true,
        ..number("given")
    };
    Table {
        name: table.to_owned(),
        columns: vec![id(), of_device(), number("deadline"), given],
        indexes: vec![
            index(table, &["device"], true),
            index(table, &["deadline"], false),
        ],
    }
}

/// The latest lines that the services of devices wrote.
fn log_lines() -> Table {
    let table = "device_log";
    let flag = |name| Column {
        kind: ColumnKind::Flag,
        ..text(name)
    };
    let service = Column {
        nullable: true,
        ..number("service_id")
    };
    Table {
        name: table.to_owned(),
        columns: vec![
            id(),
            of_device(),
            number("created_at"),
            number("timestamp"),
            text("message"),
            flag("is_system"),
            flag("is_std_err"),
            service,
        ],
        indexes: vec![
            index(table, &["device", "id"], false),
            index(table, &["created_at"], false),
        ],
    }
}

/// See [`crate::file`]. A file that is being uploaded is of no asset yet.
fn files() -> Table {
    let table = names::FILES;
    let asset = Column {
        nullable: true,
        ..going_with("release_asset", "release_asset")
    };
    Table {
        name: table.to_owned(),
        columns: vec![id(), asset, number("created_at")],
        indexes: vec![index(table, &["release_asset"], false)],
    }
}

fn pieces() -> Table {
    let table = names::FILE_PIECES;
    let bytes = Column {
        kind: ColumnKind::Bytes,
        ..text("bytes")
    };
    Table {
        name: table.to_owned(),
        columns: vec![
            id(),
            going_with("file", names::FILES),
            number("number"),
            bytes,
        ],
        indexes: vec![index(table, &["file", "number"], true)],
    }
}

/// See [`crate::upload`].
fn uploads() -> Table {
    let table = names::UPLOADS;
    Table {
        name: table.to_owned(),
        columns: vec![
            id(),
            text("uuid"),
            going_with("file", names::FILES),
            going_with("release_asset", "release_asset"),
            text("filename"),
            text("content_type"),
            number("size"),
            number("chunk_size"),
        ],
        indexes: vec![
            index(table, &["uuid"], true),
            index(table, &["file"], true),
            index(table, &["release_asset"], true),
        ],
    }
}

fn parts() -> Table {
    let table = names::UPLOAD_PARTS;
    let etag = Column {
        nullable: true,
        ..text("etag")
    };
    Table {
        name: table.to_owned(),
        columns: vec![
            id(),
            going_with("upload", names::UPLOADS),
            number("number"),
            number("attempt"),
            etag,
        ],
        indexes: vec![index(table, &["upload", "number"], true)],
    }
}

/// When the wrong passwords that were given for a user are forgotten, in milliseconds. Each one puts it off.
fn sign_in_failures() -> Table {
    let table = "sign_in_failure";
    Table {
        name: table.to_owned(),
        columns: vec![id(), going_with("user", "user"), number("forgotten_at")],
        indexes: vec![index(table, &["user"], true)],
    }
}

/// See [`crate::image_garbage`]. Times are in milliseconds.
fn image_garbage() -> Table {
    let table = names::IMAGE_GARBAGE;
    let content_hash = Column {
        nullable: true,
        ..text("content_hash")
    };
    Table {
        name: table.to_owned(),
        columns: vec![
            id(),
            text("location"),
            content_hash,
            number("gone_at"),
            number("due_at"),
            number("failures"),
        ],
        indexes: vec![
            index(table, &["location"], true),
            index(table, &["due_at"], false),
            index(table, &["gone_at"], false),
        ],
    }
}

fn text(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        kind: ColumnKind::Text,
        nullable: false,
        default: None,
        link: None,
    }
}

fn number(name: &str) -> Column {
    Column {
        kind: ColumnKind::Number,
        ..text(name)
    }
}

fn id() -> Column {
    number("id")
}

fn of_device() -> Column {
    going_with("device", "device")
}

/// The number of a row of another table, with which this one goes.
fn going_with(name: &str, to: &'static str) -> Column {
    Column {
        link: Some(Link {
            to,
            on_delete: OnDelete::Cascade,
        }),
        ..number(name)
    }
}
