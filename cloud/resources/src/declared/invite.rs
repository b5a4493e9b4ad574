//! Invites to organizations and to single fleets (docs/spec/cloud.md#model-invites). The cloud sends no mail: the
//! inviter passes the token on, and the person who has both the token and the address accepts.

use crate::access::{Methods, Rows};
use crate::check::Check;
use crate::field::{Field, OnDelete, Writer, link, text, time, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![invitee(), organization_invite(), application_invite()]
}

/// Only administrators see invites, because their tokens create members.
const OF_ORGANIZATION: Rows = Rows::Where(
    "is_invited_to__organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')))",
);
const OF_FLEET: Rows = Rows::Where(
    "is_invited_to__application/any(a:a/organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator'))))",
);

const MAKE_AND_REVOKE: Methods = Methods::READ.and(Methods::CREATE).and(Methods::DELETE);

fn invitee() -> Resource {
    Resource::new("invitee", "an address that was invited")
        .field(words("email", 5, 254).required().check(Check::Email))
        .unique(["email"])
        .linked_by("organization_invite", "invitee")
        .linked_by("application_invite", "invitee")
        .people(
            Methods::READ,
            Rows::Where(
                "organization_invite/any(i:i/is_invited_to__organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')))) \
                 or application_invite/any(i:i/is_invited_to__application/any(a:a/organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')))))",
            ),
        )
}

/// Adds the fields and rights that all invites have.
fn invite(resource: Resource) -> Resource {
    let invited: Field = link("invitee", "invitee", OnDelete::Cascade)
        .never_null()
        .by(Writer::Platform)
        .doc("written as the address");
    resource
        .fields([
            invited,
            text("message", 1000).doc("a message to the invited person"),
            text("invitation_token", 64)
                .never_null()
                .by(Writer::Platform)
                .doc("used to accept it: `POST /user/v1/invitation/<token>`"),
            time("expiry_date")
                .never_null()
                .by(Writer::Platform)
                .doc("seven days after it was created; it cannot be accepted after that"),
            link("is_created_by__user", "user", OnDelete::SetNull).by(Writer::Platform),
        ])
        .unique(["invitation_token"])
}

fn organization_invite() -> Resource {
    let resource = Resource::new(
        "organization_invite",
        "an invitation to become a member of an organization",
    );
    invite(resource.also("invitee__is_invited_to__organization"))
        .fields([
            link(
                "is_invited_to__organization",
                "organization",
                OnDelete::Cascade,
            )
            .required(),
            link(
                "organization_membership_role",
                "organization_membership_role",
                OnDelete::Refuse,
            )
            .doc("`member` by default"),
        ])
        .link_also(
            "organization",
            "organization",
            "is_invited_to__organization",
        )
        .unique(["invitee", "is_invited_to__organization"])
        .people(MAKE_AND_REVOKE, OF_ORGANIZATION)
}

fn application_invite() -> Resource {
    let resource = Resource::new(
        "application_invite",
        "an invitation to share a fleet with somebody",
    );
    invite(resource.also("invitee__is_invited_to__application"))
        .fields([
            link(
                "is_invited_to__application",
                "application",
                OnDelete::Cascade,
            )
            .required(),
            super::team::role(),
        ])
        .link_also("application", "application", "is_invited_to__application")
        .unique(["invitee", "is_invited_to__application"])
        .people(MAKE_AND_REVOKE, OF_FLEET)
}
