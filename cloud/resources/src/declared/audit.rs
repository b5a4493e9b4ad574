//! Who did what to which row (docs/security.md, Audit log).

use crate::access::{Methods, Rows};
use crate::field::{OnDelete, Writer, int, json, link, short, text};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![audit_event()]
}

fn audit_event() -> Resource {
    Resource::new("audit_event", "what somebody did, from where and when; nobody can write these rows")
        .fields([
            text("verb", 30)
                .never_null()
                .by(Writer::Platform)
                .doc("`create`, `change`, `delete`, `ask` (a device), `sign-in`, `sign-in-failed`, `new-password`"),
            text("resource", 60)
                .never_null()
                .by(Writer::Platform)
                .doc("the resource of the row concerned"),
            int("row_id").by(Writer::Platform).doc("the id of that row, which may be deleted by now"),
            json("fields", 10_000)
                .by(Writer::Platform)
                .doc("details; `…` replaces secrets, values of variables and long texts"),
            int("times").never_null().by(Writer::Platform).doc(
                "how often; failed sign-ins are one event per hour",
            ),
            int("actor").by(Writer::Platform).doc("the actor who did it"),
            link("is_by__user", "user", OnDelete::Ignore)
                .by(Writer::Platform)
                .doc("the user who did it"),
            short("user_name").by(Writer::Platform).doc("the name of that user at the time"),
            text("credential", 20)
                .by(Writer::Platform)
                .doc("`session` or `key`"),
            int("credential_id")
                .by(Writer::Platform)
                .doc("the row of the `user_session` or `api_key`"),
            text("address", 45).by(Writer::Platform).doc("where the request came from"),
            link("belongs_to__organization", "organization", OnDelete::Ignore)
                .by(Writer::Platform)
                .doc("the organization whose administrators see it; null if it concerns only its user"),
        ])
        .people(
            Methods::READ,
            Rows::Where(
                "is_by__user eq @user \
                 or belongs_to__organization/any(o:o/organization_membership/any(m:m/user eq @user and m/organization_membership_role/any(r:r/name eq 'administrator')))",
            ),
        )
}
