//! Teams, and the roles that people have in fleets that are shared with them (docs/spec/cloud.md#model-invites).
//!
//! Members of a fleet's organization need no team. A team is for others: its members can access the fleets that are
//! shared with it, in the role chosen for each fleet.

use crate::access::{Methods, Rows};
use crate::field::{Field, OnDelete, Writer, link, owner, short, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![
        application_membership_role(),
        team(),
        team_membership(),
        team_application_access(),
    ]
}

fn application_membership_role() -> Resource {
    Resource::new(
        "application_membership_role",
        "what somebody may do with a fleet that is shared with them: an `observer` looks at it, an `operator` changes \
         its devices and acts on them, a `developer` changes it and its releases as well",
    )
    .field(short("name").required())
    .unique(["name"])
    .linked_by("user_application_membership", "application_membership_role")
    .linked_by("team_application_access", "application_membership_role")
    .people(Methods::READ, Rows::All)
}

/// Returns the link from a share of a fleet to its role.
pub(super) fn role() -> Field {
    // Null in rows of earlier versions, which had no roles: these count as developers.
    link(
        "application_membership_role",
        "application_membership_role",
        OnDelete::Refuse,
    )
    .doc("`developer` unless another is given")
}

fn team() -> Resource {
    Resource::new("team", "a group of people with whom fleets are shared")
        .fields([
            words("name", 1, 100).required(),
            owner("belongs_to__organization", "organization"),
        ])
        .unique(["belongs_to__organization", "name"])
        .linked_by("team_membership", "is_member_of__team")
        .linked_by("team_application_access", "team")
        .people(Methods::ALL, Rows::Through("belongs_to__organization"))
        .people(
            Methods::READ,
            Rows::Where("team_membership/any(m:m/user eq @user)"),
        )
}

fn team_membership() -> Resource {
    Resource::new("team_membership", "says that a user belongs to a team")
        .also("user__is_member_of__team")
        .fields([
            link("user", "user", OnDelete::Cascade)
                .required()
                .by(Writer::Creator)
                .doc("a new row may give `username` instead: of somebody who accepted an invite of the organization"),
            link("is_member_of__team", "team", OnDelete::Cascade)
                .required()
                .by(Writer::Creator),
        ])
        .link_also("team", "team", "is_member_of__team")
        .unique(["user", "is_member_of__team"])
        .people(
            Methods::READ.and(Methods::UPDATE).and(Methods::DELETE),
            Rows::Through("is_member_of__team"),
        )
        // Only users who accepted an invite of the organization, to itself or to one of its fleets.
        .people(
            Methods::CREATE,
            Rows::Where(
                "is_member_of__team/any(t:t/belongs_to__organization/any(o:\
                 o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')) \
                 and (o/organization_membership/any(k:k/user eq user) \
                 or o/application/any(f:f/user_application_membership/any(k:k/user eq user)) \
                 or o/team/any(g:g/team_membership/any(k:k/user eq user and k/id ne id)))))",
            ),
        )
        // Members may leave.
        .people(
            Methods::READ.and(Methods::DELETE),
            Rows::Where("user eq @user"),
        )
}

fn team_application_access() -> Resource {
    Resource::new(
        "team_application_access",
        "says that a fleet is shared with a team",
    )
    .fields([
        link("team", "team", OnDelete::Cascade).required().by(Writer::Creator),
        link("grants_access_to__application", "application", OnDelete::Cascade).required().by(Writer::Creator),
        role(),
    ])
    .link_also(
        "application",
        "application",
        "grants_access_to__application",
    )
    .unique(["team", "grants_access_to__application"])
    .people(Methods::READ, Rows::Through("team"))
    // Those who may change the team may not give it access to fleets of others.
    .people(
        Methods::CREATE.and(Methods::UPDATE).and(Methods::DELETE),
        Rows::Where(
            "grants_access_to__application/any(a:a/organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')))) \
             and team/any(t:t/belongs_to__organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator'))))",
        ),
    )
}
