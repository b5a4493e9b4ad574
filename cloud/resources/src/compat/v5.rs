//! Version 5, which also serves versions 1 to 4 (docs/spec/cloud.md#older-versions).

use crate::change::Change::{self, Add, Hide, MadeBy, Many};
use crate::field::{Input, OnDelete, link, short, text};

/// Compared with version 6.
pub(crate) const V5: &[(&str, Change)] = &[
    // Fleets belonged to users.
    (
        "application",
        Add(link("user", "user", OnDelete::Ignore)
            .computed()
            .doc("the first member of its organization")),
    ),
    ("user", Many("application", "application", "user")),
    (
        "application",
        MadeBy("organization", Input::OwnOrganization),
    ),
    // Types of boards, and releases, could also be read by name.
    ("application", Hide("device_type")),
    (
        "application",
        Add(short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_for__device_type"))
            .doc("slug of the type of its devices")),
    ),
    ("device", Hide("device_type")),
    (
        "device",
        Add(short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_of__device_type"))
            .doc("slug of its type")),
    ),
    (
        "application",
        Add(text("commit", 40)
            .computed()
            .made_by(Input::Commit("should_be_running__release"))
            .doc("commit of the target release")),
    ),
    (
        "device",
        Add(text("is_on__commit", 40)
            .computed()
            .doc("commit of the release that it runs")),
    ),
];
