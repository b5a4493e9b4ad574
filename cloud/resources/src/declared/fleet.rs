//! Fleets and what belongs to them (cloud behaviour 1.2 and 1.3).

use crate::access::{Methods, Role, Rows};
use crate::field::{Default, OnDelete, Writer, flag, link, short, text, time, word, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![application(), direct_access()]
}

fn application() -> Resource {
    Resource::new("application", "a fleet: devices that run the same services")
        .field(
            link("actor", "actor", OnDelete::Refuse)
                .never_null()
                .by(Writer::Platform),
        )
        .field(
            words("uuid", 32, 32)
                .default(Default::Uuid)
                .by(Writer::Creator),
        )
        .field(
            words("app_name", 4, 100)
                .required()
                .doc("letters, digits, `-` and `_`"),
        )
        .field(
            text("slug", 321)
                .never_null()
                .by(Writer::Platform)
                .doc("organization/name, unique"),
        )
        .field(link("organization", "organization", OnDelete::Cascade).required())
        .field(link("is_for__device_type", "device_type", OnDelete::Refuse).required())
        .field(
            link("should_be_running__release", "release", OnDelete::Refuse)
                .doc("the target release"),
        )
        .field(flag("should_track_latest_release").default(Default::Boolean(true)))
        .field(word("is_of__class", &["fleet", "block", "app"]).default(Default::Text("fleet")))
        .field(flag("is_public"))
        .field(flag("is_host"))
        .field(flag("is_archived"))
        .field(flag("is_discoverable"))
        .field(short("is_stored_at__repository_url"))
        .field(time("is_accessible_by_support_until__date"))
        .unique(["uuid"])
        .unique(["slug"])
        .unique(["actor"])
        .many("owns__device", "device", "belongs_to__application")
        .many("owns__release", "release", "belongs_to__application")
        .through(
            "is_directly_accessible_by__user",
            "user",
            "user__has_direct_access_to__application",
            "has_direct_access_to__application",
            "user",
        )
        .grant(Role::Guest, Methods::READ, Rows::Where("is_public eq true"))
        .people(
            Methods::ALL,
            Rows::Where("organization/any(o:o/organization_membership/any(m:m/user eq @user))"),
        )
        .grant(
            Role::DeviceKey,
            Methods::READ,
            Rows::Where("owns__device/any(d:d/actor eq @actor)"),
        )
}

fn direct_access() -> Resource {
    Resource::new(
        "user__has_direct_access_to__application",
        "which fleets a user reaches by more than that they are public",
    )
    .view(
        "SELECT NULL AS id, m.\"user\" AS \"user\", a.id AS has_direct_access_to__application \
         FROM organization_membership AS m \
         JOIN application AS a ON a.organization = m.is_member_of__organization",
    )
    .field(link("user", "user", OnDelete::Ignore).never_null())
    .field(
        link(
            "has_direct_access_to__application",
            "application",
            OnDelete::Ignore,
        )
        .never_null(),
    )
    .people(Methods::READ, Rows::Where("user eq @user"))
}
