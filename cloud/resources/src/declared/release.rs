//! Releases and their assets (docs/spec/cloud.md#model-release, docs/spec/cloud.md#model-release-asset).

use crate::access::{Methods, Rows};
use crate::check::Check;
use crate::field::{
    Default, OnDelete, Writer, flag, int, json, link, owner, text, time, word, words,
};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![release(), release_asset()]
}

/// The states of a build, of a release and of an image.
pub(super) const BUILD_STATUS: &[&str] = &[
    "running",
    "success",
    "failed",
    "error",
    "cancelled",
    "interrupted",
];

/// The largest signed statement that devices accept (`signed_targets::MOST_BYTES`).
const SIGNED_STATEMENT: usize = 256 << 10;

fn release() -> Resource {
    Resource::new("release", "a version of what a fleet runs")
        .fields([
            owner("belongs_to__application", "application"),
            words("commit", 1, 40)
                .required()
                .doc("the name by which devices know it; unique among the successful ones of a fleet"),
            json("composition", 1_000_000)
                .required()
                .doc("the compose file, as an object"),
            word("status", BUILD_STATUS)
                .required()
                .doc("devices run those that are `success`"),
            word("source", &["cloud", "local"])
                .required()
                .doc("where it was built"),
            text("build_log", 1_000_000),
            time("start_timestamp")
                .required()
                .doc("the latest release is the one that started last"),
            time("end_timestamp"),
            time("update_timestamp")
                .default(Default::Now)
                .by(Writer::Platform),
            flag("is_invalidated").doc("it cannot become a target"),
            text("invalidation_reason", 255).doc("only while it is invalidated"),
            flag("is_passing_tests")
                .default(Default::Boolean(true))
                .doc("otherwise no fleet that tracks the latest release runs it"),
            time("is_finalized_at__date")
                .by(Writer::Platform)
                .doc("when it became final"),
            text("release_version", 81).doc("deprecated"),
            json("contract", 1_000_000),
            word("phase", &["next", "current", "sunset", "end-of-life"]),
            int("semver_major")
                .default(Default::Integer(0))
                .by(Writer::Platform),
            int("semver_minor")
                .default(Default::Integer(0))
                .by(Writer::Platform),
            int("semver_patch")
                .default(Default::Integer(0))
                .by(Writer::Platform),
            text("semver_prerelease", 100)
                .default(Default::Text(""))
                .by(Writer::Platform),
            text("semver_build", 50)
                .default(Default::Text(""))
                .by(Writer::Platform),
            text("variant", 50)
                .default(Default::Text(""))
                .doc("for example `prod` or `dev`"),
            int("revision")
                .by(Writer::Platform)
                .doc("its number among the final releases of its version, from 0; null for a draft"),
            text("known_issue_list", 1000).doc("for people"),
            text("note", 1_000_000).doc("for people"),
            text("signed_statement", SIGNED_STATEMENT)
                .doc("the statement that the fleet's owner has signed, as `fleet sign` writes it; for devices, without effect in the cloud"),
            link("is_created_by__user", "user", OnDelete::SetNull).by(Writer::Platform),
            flag("is_final")
                .computed()
                .by(Writer::Input)
                .doc("not a draft; write true to finalize it"),
            text("semver", 255)
                .check(Check::Version)
                .never_null()
                .computed()
                .by(Writer::Input)
                .doc("its version; may be written"),
            text("raw_version", 255)
                .never_null()
                .computed()
                .doc("the version with a suffix that makes it unique"),
            json("version", 2000)
                .never_null()
                .computed()
                .doc("the same in its parts"),
        ])
        .index(["belongs_to__application", "commit"])
        .index(["belongs_to__application", "start_timestamp"])
        .index(["commit"])
        .linked_by("release_image", "is_part_of__release")
        .many("contains__image", "release_image", "is_part_of__release")
        .linked_by("release_tag", "release")
        .linked_by("release_asset", "release")
        .many("is_running_on__device", "device", "is_running__release")
        .many("is_pinned_to__device", "device", "is_pinned_on__release")
        .many(
            "should_be_running_on__device",
            "device",
            "should_be_running__release",
        )
        .many(
            "should_be_running_on__application",
            "application",
            "should_be_running__release",
        )
        .many(
            "should_operate__device",
            "device",
            "should_be_operated_by__release",
        )
        .many(
            "should_manage__device",
            "device",
            "should_be_managed_by__release",
        )
        .many(
            "provides__image_install",
            "image_install",
            "is_provided_by__release",
        )
        .guests(Methods::READ,
            Rows::Through("belongs_to__application"),
        )
        .people(Methods::ALL, Rows::Through("belongs_to__application"))
        .devices(Methods::READ,
            Rows::Through("belongs_to__application"),
        )
        .devices(Methods::READ,
            Rows::Where("is_pinned_to__device/any(d:d/actor eq @actor)"),
        )
}

/// The maximum size of a file's description, in bytes.
const FILE: usize = 4096;

fn release_asset() -> Resource {
    Resource::new("release_asset", "a file attached to a release")
        .also("release__has__asset_key")
        .fields([
            owner("release", "release"),
            words("asset_key", 1, 255).required(),
            json("asset", FILE)
                .computed()
                .by(Writer::Input)
                .doc(
                    "a file, sent as multipart/form-data; reads as its `filename`, `href` (where it is downloaded), \
                     `content_type`, `content_disposition` and `size`",
                ),
            // The stored form of the same value, with only the path.
            text("file", FILE)
                .column("asset")
                .by(Writer::Platform)
                .secret(),
        ])
        .unique(["release", "asset_key"])
        .guests(Methods::READ, Rows::Through("release"))
        .people(Methods::ALL, Rows::Through("release"))
}
