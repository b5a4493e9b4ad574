//! Versions of the operating system (docs/spec/device.md#os-update).

use expect_test::expect;
use plan::{OsPhase, Subject};

use super::{check_plan, service, shop};
use crate::build::{Device, Target, device, target};

/// Returns a device that runs version 1, and an app.
fn settled() -> Device {
    device()
        .boot("one")
        .image("web:1")
        .running(service("web", "web:1"))
        .commit("shop", "c1")
}

fn wants(version: &str) -> Target {
    target().service(service("web", "web:1")).os(version)
}

#[test]
fn a_version_is_staged_then_activated_with_a_reboot() {
    check_plan(
        settled().os("1", None),
        wants("2"),
        expect![[r#"
            stage version 2 of the operating system
        "#]],
    );
    check_plan(
        settled().os("1", Some("1.5")),
        wants("2"),
        expect![[r#"
            stage version 2 of the operating system
        "#]],
    );
    check_plan(
        settled().os("1", None).installing_os(40),
        wants("2"),
        expect![[r#"
            ... the operating system: version 2 of the operating system is being installed: 40 %
        "#]],
    );
    check_plan(
        settled().os("1", Some("2")),
        wants("2"),
        expect![[r#"
            activate version 2 of the operating system, and reboot for version 2 of the operating system
        "#]],
    );
    check_plan(
        settled().os("2", Some("1")),
        wants("2"),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn staging_holds_up_no_service_and_an_activation_comes_after_them() {
    let next = || wants("2").service(service("db", "db:1"));
    check_plan(
        settled().os("1", None),
        next(),
        expect![[r#"
            pull db:1 on docker
            stage version 2 of the operating system
            ... shop/db waits for the image `db:1`
        "#]],
    );
    check_plan(
        settled().image("db:1").os("1", None).installing_os(1),
        next(),
        expect![[r#"
            under locks of shop (db, web)
              start shop/db on docker
            ... the operating system: version 2 of the operating system is being installed: 1 %
        "#]],
    );
    check_plan(
        settled().image("db:1").os("1", Some("2")),
        next(),
        expect![[r#"
            under locks of shop (db, web)
              start shop/db on docker
        "#]],
    );
    check_plan(
        settled().os("1", Some("2")).busy(shop("web")),
        wants("2"),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn without_a_provider_or_a_version_nothing_is_done() {
    for (device, target) in [
        (settled(), wants("2")),
        (settled().os("1", Some("2")), wants("2").without_os()),
        (settled().os("1", Some("2")).os_rejected("2"), wants("2")),
        (settled().os("1", None).busy(Subject::Os), wants("2")),
    ] {
        check_plan(
            device,
            target,
            expect![[r#"
                nothing
            "#]],
        );
    }
}

#[test]
fn a_failing_provider_is_shown_and_holds_up_nothing_else() {
    check_plan(
        settled()
            .image("db:1")
            .failed(Subject::Os, "RAUC: no space left"),
        wants("2").service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (db, web)
              start shop/db on docker
            ... the operating system is tried again later: RAUC: no space left
        "#]],
    );
    // Nor does it delay a reboot for another reason.
    check_plan(
        settled()
            .os("1", Some("2"))
            .reboot_due()
            .failed(Subject::Os, "RAUC: no such slot"),
        wants("2"),
        expect![[r#"
            reboot for the configuration of the host
            ... the operating system is tried again later: RAUC: no such slot
        "#]],
    );
}

#[test]
fn an_activated_version_is_booted_or_rolled_back() {
    let activated = || {
        settled()
            .os("1", Some("2"))
            .os_attempt("2", "one", OsPhase::Activated)
    };
    check_plan(
        activated(),
        wants("2"),
        expect![[r#"
            activate version 2 of the operating system, and reboot for version 2 of the operating system
        "#]],
    );
    for target in [wants("3"), wants("1"), wants("2").without_os()] {
        check_plan(
            activated(),
            target,
            expect![[r#"
                roll back version 2 of the operating system
            "#]],
        );
    }
    check_plan(
        activated().os_rejected("2"),
        wants("2"),
        expect![[r#"
            roll back version 2 of the operating system
        "#]],
    );
}

#[test]
fn a_version_that_runs_is_committed_once_it_is_healthy() {
    let on_trial = || {
        settled()
            .os("2", Some("1"))
            .os_attempt("2", "before", OsPhase::Activated)
    };
    check_plan(
        on_trial(),
        wants("2"),
        expect![[r#"
            ... the operating system: version 2 of the operating system is on trial: its services have not been checked yet
        "#]],
    );
    // Also if the target names another version by now: the first is handled before the other.
    for target in [wants("2"), wants("3"), wants("2").without_os()] {
        check_plan(
            on_trial().os_is_healthy(),
            target,
            expect![[r#"
                commit version 2 of the operating system
            "#]],
        );
    }
}

#[test]
fn a_version_that_is_not_healthy_goes_and_what_was_before_is_booted() {
    let rejected = |phase, boot: &str| {
        settled()
            .os("2", Some("1"))
            .os_attempt("2", boot, phase)
            .os_rejected("2")
    };
    check_plan(
        rejected(OsPhase::RollingBack, "before"),
        wants("2"),
        expect![[r#"
            roll back version 2 of the operating system
        "#]],
    );
    check_plan(
        rejected(OsPhase::RolledBack, "one"),
        wants("2"),
        expect![[r#"
            reboot for the operating system before version 2
        "#]],
    );
    check_plan(
        rejected(OsPhase::RolledBack, "one").failed(Subject::Reboot, "Lockfile exists"),
        wants("2"),
        expect![[r#"
            ... the reboot of the host is tried again later: Lockfile exists
        "#]],
    );
    // The boot loader has started it anyway.
    check_plan(
        rejected(OsPhase::RolledBack, "before"),
        wants("2"),
        expect![[r#"
            roll back version 2 of the operating system
        "#]],
    );
    check_plan(
        rejected(OsPhase::RolledBack, "one").reboots(3),
        wants("2"),
        expect![[r#"
            ... the device was rebooted 3 times for the operating system before version 2 without reaching its target, and is not rebooted again before the target changes
        "#]],
    );
}
