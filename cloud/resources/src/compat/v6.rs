//! Version 6 (docs/spec/cloud.md#older-versions).

use crate::change::Change::{
    self, Add, Also, Hide, HideResource, Many, Only, Recompute, Rename, Retype,
};
use crate::field::{Constant, Input, OnDelete, Type, Writer, link, short, text, word};

const CONTRACT: Type = Type::JsonText { max: 1_000_000 };

/// Compared with version 7.
pub(crate) const V6: &[(&str, Change)] = &[
    // A device's pin had the name that now stands for its target release.
    ("device", Hide("should_be_running__release")),
    (
        "device",
        Rename("is_pinned_on__release", "should_be_running__release"),
    ),
    (
        "device_history",
        Rename("is_pinned_on__release", "should_be_running__release"),
    ),
    ("device", Recompute("overall_status", "overall_status_v6")),
    (
        "device",
        Retype(
            "overall_status",
            Type::Word(&[
                "inactive",
                "post-provisioning",
                "configuring",
                "offline",
                "updating",
                "idle",
            ]),
        ),
    ),
    ("device", Hide("changed_api_heartbeat_state_on__date")),
    // Actors were bare numbers.
    ("user", Retype("actor", Type::Integer)),
    ("device", Retype("actor", Type::Integer)),
    ("application", Retype("actor", Type::Integer)),
    ("release", Retype("contract", CONTRACT)),
    ("image", Retype("image_size", Type::Integer)),
    (
        "release",
        Add(word("release_type", &["final", "draft"])
            .never_null()
            .computed()
            .made_by(Input::ReleaseType)
            .doc("whether it is final")),
    ),
    // Types of boards could be given by name.
    (
        "application",
        Add(short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_for__device_type"))
            .secret()
            .doc("slug or alias, to be written for `is_for__device_type`")),
    ),
    (
        "device",
        Add(short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_of__device_type"))
            .secret()
            .doc("slug or alias, to be written for `is_of__device_type`")),
    ),
    // Devices managed by other devices, which no longer exist.
    (
        "application",
        Add(
            link("depends_on__application", "application", OnDelete::Ignore)
                .constant(Constant::Null)
                .by(Writer::Client),
        ),
    ),
    (
        "device",
        Add(link("is_managed_by__device", "device", OnDelete::Ignore)
            .constant(Constant::Null)
            .by(Writer::Client)),
    ),
    (
        "device",
        Many("manages__device", "device", "is_managed_by__device"),
    ),
    (
        "device",
        Add(short("logs_channel").constant(Constant::Null)),
    ),
    ("device", Add(short("vpn_address").constant(Constant::Null))),
    (
        "image_install",
        Only {
            name: "gateway_download",
            filter: "false",
            doc: "always empty",
        },
    ),
    (
        "device",
        Many("gateway_download", "gateway_download", "device"),
    ),
    // Supervisors were not releases of fleets.
    (
        "release",
        Only {
            name: "supervisor_release",
            filter: "status eq 'success' and belongs_to__application/any(a:a/is_public eq true and a/is_host eq false and endswith(a/slug,'-supervisor') and a/organization/any(o:o/is_system eq true or o/organization_membership/any(m:m/user eq @user)))",
            doc: "a release of a supervisor, of the system's organization or of one of the user's",
        },
    ),
    (
        "supervisor_release",
        Add(text("supervisor_version", 255)
            .never_null()
            .computed_by("raw_version")),
    ),
    (
        "supervisor_release",
        Add(link("is_for__device_type", "device_type", OnDelete::Ignore)
            .computed()
            .doc("the value of its fleet")),
    ),
    (
        "supervisor_release",
        Add(short("image_name").constant(Constant::Null)),
    ),
    (
        "device",
        Add(link(
            "should_be_managed_by__supervisor_release",
            "supervisor_release",
            OnDelete::Refuse,
        )
        .column("should_be_managed_by__release")
        .doc("its supervisor")),
    ),
    (
        "application",
        Only {
            name: "my_application",
            filter: "is_directly_accessible_by__user/any(u:u/id eq @user)",
            doc: "the fleets to which the user has access, without those that are only public",
        },
    ),
    (
        "application_config_variable",
        Also("application__has__name"),
    ),
    ("device_config_variable", Also("device__has__name")),
    ("release_asset", HideResource),
];
