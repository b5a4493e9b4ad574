//! Who did what to which row (docs/security.md, Audit log).

use crate::access::{Methods, Rows};
use crate::field::{OnDelete, Writer, int, json, link, short, text};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![audit_event()]
}

fn audit_event() -> Resource {
    Resource::new("audit_event", "what somebody did, from where and when; nobody writes them")
        .field(
            text("verb", 30)
                .never_null()
                .by(Writer::Platform)
                .doc("`create`, `change`, `delete`, `ask` (a device), `sign-in`, `sign-in-failed`, `new-password`"),
        )
        .field(
            text("resource", 60)
                .never_null()
                .by(Writer::Platform)
                .doc("the resource of the row that it was done to"),
        )
        .field(int("row_id").by(Writer::Platform).doc("that row, which may be gone"))
        .field(
            json("fields", 10_000)
                .by(Writer::Platform)
                .doc("what was said of it; `…` in place of secrets, values of variables and what is long"),
        )
        .field(int("times").never_null().by(Writer::Platform).doc(
            "how often; sign-ins that fail are one event an hour",
        ))
        .field(int("actor").by(Writer::Platform).doc("the actor who did it"))
        .field(
            link("is_by__user", "user", OnDelete::Ignore)
                .by(Writer::Platform)
                .doc("the user who did it"),
        )
        .field(short("user_name").by(Writer::Platform).doc("what that user was called"))
        .field(
            text("credential", 20)
                .by(Writer::Platform)
                .doc("`session` or `key`"),
        )
        .field(
            int("credential_id")
                .by(Writer::Platform)
                .doc("the row of the `user_session` or `api_key`"),
        )
        .field(text("address", 45).by(Writer::Platform).doc("where the request came from"))
        .field(
            link("belongs_to__organization", "organization", OnDelete::Ignore)
                .by(Writer::Platform)
                .doc("whose administrators see it; null where it concerns its user alone"),
        )
        .people(
            Methods::READ,
            Rows::Where(
                "is_by__user eq @user \
                 or belongs_to__organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')))",
            ),
        )
}
