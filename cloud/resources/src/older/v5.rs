//! Version 5, which versions 1 to 4 answer as (docs/spec/cloud.md#older-versions).

use crate::change::Change::{self, Add, Hide, MadeBy, Many};
use crate::field::{Input, OnDelete, link, short, text};

/// Against version 6.
pub(crate) const V5: &[Change] = &[
    // Fleets belonged to users.
    Add {
        of: "application",
        field: link("user", "user", OnDelete::Ignore)
            .computed()
            .doc("the first member of its organization"),
    },
    Many {
        of: "user",
        name: "application",
        to: "application",
        by: "user",
    },
    MadeBy {
        of: "application",
        field: "organization",
        input: Input::OwnOrganization,
    },
    // Types of boards, and releases, were read by their names as well.
    Hide {
        of: "application",
        field: "device_type",
    },
    Add {
        of: "application",
        field: short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_for__device_type"))
            .doc("slug of the type of its devices"),
    },
    Hide {
        of: "device",
        field: "device_type",
    },
    Add {
        of: "device",
        field: short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_of__device_type"))
            .doc("slug of its type"),
    },
    Add {
        of: "application",
        field: text("commit", 40)
            .computed()
            .made_by(Input::Commit("should_be_running__release"))
            .doc("commit of the target release"),
    },
    Add {
        of: "device",
        field: text("is_on__commit", 40)
            .computed()
            .doc("commit of the release that it runs"),
    },
];
