//! Labels of fleets, releases and devices (docs/spec/cloud.md#model-tags).

use crate::access::{Methods, Rows};
use crate::check::Check;
use crate::field::{owner, text, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![
        tag(
            "application_tag",
            "a label of a fleet",
            "application",
            100,
            1000,
        )
        .also("application__has__tag_key")
        .guests(Methods::READ, Rows::Through("application"))
        .devices(Methods::READ, Rows::Through("application")),
        tag("release_tag", "a label of a release", "release", 164, 1000)
            .also("release__has__tag_key")
            .guests(Methods::READ, Rows::Through("release"))
            .devices(Methods::READ, Rows::Through("release")),
        tag("device_tag", "a label of a device", "device", 100, 10_000)
            .also("device__has__tag_key")
            .devices(Methods::ALL, Rows::Through("device")),
    ]
}

fn tag(
    name: &'static str,
    doc: &'static str,
    of: &'static str,
    longest_key: usize,
    longest_value: usize,
) -> Resource {
    Resource::new(name, doc)
        .fields([
            owner(of, of),
            words("tag_key", 1, longest_key)
                .check(Check::TagKey)
                .required(),
            text("value", longest_value).required(),
        ])
        .unique([of, "tag_key"])
        .people(Methods::ALL, Rows::Through(of))
}
