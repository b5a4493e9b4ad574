//! People and their credentials: actors, users and keys (docs/spec/cloud.md#model-people).

use crate::access::{Action, Methods, Role, Rows};
use crate::check::Check;
use crate::field::{OnDelete, Readers, Writer, flag, link, short, text, time, word, words};
use crate::key_scope::KeyScope;
use crate::resource::Resource;
use strum::VariantNames;

pub(super) fn all() -> Vec<Resource> {
    vec![
        actor(),
        user(),
        user_session(),
        api_key(),
        user_public_key(),
    ]
}

fn actor() -> Resource {
    Resource::new(
        "actor",
        "the identity behind a credential: a user, a fleet or a device",
    )
    .many("is_of__user", "user", "actor")
    .many("is_of__application", "application", "actor")
    .many("is_of__device", "device", "actor")
    .linked_by("api_key", "is_of__actor")
    // Nobody reads actors: the user, fleet or device of an actor has all the information.
    .grant(Role::User, Methods::DELETE, Rows::Where("id eq @actor"))
}

fn user() -> Resource {
    Resource::new("user", "a person")
        .fields([
            link("actor", "actor", OnDelete::Refuse).owned(),
            words("username", 1, 73)
                .required()
                .check(Check::Username)
                .doc("unique; characters other than letters, digits and `_` become `_`, and letters lower case"),
            words("email", 5, 254)
                .check(Check::Email)
                .read_by(Readers::Where(
                    "id eq @user \
                     or organization_membership/any(m:m/is_member_of__organization/any(o:o/organization_membership/any(x:x/user eq @user and x/organization_membership_role/any(r:r/name eq 'administrator'))))",
                ))
                .doc("unique, whatever its case; null for everybody except the user and administrators of an organization that both are in"),
            short("password").by(Writer::Platform).secret(),
            short("jwt_secret").by(Writer::Platform).secret(),
            flag("is_cloud_administrator")
                .by(Writer::Platform)
                .secret()
                .doc("may do what concerns the whole cloud; read and set at `/cloud/v1/…`"),
            flag("is_disabled")
                .by(Writer::Platform)
                .secret()
                .doc("can no longer sign in; set at `/cloud/v1/…`"),
        ])
        .unique(["username"])
        .unique(["email"])
        .unique(["actor"])
        .linked_by("organization_membership", "user")
        .linked_by("user_application_membership", "user")
        .linked_by("team_membership", "user")
        .linked_by("user__has__public_key", "user")
        .many("creates__release", "release", "is_created_by__user")
        .people(
            Methods::READ,
            Rows::Where(
                "id eq @user \
                 or organization_membership/any(m:m/is_member_of__organization/any(o:o/organization_membership/any(x:x/user eq @user))) \
                 or user_application_membership/any(s:s/is_member_of__application/any(a:a/organization/any(o:o/organization_membership/any(x:x/user eq @user)))) \
                 or team_membership/any(t:t/is_member_of__team/any(g:g/belongs_to__organization/any(o:o/organization_membership/any(x:x/user eq @user))))",
            ),
        )
        .grant(Role::User, Methods::DELETE, Rows::Where("id eq @user"))
        .action(Role::User, Action::CreateUserKey, Rows::Where("id eq @user"))
}

fn user_session() -> Resource {
    Resource::new(
        "user_session",
        "a user's sign-in somewhere; the token is valid only while the row exists",
    )
    .fields([
        link("user", "user", OnDelete::Cascade)
            .never_null()
            .by(Writer::Platform),
        time("last_used_at")
            .never_null()
            .by(Writer::Platform)
            .doc("when it was last used, to some minutes"),
        time("expires_at")
            .never_null()
            .by(Writer::Platform)
            .doc("when it ends, however much it is used"),
        text("address", 45)
            .never_null()
            .by(Writer::Platform)
            .doc("the address that the user signed in from"),
        short("user_agent")
            .by(Writer::Platform)
            .doc("the name that the client gave itself"),
        flag("is_of_dashboard")
            .by(Writer::Platform)
            .doc("a cookie of the dashboard rather than a token of the API"),
    ])
    .index(["expires_at"])
    .grant(
        Role::User,
        Methods::READ.and(Methods::DELETE),
        Rows::Where("user eq @user"),
    )
}

fn api_key() -> Resource {
    let whose = Rows::Where(
        "is_of__actor eq @actor \
         or is_of__actor/any(k:k/is_of__application/any(a:a/organization/any(o:o/organization_membership/any(m:m/user eq @user)))) \
         or is_of__actor/any(k:k/is_of__device/any(d:d/belongs_to__application/any(a:a/organization/any(o:o/organization_membership/any(m:m/user eq @user)))))",
    );
    Resource::new("api_key", "a key of a user, a fleet or a device")
        .fields([
            link("is_of__actor", "actor", OnDelete::Cascade)
                .never_null()
                .by(Writer::Platform),
            text("name", 50),
            text("description", 150),
            time("expiry_date").doc("the key is not valid after this time"),
            text("key_hash", 64)
                .never_null()
                .by(Writer::Platform)
                .secret()
                .doc("the SHA-256 of the key, in hexadecimal digits"),
            word("role", Role::OF_KEYS)
                .never_null()
                .by(Writer::Platform)
                .secret(),
            word("scope", KeyScope::VARIANTS).by(Writer::Platform).doc(
                "its rights; null means all rights of its user, except with people, organizations and keys",
            ),
            link(
                "is_limited_to__application",
                "application",
                OnDelete::Cascade,
            )
            .by(Writer::Platform)
            .doc("the only fleet to which it has access"),
            time("last_used_at")
                .by(Writer::Platform)
                .doc("when it was last used, to the hour; not recorded for devices' keys"),
        ])
        .unique(["key_hash"])
        .grant(
            Role::User,
            Methods::READ.and(Methods::UPDATE).and(Methods::DELETE),
            whose,
        )
        .grant(Role::UserKey, Methods::READ, whose)
}

fn user_public_key() -> Resource {
    Resource::new("user__has__public_key", "an SSH key of a user")
        .also("user_public_key")
        .fields([
            link("user", "user", OnDelete::Cascade).required().by(Writer::Creator),
            words("title", 1, 120).required(),
            words("public_key", 1, 2850).required(),
        ])
        .people(Methods::ALL, Rows::Where("user eq @user"))
        .devices(Methods::READ,
            // Only keys of users who may get a shell there: a device may let in anyone whose keys it can read.
            Rows::Where(
                "user/any(u:u/is_disabled eq false \
                 and (u/organization_membership/any(m:m/is_member_of__organization/any(o:o/application/any(a:a/owns__device/any(d:d/actor eq @actor)))) \
                 or u/user_application_membership/any(s:s/is_member_of__application/any(a:a/owns__device/any(d:d/actor eq @actor)) \
                 and not(s/application_membership_role/any(r:r/name ne 'developer')))))",
            ),
        )
}
