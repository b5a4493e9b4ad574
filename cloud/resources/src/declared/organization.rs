//! Organizations, their members, and direct access to single fleets (docs/spec/cloud.md#model-organizations,
//! docs/spec/cloud.md#model-direct-access).

use crate::access::{Methods, Role, Rows};
use crate::check::Check;
use crate::field::{OnDelete, Writer, flag, int, link, short, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![
        organization(),
        organization_membership_role(),
        organization_membership(),
        user_application_membership(),
        direct_access(),
    ]
}

fn organization() -> Resource {
    Resource::new("organization", "the owner of fleets")
        .fields([
            words("name", 1, 100).required(),
            words("handle", 1, 100)
                .never_null()
                .check(Check::Handle)
                .doc("unique; derived from the name by default"),
            flag("is_system")
                .by(Writer::Platform)
                .doc("whether it is the cloud's own, whose fleets contain supervisors and operating systems for all devices"),
        ])
        .unique(["handle"])
        .linked_by("application", "organization")
        .linked_by("organization_membership", "is_member_of__organization")
        .many(
            "includes__user",
            "organization_membership",
            "is_member_of__organization",
        )
        .linked_by("team", "belongs_to__organization")
        .many("owns__team", "team", "belongs_to__organization")
        .linked_by("organization_invite", "is_invited_to__organization")
        .people(
            Methods::READ,
            Rows::Where("organization_membership/any(m:m/user eq @user)"),
        )
        .people(
            Methods::UPDATE.and(Methods::DELETE),
            Rows::Where(
                "organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator'))",
            ),
        )
        // The creator of an organization is its first administrator.
        .grant(Role::User, Methods::CREATE, Rows::All)
}

fn organization_membership_role() -> Resource {
    Resource::new(
        "organization_membership_role",
        "what a member may do: `administrator` or `member`",
    )
    .field(short("name").required())
    .unique(["name"])
    .linked_by("organization_membership", "organization_membership_role")
    .people(Methods::READ, Rows::All)
}

fn organization_membership() -> Resource {
    Resource::new(
        "organization_membership",
        "says that a user belongs to an organization",
    )
    .also("user__is_member_of__organization")
    .fields([
        link("user", "user", OnDelete::Cascade)
            .required()
            .by(Writer::Creator),
        link(
            "is_member_of__organization",
            "organization",
            OnDelete::Cascade,
        )
        .required()
        .by(Writer::Creator),
        link(
            "organization_membership_role",
            "organization_membership_role",
            OnDelete::Refuse,
        )
        .never_null()
        .doc("`member` by default"),
    ])
    .link_also("organization", "organization", "is_member_of__organization")
    .link_also("includes__user", "user", "user")
    .unique(["user", "is_member_of__organization"])
    // Members join by accepting invites, which does not create a row here by request.
    .people(
        Methods::READ.and(Methods::UPDATE).and(Methods::DELETE),
        Rows::Through("is_member_of__organization"),
    )
    // Members may leave.
    .people(
        Methods::READ.and(Methods::DELETE),
        Rows::Where("user eq @user"),
    )
}

fn user_application_membership() -> Resource {
    Resource::new(
        "user_application_membership",
        "says that a fleet is shared with a user of another organization",
    )
    .also("user__is_member_of__application")
    .fields([
        link("user", "user", OnDelete::Cascade)
            .required()
            .by(Writer::Creator)
            .doc("a new row may give `username` instead: of somebody who accepted an invite of the organization"),
        link("is_member_of__application", "application", OnDelete::Cascade).required().by(Writer::Creator),
        super::team::role(),
    ])
    .link_also("application", "application", "is_member_of__application")
    .unique(["user", "is_member_of__application"])
    .people(Methods::READ, Rows::Through("is_member_of__application"))
    .people(
        Methods::UPDATE.and(Methods::DELETE),
        Rows::Where(
            "is_member_of__application/any(a:a/organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator'))))",
        ),
    )
    // A fleet can be shared with others only by an invite, which they accept.
    .people(
        Methods::CREATE,
        Rows::Where(
            "is_member_of__application/any(a:a/organization/any(o:\
             o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')) \
             and (o/organization_membership/any(k:k/user eq user) \
             or o/application/any(f:f/user_application_membership/any(k:k/user eq user and k/id ne id)) \
             or o/team/any(t:t/team_membership/any(k:k/user eq user)))))",
        ),
    )
    .people(Methods::DELETE, Rows::Where("user eq @user"))
}

fn direct_access() -> Resource {
    Resource::new(
        "user__has_direct_access_to__application",
        "the fleets to which a user has access, without those that are only public",
    )
    .view(
        "SELECT CAST(NULL AS BIGINT) AS id, m.\"user\" AS \"user\", a.id AS has_direct_access_to__application \
         FROM organization_membership AS m \
         JOIN application AS a ON a.organization = m.is_member_of__organization \
         UNION ALL \
         SELECT CAST(NULL AS BIGINT) AS id, s.\"user\" AS \"user\", s.is_member_of__application AS has_direct_access_to__application \
         FROM user_application_membership AS s \
         WHERE NOT EXISTS (SELECT 1 FROM organization_membership AS m \
         JOIN application AS a ON a.organization = m.is_member_of__organization \
         WHERE m.\"user\" = s.\"user\" AND a.id = s.is_member_of__application) \
         UNION ALL \
         SELECT DISTINCT CAST(NULL AS BIGINT) AS id, g.\"user\" AS \"user\", t.grants_access_to__application AS has_direct_access_to__application \
         FROM team_membership AS g \
         JOIN team_application_access AS t ON t.team = g.is_member_of__team \
         WHERE NOT EXISTS (SELECT 1 FROM organization_membership AS m \
         JOIN application AS a ON a.organization = m.is_member_of__organization \
         WHERE m.\"user\" = g.\"user\" AND a.id = t.grants_access_to__application) \
         AND NOT EXISTS (SELECT 1 FROM user_application_membership AS s \
         WHERE s.\"user\" = g.\"user\" AND s.is_member_of__application = t.grants_access_to__application)",
    )
    .fields([
        int("id").by(Writer::Platform).doc("always null"),
        link("user", "user", OnDelete::Ignore)
            .never_null()
            .by(Writer::Platform),
        link(
            "has_direct_access_to__application",
            "application",
            OnDelete::Ignore,
        )
        .never_null()
        .by(Writer::Platform),
    ])
    .link_also(
        "application",
        "application",
        "has_direct_access_to__application",
    )
    .people(Methods::READ, Rows::Where("user eq @user"))
}
