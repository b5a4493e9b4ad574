//! Versions of releases (docs/spec/cloud.md#rule-finalize, docs/spec/cloud.md#rule-raw-version).

use proptest::prelude::*;
use resources::{ReleaseVersion, split_os_version};

#[test]
fn a_version_may_request_its_revision() {
    for (semver, expected) in [
        ("1.2.3+rev4", Some(4)),
        ("1.2.3+linux.rev12", Some(12)),
        ("1.2.3+review4", None),
        ("1.2.3+rev", None),
        ("1.2.3", None),
    ] {
        let version: ReleaseVersion = semver.parse().expect(semver);
        assert_eq!(version.requested_revision(), expected, "{semver}");
    }
}

#[test]
fn the_variant_of_a_system_may_stand_behind_its_version() {
    for (reported, version, variant) in [
        (
            "Platform OS 2.54.2+rev1 (prod)",
            "Platform OS 2.54.2+rev1",
            Some("prod"),
        ),
        ("2.54.2(dev)", "2.54.2", Some("dev")),
        ("2.54.2 (beta)", "2.54.2 (beta)", None),
        ("2.54.2", "2.54.2", None),
        ("", "", None),
    ] {
        assert_eq!(split_os_version(reported), (version, variant));
    }
}

proptest! {
    #[test]
    fn a_version_reads_as_it_was_written(text in "(0|[1-9][0-9]{0,9})\\.(0|[1-9][0-9]{0,9})\\.(0|[1-9][0-9]{0,9})(-[a-z]{1,5}(\\.[a-z]{1,3})?)?(\\+[a-z0-9]{1,5})?") {
        let version: ReleaseVersion = text.parse().expect("a version");
        prop_assert_eq!(version.to_string(), text);
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = text.parse::<ReleaseVersion>();
        let _ = split_os_version(&text);
    }
}
