//! Fleets (docs/spec/cloud.md#model-fleet).

use crate::access::{Action, Methods, Role, Rows};
use crate::check::Check;
use crate::field::{
    Constant, Default, OnDelete, Writer, flag, int, link, owner, short, time, word, words,
};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![application(), hosted_on(), public_device()]
}

/// Fleets of the user's organizations.
const OF_MEMBERS: Rows =
    Rows::Where("organization/any(o:o/organization_membership/any(m:m/user eq @user))");

/// Those, and fleets that are shared with the user, individually or as a member of a team.
const REACHED: Rows = Rows::Where(
    "organization/any(o:o/organization_membership/any(m:m/user eq @user)) \
     or user_application_membership/any(s:s/user eq @user) \
     or team_application_access/any(t:t/team/any(g:g/team_membership/any(m:m/user eq @user)))",
);

/// The reached fleets on whose devices the user may act.
const OPERATED: Rows = Rows::Where(
    "organization/any(o:o/organization_membership/any(m:m/user eq @user)) \
     or user_application_membership/any(s:s/user eq @user and not(s/application_membership_role/any(r:r/name eq 'observer'))) \
     or team_application_access/any(t:not(t/application_membership_role/any(r:r/name eq 'observer')) and t/team/any(g:g/team_membership/any(m:m/user eq @user)))",
);

/// The reached fleets that the user may change; shares from before roles existed have none.
const DEVELOPED: Rows = Rows::Where(
    "organization/any(o:o/organization_membership/any(m:m/user eq @user)) \
     or user_application_membership/any(s:s/user eq @user and not(s/application_membership_role/any(r:r/name ne 'developer'))) \
     or team_application_access/any(t:not(t/application_membership_role/any(r:r/name ne 'developer')) and t/team/any(g:g/team_membership/any(m:m/user eq @user)))",
);

fn application() -> Resource {
    Resource::new("application", "a fleet: devices that run the same services")
        .fields([
            link("actor", "actor", OnDelete::Refuse).owned(),
            words("uuid", 32, 32)
                .check(Check::FleetUuid)
                .default(Default::Uuid)
                .by(Writer::Creator),
            words("app_name", 4, 100).check(Check::FleetName).required(),
            words("slug", 6, 321)
                .never_null()
                .by(Writer::Platform)
                .doc("handle of the organization, `/`, name of the fleet, in lower case; unique"),
            owner("organization", "organization"),
            link("is_for__device_type", "device_type", OnDelete::Refuse).required(),
            link("application_type", "application_type", OnDelete::Refuse)
                .never_null()
                .doc("by default the one with the slug `default`"),
            link("should_be_running__release", "release", OnDelete::Refuse)
                .doc("the target release"),
            flag("should_track_latest_release")
                .default(Default::Boolean(true))
                .doc("whether each new release becomes the target"),
            word("is_of__class", &["fleet", "block", "app"]).default(Default::Text("fleet")),
            flag("is_public").doc("everybody may read it and its releases"),
            flag("is_host").doc("its releases are operating systems"),
            flag("is_archived").doc("for people"),
            flag("is_discoverable").doc("for people"),
            short("is_stored_at__repository_url").doc("where its source is"),
            time("is_accessible_by_support_until__date").doc("until when support may see it"),
        ])
        .unique(["uuid"])
        .unique(["slug"])
        .unique(["actor"])
        .index(["app_name"])
        .many("owns__device", "device", "belongs_to__application")
        .many(
            "owns__public_device",
            "public_device",
            "belongs_to__application",
        )
        .many(
            "can_use__application_as_host",
            "application__can_use__application_as_host",
            "application",
        )
        .linked_by("team_application_access", "grants_access_to__application")
        .linked_by("application_invite", "is_invited_to__application")
        .many("owns__release", "release", "belongs_to__application")
        .linked_by("service", "application")
        .linked_by("application_tag", "application")
        .linked_by("application_config_variable", "application")
        .linked_by("application_environment_variable", "application")
        .linked_by("build_environment_variable", "application")
        .linked_by("user_application_membership", "is_member_of__application")
        .through(
            "is_directly_accessible_by__user",
            "user",
            "user__has_direct_access_to__application",
            "has_direct_access_to__application",
            "user",
        )
        .guests(Methods::READ, Rows::Where("is_public eq true"))
        .people(Methods::READ, REACHED)
        .people(Methods::UPDATE, DEVELOPED)
        .people(Methods::CREATE.and(Methods::DELETE), OF_MEMBERS)
        .devices(
            Methods::READ,
            Rows::Where("owns__device/any(d:d/actor eq @actor)"),
        )
        .action(Role::User, Action::CreateProvisioningKey, DEVELOPED)
        .people_action(Action::SupervisorProxyWrite, OPERATED)
        // The target state contains variables, which are still secret if the fleet is public.
        .people_action(Action::ReadTargetState, DEVELOPED)
        .action(
            Role::DeviceKey,
            Action::ReadTargetState,
            Rows::Where("owns__device/any(d:d/actor eq @actor)"),
        )
}

fn hosted_on() -> Resource {
    Resource::new(
        "application__can_use__application_as_host",
        "says that devices of a fleet may have an operating system of that other fleet",
    )
    .fields([
        owner("application", "application"),
        link(
            "can_use__application_as_host",
            "application",
            OnDelete::Cascade,
        )
        .required(),
    ])
    .unique(["application", "can_use__application_as_host"])
    .people(Methods::ALL, Rows::Through("application"))
}

fn public_device() -> Resource {
    Resource::new(
        "public_device",
        "what everybody may know of a device of a public fleet that can be discovered",
    )
    .view(
        "SELECT CAST(NULL AS BIGINT) AS id, d.belongs_to__application AS belongs_to__application, \
         d.is_of__device_type AS is_of__device_type, \
         CASE WHEN d.is_connected_to_vpn = TRUE OR d.api_heartbeat_state = 'online' THEN TRUE ELSE FALSE END AS was_recently_online \
         FROM device AS d JOIN application AS a ON a.id = d.belongs_to__application \
         WHERE a.is_public = TRUE AND a.is_discoverable = TRUE AND d.is_active = TRUE",
    )
    .fields([
        int("id").by(Writer::Platform).doc("always null"),
        link("belongs_to__application", "application", OnDelete::Ignore)
            .never_null()
            .by(Writer::Platform),
        link("is_of__device_type", "device_type", OnDelete::Ignore)
            .never_null()
            .by(Writer::Platform),
        flag("was_recently_online").by(Writer::Platform),
        // The location of a device is nobody else's business.
        short("latitude").constant(Constant::Null),
        short("longitude").constant(Constant::Null),
    ])
    .guests(Methods::READ, Rows::All)
}
