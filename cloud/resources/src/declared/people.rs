//! Who there is: actors, users, organizations and their members (cloud behaviour 1.11 and 1.12).

use crate::access::{Methods, Role, Rows};
use crate::field::{OnDelete, Writer, link, short, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![actor(), user(), organization(), organization_membership()]
}

fn actor() -> Resource {
    Resource::new(
        "actor",
        "whoever a credential stands for: a user, a fleet or a device",
    )
    .many("is_of__user", "user", "actor")
    .many("is_of__application", "application", "actor")
    .many("is_of__device", "device", "actor")
}

fn user() -> Resource {
    Resource::new("user", "a person")
        .field(
            link("actor", "actor", OnDelete::Refuse)
                .never_null()
                .by(Writer::Platform),
        )
        .field(
            words("username", 1, 73)
                .required()
                .doc("unique, whatever its case"),
        )
        .field(words("email", 5, 254).doc("unique, whatever its case"))
        .field(short("password").by(Writer::Platform).secret())
        .field(short("jwt_secret").by(Writer::Platform).secret())
        .unique(["username"])
        .unique(["email"])
        .unique(["actor"])
        .many("organization_membership", "organization_membership", "user")
        .people(Methods::READ, Rows::Where("id eq @user"))
}

fn organization() -> Resource {
    Resource::new("organization", "whom fleets belong to")
        .field(words("name", 1, 100).required())
        .field(
            words("handle", 1, 100)
                .required()
                .doc("unique; lower-case word characters"),
        )
        .unique(["handle"])
        .many("application", "application", "organization")
        .many(
            "organization_membership",
            "organization_membership",
            "is_member_of__organization",
        )
        .many(
            "includes__user",
            "organization_membership",
            "is_member_of__organization",
        )
        .people(
            Methods::READ,
            Rows::Where("organization_membership/any(m:m/user eq @user)"),
        )
}

fn organization_membership() -> Resource {
    Resource::new(
        "organization_membership",
        "that a user belongs to an organization",
    )
    .also("user__is_member_of__organization")
    .field(link("user", "user", OnDelete::Cascade).required())
    .field(
        link(
            "is_member_of__organization",
            "organization",
            OnDelete::Cascade,
        )
        .required(),
    )
    .link_also("organization", "organization", "is_member_of__organization")
    .link_also("includes__user", "user", "user")
    .unique(["user", "is_member_of__organization"])
    .people(Methods::READ, Rows::Through("is_member_of__organization"))
    .grant(Role::User, Methods::READ, Rows::Where("user eq @user"))
}
