//! Releases and what they are made of (cloud behaviour 1.8 and 1.9).

use crate::access::{Methods, Role, Rows};
use crate::field::{OnDelete, json, link, text, time, word};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![release()]
}

fn release() -> Resource {
    Resource::new("release", "a version of a fleet's services")
        .field(link("belongs_to__application", "application", OnDelete::Cascade).required())
        .field(text("commit", 40).required())
        .field(json("composition", 1_000_000).required())
        .field(
            word(
                "status",
                &[
                    "running",
                    "success",
                    "failed",
                    "error",
                    "cancelled",
                    "interrupted",
                ],
            )
            .required(),
        )
        .field(time("start_timestamp").required())
        .field(time("end_timestamp"))
        .index(["belongs_to__application", "commit"])
        .many("is_running_on__device", "device", "is_running__release")
        .many(
            "should_be_running_on__application",
            "application",
            "should_be_running__release",
        )
        .grant(
            Role::Guest,
            Methods::READ,
            Rows::Through("belongs_to__application"),
        )
        .people(Methods::ALL, Rows::Through("belongs_to__application"))
}
