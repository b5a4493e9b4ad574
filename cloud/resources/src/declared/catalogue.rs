//! Kinds of boards and processors (cloud behaviour 1.4).

use crate::access::{Methods, Role, Rows};
use crate::field::{OnDelete, json, link, short, text};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![cpu_architecture(), device_type()]
}

fn cpu_architecture() -> Resource {
    Resource::new("cpu_architecture", "a kind of processor")
        .field(short("slug").required())
        .unique(["slug"])
        .many(
            "is_supported_by__device_type",
            "device_type",
            "is_of__cpu_architecture",
        )
        .many("device_type", "device_type", "is_of__cpu_architecture")
        .grant(Role::Guest, Methods::READ, Rows::All)
}

fn device_type() -> Resource {
    Resource::new("device_type", "a kind of board")
        .field(short("slug").required())
        .field(short("name").required())
        .field(
            link(
                "is_of__cpu_architecture",
                "cpu_architecture",
                OnDelete::Refuse,
            )
            .required(),
        )
        .field(text("logo", 400_000))
        .field(json("contract", 5_000_000))
        .unique(["slug"])
        .link_also(
            "supports__cpu_architecture",
            "cpu_architecture",
            "is_of__cpu_architecture",
        )
        .many(
            "is_default_for__application",
            "application",
            "is_for__device_type",
        )
        .many("describes__device", "device", "is_of__device_type")
        .grant(Role::Guest, Methods::READ, Rows::All)
}
