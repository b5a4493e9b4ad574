//! Images and what they are part of (docs/spec/cloud.md#model-image).

use super::release::BUILD_STATUS;
use crate::access::{Methods, Rows};
use crate::field::{Field, OnDelete, Type, Writer, json, link, owner, text, time, word, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![image(), release_image(), image_label()]
}

fn image() -> Resource {
    Resource::new("image", "what a service runs")
        .fields([
            time("start_timestamp").required(),
            time("end_timestamp"),
            text("dockerfile", 1_000_000),
            owner("is_a_build_of__service", "service"),
            Field::new("image_size", Type::BigInteger).doc("bytes"),
            text("is_stored_at__image_location", 255)
                .never_null()
                .by(Writer::Platform)
                .doc("where the registry keeps it"),
            text("project_type", 50),
            text("error_message", 300_000),
            text("build_log", 1_500_000),
            time("push_timestamp").doc("a successful one has it"),
            word("status", BUILD_STATUS).required(),
            text("content_hash", 71).doc("the digest in the registry; devices pull exactly that"),
            json("contract", 1_000_000),
        ])
        .unique(["is_stored_at__image_location"])
        .linked_by("image_install", "installs__image")
        .linked_by("release_image", "image")
        .many("is_part_of__release", "release_image", "image")
        .guests(Methods::READ, Rows::Through("is_a_build_of__service"))
        .people(Methods::ALL, Rows::Through("is_a_build_of__service"))
        .devices(Methods::READ, Rows::Through("is_a_build_of__service"))
}

fn release_image() -> Resource {
    Resource::new("release_image", "says that an image is part of a release")
        .also("image__is_part_of__release")
        .fields([
            link("image", "image", OnDelete::Cascade).required(),
            owner("is_part_of__release", "release"),
        ])
        .link_also("release", "release", "is_part_of__release")
        .link_also("contains__image", "image", "image")
        .unique(["image", "is_part_of__release"])
        .linked_by("image_label", "release_image")
        .linked_by("image_environment_variable", "release_image")
        .guests(Methods::READ, Rows::Through("is_part_of__release"))
        .people(Methods::ALL, Rows::Through("is_part_of__release"))
        .devices(Methods::READ, Rows::Through("is_part_of__release"))
}

fn image_label() -> Resource {
    Resource::new(
        "image_label",
        "a label that a release gives to containers of an image",
    )
    .also("release_image__has__label_name")
    .fields([
        owner("release_image", "release_image"),
        words("label_name", 1, 255).required(),
        text("value", 300).required(),
    ])
    .unique(["release_image", "label_name"])
    .people(Methods::ALL, Rows::Through("release_image"))
    .devices(Methods::READ, Rows::Through("release_image"))
}
