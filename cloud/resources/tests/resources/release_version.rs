//! Versions of releases (docs/spec/cloud.md#rule-finalize, docs/spec/cloud.md#rule-raw-version).

use proptest::prelude::*;
use resources::{Finality, ReleaseVersion, split_os_version};

const DRAFT: Finality = Finality::Draft {
    created_at: 1_794_000_000_000,
};

const fn revision(revision: i64) -> Finality {
    Finality::Final { revision }
}

#[test]
fn the_raw_version_says_what_sets_a_release_apart() {
    for (semver, finality, variant, raw) in [
        ("1.2.3", revision(0), "", "1.2.3"),
        ("1.2.3", revision(4), "", "1.2.3+rev4"),
        ("1.2.3-beta", revision(4), "prod", "1.2.3-beta+rev4.prod"),
        ("1.2.3", revision(0), "prod", "1.2.3+prod"),
        ("1.2.3+linux", revision(1), "dev", "1.2.3+linux.rev1.dev"),
        ("1.2.3+rev4", revision(4), "", "1.2.3+rev4"),
        ("1.2.3", DRAFT, "", "1.2.3-1794000000000"),
        ("1.2.3-pre", DRAFT, "", "1.2.3-pre.1794000000000"),
        ("1.2.3-pre+b", DRAFT, "dev", "1.2.3-pre.1794000000000+b.dev"),
    ] {
        let version: ReleaseVersion = semver.parse().expect(semver);
        assert_eq!(version.raw(finality, variant), raw, "{semver}");
    }
}

#[test]
fn a_version_is_described_in_its_parts() {
    let version: ReleaseVersion = "1.2.3-beta.1+linux".parse().expect("a version");
    assert_eq!(
        version.describe(revision(4), "prod").to_string(),
        r#"{"raw":"1.2.3-beta.1+linux.rev4.prod","major":1,"minor":2,"patch":3,"prerelease":["beta",1],"build":["linux","rev4","prod"],"version":"1.2.3-beta.1"}"#
    );
    let version: ReleaseVersion = "0.0.0".parse().expect("a version");
    assert_eq!(
        version.describe(revision(0), "").to_string(),
        r#"{"raw":"0.0.0","major":0,"minor":0,"patch":0,"prerelease":[],"build":[],"version":"0.0.0"}"#
    );
}

#[test]
fn a_revision_may_be_asked_for() {
    for (semver, asked) in [
        ("1.2.3+rev4", Some(4)),
        ("1.2.3+linux.rev12", Some(12)),
        ("1.2.3+review4", None),
        ("1.2.3+rev", None),
        ("1.2.3", None),
    ] {
        let version: ReleaseVersion = semver.parse().expect(semver);
        assert_eq!(version.asked_revision(), asked, "{semver}");
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
    fn no_text_makes_it_panic(text in any::<String>(), variant in any::<String>()) {
        if let Ok(version) = text.parse::<ReleaseVersion>() {
            let _ = version.describe(DRAFT, &variant);
        }
        let _ = split_os_version(&text);
    }
}
