//! The host's configuration, and reboots.

use expect_test::expect;
use model::{ContainerState, HostPart};
use plan::Subject;

use super::{check_plan, service, shop};
use crate::build::{device, target};

#[test]
fn what_differs_is_configured_beside_the_steps_of_apps() {
    check_plan(
        device().differs(HostPart::BootConfig),
        target().configures_host().service(service("web", "web:1")),
        expect![[r#"
            pull web:1 on docker
            configure the host's boot configuration
            ... shop/web waits for the image `web:1`
        "#]],
    );
    check_plan(
        device()
            .differs(HostPart::BootConfig)
            .busy(Subject::Host(HostPart::BootConfig)),
        target().configures_host(),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn a_host_that_no_target_speaks_of_is_left_as_it_is() {
    check_plan(
        device().differs(HostPart::BootConfig),
        target(),
        expect![[r#"
            nothing
        "#]],
    );
}

#[test]
fn a_configuration_that_cannot_be_had_is_shown_and_holds_up_nothing_else() {
    check_plan(
        device().image("web:1").failed(
            Subject::Host(HostPart::BootConfig),
            "`kernel` is not to be changed",
        ),
        target().configures_host().service(service("web", "web:1")),
        expect![[r#"
            under locks of shop (web)
              start shop/web on docker
            ... the host's boot configuration is tried again later: `kernel` is not to be changed
        "#]],
    );
}

#[test]
fn a_reboot_comes_when_nothing_else_is_left_to_do() {
    let settled = || {
        device()
            .image("web:1")
            .running(service("web", "web:1"))
            .commit("shop", "c1")
            .reboot_due()
    };
    let desired = || target().configures_host().service(service("web", "web:1"));
    check_plan(
        settled(),
        desired(),
        expect![[r#"
            reboot for the configuration of the host
        "#]],
    );
    check_plan(
        settled(),
        desired().service(service("db", "db:1")),
        expect![[r#"
            pull db:1 on docker
            ... shop/db waits for the image `db:1`
        "#]],
    );
    check_plan(
        settled().busy(shop("web")),
        desired(),
        expect![[r#"
            nothing
        "#]],
    );
    check_plan(
        settled().failed(Subject::Reboot, "Lockfile exists"),
        desired(),
        expect![[r#"
            ... the reboot of the host is tried again later: Lockfile exists
        "#]],
    );
}

#[test]
fn a_device_is_not_rebooted_again_and_again() {
    check_plan(
        device().reboot_due().reboots(2),
        target().configures_host(),
        expect![[r#"
            reboot for the configuration of the host
        "#]],
    );
    check_plan(
        device().reboot_due().reboots(3),
        target().configures_host(),
        expect![[r#"
            ... the device was rebooted 3 times for the configuration of the host without reaching its target, and is not rebooted again before the target changes
        "#]],
    );
}

#[test]
fn a_service_that_requires_a_reboot_is_made_before_it_and_started_after_it() {
    let desired = || target().service(service("web", "web:2").requires_reboot());
    let made = || {
        device().image("web:2").container(
            service("web", "web:2").requires_reboot(),
            ContainerState::Created,
        )
    };
    check_plan(
        device()
            .boot("one")
            .image("web:2")
            .running(service("web", "web:1")),
        desired(),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
              create shop/web on docker
        "#]],
    );
    check_plan(
        made().waits_in_boot("one").boot("one"),
        desired(),
        expect![[r#"
            reboot for shop/web
            ... shop/web waits for a reboot
        "#]],
    );
    check_plan(
        made().waits_in_boot("one").boot("two"),
        desired(),
        expect![[r#"
            start existing shop/web (id1)
        "#]],
    );
    // If the boot is not known, nothing waits for the next.
    check_plan(
        made().waits_in_boot("one"),
        desired(),
        expect![[r#"
            start existing shop/web (id1)
        "#]],
    );
}

#[test]
fn one_reboot_is_enough_for_services_that_depend_on_each_other() {
    let db = || service("db", "db:1").requires_reboot();
    let web = || {
        service("web", "web:1")
            .requires_reboot()
            .after(&["db"])
            .in_network_of("db")
    };
    check_plan(
        device()
            .boot("one")
            .image("web:1")
            .image("db:1")
            .container(db(), ContainerState::Created)
            .waits_in_boot("one"),
        target().service(db()).service(web()),
        expect![[r#"
            under locks of shop (db, web)
              create shop/web on docker in the network of id1
            ... shop/db waits for a reboot
        "#]],
    );
    check_plan(
        device()
            .boot("one")
            .image("web:1")
            .container(db(), ContainerState::Created)
            .waits_in_boot("one"),
        target()
            .service(db())
            .service(service("web", "web:1").after(&["db"])),
        expect![[r#"
            reboot for shop/db
            ... shop/db waits for a reboot
            ... shop/web waits for `db` to be started
        "#]],
    );
}

#[test]
fn what_somebody_restarts_waits_for_no_reboot() {
    check_plan(
        device().boot("one").image("web:1").acting("shop"),
        target().service(service("web", "web:1").requires_reboot()),
        expect![[r#"
            under locks of shop (web)
              start shop/web on docker
        "#]],
    );
}

#[test]
fn a_service_that_requires_a_reboot_hands_nothing_over() {
    check_plan(
        device()
            .boot("one")
            .image("web:2")
            .running(service("web", "web:1")),
        target().service(
            service("web", "web:2")
                .requires_reboot()
                .strategy(model::UpdateStrategy::HandOver),
        ),
        expect![[r#"
            under locks of shop (web)
              kill shop/web (id1)
              create shop/web on docker
        "#]],
    );
}
