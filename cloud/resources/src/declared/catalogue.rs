//! Kinds of boards, processors and fleets, which come with the platform (docs/spec/cloud.md#model-catalogue).

use crate::access::{Methods, Rows};
use crate::field::{OnDelete, flag, int, json, link, short, text, word, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![
        application_type(),
        cpu_architecture(),
        device_manufacturer(),
        device_family(),
        device_type(),
        device_type_alias(),
    ]
}

fn application_type() -> Resource {
    Resource::new("application_type", "what a fleet may do")
        .fields([
            words("name", 1, 20).required(),
            words("slug", 1, 30).required(),
            text("description", 200),
            flag("supports_web_url"),
            flag("supports_multicontainer"),
            flag("supports_gateway_mode"),
            flag("requires_payment"),
            flag("is_legacy"),
            text("needs__os_version_range", 50)
                .doc("which versions of the operating system its devices may have"),
            int("maximum_device_count"),
        ])
        .unique(["slug"])
        .many("is_of__application", "application", "application_type")
        .people(Methods::READ, Rows::All)
}

fn cpu_architecture() -> Resource {
    Resource::new("cpu_architecture", "a processor architecture")
        .field(
            word(
                "slug",
                &["rpi", "armv7hf", "aarch64", "i386-nlp", "i386", "amd64"],
            )
            .required(),
        )
        .unique(["slug"])
        .many(
            "is_supported_by__device_type",
            "device_type",
            "is_of__cpu_architecture",
        )
        .linked_by("device_type", "is_of__cpu_architecture")
        .guests(Methods::READ, Rows::All)
}

fn device_manufacturer() -> Resource {
    Resource::new("device_manufacturer", "who makes boards")
        .fields([
            words("slug", 1, 50).required(),
            words("name", 1, 100).required(),
        ])
        .unique(["slug"])
        .many(
            "manufactures__device_family",
            "device_family",
            "is_manufactured_by__device_manufacturer",
        )
        .guests(Methods::READ, Rows::All)
}

fn device_family() -> Resource {
    Resource::new("device_family", "a family of boards")
        .fields([
            words("slug", 1, 50).required(),
            words("name", 1, 50).required(),
            link(
                "is_manufactured_by__device_manufacturer",
                "device_manufacturer",
                OnDelete::SetNull,
            ),
        ])
        .unique(["slug"])
        .linked_by("device_type", "belongs_to__device_family")
        .guests(Methods::READ, Rows::All)
}

fn device_type() -> Resource {
    Resource::new("device_type", "a type of board")
        .fields([
            short("slug").required(),
            short("name").required(),
            link(
                "is_of__cpu_architecture",
                "cpu_architecture",
                OnDelete::Refuse,
            )
            .required(),
            text("logo", 400_000),
            json("contract", 5_000_000),
            link(
                "belongs_to__device_family",
                "device_family",
                OnDelete::SetNull,
            ),
            flag("is_private"),
        ])
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
        .linked_by("device", "is_of__device_type")
        .linked_by("device_type_alias", "device_type")
        .many(
            "is_referenced_by__alias",
            "device_type_alias",
            "device_type",
        )
        .guests(Methods::READ, Rows::All)
}

fn device_type_alias() -> Resource {
    Resource::new(
        "device_type_alias",
        "a name of a device type; its slug is one of them",
    )
    .also("device_type__is_referenced_by__alias")
    .fields([
        link("device_type", "device_type", OnDelete::Cascade).required(),
        words("is_referenced_by__alias", 1, 255).required(),
    ])
    .unique(["is_referenced_by__alias"])
    .unique(["device_type", "is_referenced_by__alias"])
    .guests(Methods::READ, Rows::All)
}
