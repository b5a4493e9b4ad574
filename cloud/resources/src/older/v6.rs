//! Version 6 (docs/spec/cloud.md#older-versions).

use crate::change::Change::{
    self, Add, Also, Hide, HideResource, Many, Only, Recompute, Rename, Retype,
};
use crate::field::{Constant, Input, OnDelete, Type, Writer, link, short, text, word};

const CONTRACT: Type = Type::JsonText { max: 1_000_000 };

/// Against version 7.
pub(crate) const V6: &[Change] = &[
    // A device's pin had the name that its release as a whole has today.
    Hide {
        of: "device",
        field: "should_be_running__release",
    },
    Rename {
        of: "device",
        field: "is_pinned_on__release",
        to: "should_be_running__release",
    },
    Rename {
        of: "device_history",
        field: "is_pinned_on__release",
        to: "should_be_running__release",
    },
    Recompute {
        of: "device",
        field: "overall_status",
        by: "overall_status_v6",
    },
    Retype {
        of: "device",
        field: "overall_status",
        kind: Type::Word(&[
            "inactive",
            "post-provisioning",
            "configuring",
            "offline",
            "updating",
            "idle",
        ]),
    },
    Hide {
        of: "device",
        field: "changed_api_heartbeat_state_on__date",
    },
    // Actors were bare numbers.
    Retype {
        of: "user",
        field: "actor",
        kind: Type::Integer,
    },
    Retype {
        of: "device",
        field: "actor",
        kind: Type::Integer,
    },
    Retype {
        of: "application",
        field: "actor",
        kind: Type::Integer,
    },
    Retype {
        of: "release",
        field: "contract",
        kind: CONTRACT,
    },
    Retype {
        of: "image",
        field: "image_size",
        kind: Type::Integer,
    },
    Add {
        of: "release",
        field: word("release_type", &["final", "draft"])
            .never_null()
            .computed()
            .made_by(Input::ReleaseType)
            .doc("whether it is final"),
    },
    // Types of boards were accepted by their names.
    Add {
        of: "application",
        field: short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_for__device_type"))
            .secret()
            .doc("slug or alias, to be written for `is_for__device_type`"),
    },
    Add {
        of: "device",
        field: short("device_type")
            .computed()
            .made_by(Input::DeviceType("is_of__device_type"))
            .secret()
            .doc("slug or alias, to be written for `is_of__device_type`"),
    },
    // Devices below devices, which are no more.
    Add {
        of: "application",
        field: link("depends_on__application", "application", OnDelete::Ignore)
            .constant(Constant::Null)
            .by(Writer::Client),
    },
    Add {
        of: "device",
        field: link("is_managed_by__device", "device", OnDelete::Ignore)
            .constant(Constant::Null)
            .by(Writer::Client),
    },
    Many {
        of: "device",
        name: "manages__device",
        to: "device",
        by: "is_managed_by__device",
    },
    Add {
        of: "device",
        field: short("logs_channel").constant(Constant::Null),
    },
    Add {
        of: "device",
        field: short("vpn_address").constant(Constant::Null),
    },
    Only {
        name: "gateway_download",
        of: "image_install",
        filter: "false",
        doc: "always empty",
    },
    Many {
        of: "device",
        name: "gateway_download",
        to: "gateway_download",
        by: "device",
    },
    // Supervisors were no releases of fleets.
    Only {
        name: "supervisor_release",
        of: "release",
        filter: "status eq 'success' and belongs_to__application/any(a:a/is_public eq true and a/is_host eq false and endswith(a/slug,'-supervisor') and a/organization/any(o:o/is_system eq true or o/organization_membership/any(m:m/user eq @user)))",
        doc: "a release of a supervisor, of the system's organization or of one of the user's",
    },
    Add {
        of: "supervisor_release",
        field: text("supervisor_version", 255)
            .never_null()
            .computed_by("raw_version"),
    },
    Add {
        of: "supervisor_release",
        field: link("is_for__device_type", "device_type", OnDelete::Ignore)
            .computed()
            .doc("the value of its fleet"),
    },
    Add {
        of: "supervisor_release",
        field: short("image_name").constant(Constant::Null),
    },
    Add {
        of: "device",
        field: link(
            "should_be_managed_by__supervisor_release",
            "supervisor_release",
            OnDelete::Refuse,
        )
        .column("should_be_managed_by__release")
        .doc("its supervisor"),
    },
    Only {
        name: "my_application",
        of: "application",
        filter: "is_directly_accessible_by__user/any(u:u/id eq @user)",
        doc: "the fleets to which the user has access, without those that are only public",
    },
    Also {
        of: "application_config_variable",
        name: "application__has__name",
    },
    Also {
        of: "device_config_variable",
        name: "device__has__name",
    },
    HideResource("release_asset"),
];
