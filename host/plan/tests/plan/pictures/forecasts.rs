//! Forecasts: every step until the target is reached, its reason, and what it waits for.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use model::UpdateStrategy::{HandOver, KillThenDownload};
use model::{ContainerState, HostPart};
use plan::{AnyStep, LockedStep, OsPhase, Subject, forecast, plan};

use super::{image, locks, service, shop};
use crate::build::{Device, Docker, Target, device, target};

/// Forecasts, and compares the forecast with the picture: the one driver.
fn check_forecast(current: &Device, desired: &Target, expected: &Expect) {
    let foreseen = forecast(&current.0, &desired.0);
    let mut picture = String::new();
    for step in &foreseen.steps {
        let name = match &step.step {
            AnyStep::Free(free) => free.to_string(),
            AnyStep::Locked(service, LockedStep::Stop { container, .. }) => {
                format!("stop {service} ({})", container.id)
            }
            AnyStep::Locked(service, LockedStep::Kill { container, .. }) => {
                format!("kill {service} ({})", container.id)
            }
            AnyStep::Locked(service, LockedStep::Rename { name, .. }) => {
                format!("rename {service} to {name}")
            }
            AnyStep::Locked(_, LockedStep::RemoveImage { image, .. }) => format!("remove {image}"),
            AnyStep::Locked(service, LockedStep::HandOver { old, .. }) => {
                format!("hand {service} ({}) over", old.id)
            }
            AnyStep::Locked(service, LockedStep::Start(_)) => format!("start {service}"),
        };
        let begun = if step.in_flight { " [begun]" } else { "" };
        let _ = write!(picture, "{}. {name}{begun}: {:?}", step.stage, step.reason);
        if !step.waits_for.is_empty() {
            let _ = write!(picture, ", waits for {:?}", step.waits_for);
        }
        picture.push('\n');
    }
    for waiting in &foreseen.stuck {
        let _ = writeln!(picture, "... {waiting}");
    }
    expected.assert_eq(&picture);
}

#[test]
fn an_update_is_foreseen_to_its_end() {
    check_forecast(
        &device()
            .image("web:1")
            .image("db:1")
            .recorded("web:1")
            .commit("shop", "c1")
            .running(service("web", "web:1"))
            .running(service("db", "db:1"))
            .running(service("old", "db:1")),
        &target()
            .service(service("web", "web:2").release(2).after(&["db"]))
            .service(
                service("db", "db:1")
                    .with("other")
                    .release(2)
                    .volume("data"),
            )
            .volume("shop", "data", ""),
        &expect![[r#"
            1. pull web:2 on docker: Missing
            1. create volume 1_data on docker: Missing
            2. kill shop/db (id2): ConfigurationChanged
            2. start shop/db: ConfigurationChanged
            2. kill shop/web (id1): ImageChanged, waits for [Image { image: ImageRef("web:2") }]
            2. kill shop/old (id3): NotInTarget
            3. start shop/web: ImageChanged, waits for [Image { image: ImageRef("web:2") }, Dependency { service: ServiceName("db") }]
            4. record commit c2 of shop: Reached
            5. remove image web:1 on docker: Unused
        "#]],
    );
}

#[test]
fn what_is_begun_or_held_back_is_foreseen_as_if_it_were_not() {
    check_forecast(
        &device()
            .image("web:1")
            .running(service("web", "web:1"))
            .busy(image("web:2"))
            .failed(image("db:1"), "no route to host")
            .failed(locks(), "locked")
            .busy(shop("web")),
        &target()
            .service(service("web", "web:2"))
            .service(service("db", "db:1")),
        &expect![[r#"
            1. pull db:1 on docker: Missing
            1. pull web:2 on docker [begun]: Missing
            2. start shop/db: Missing, waits for [Image { image: ImageRef("db:1") }]
            2. kill shop/web (id1) [begun]: ImageChanged, waits for [Image { image: ImageRef("web:2") }]
            2. start shop/web [begun]: ImageChanged, waits for [Image { image: ImageRef("web:2") }]
            3. record commit c1 of shop: Reached
        "#]],
    );
}

#[test]
fn strategies_and_actions_give_their_reasons() {
    let mut device = device()
        .image("web:1")
        .image("api:1")
        .image("api:2")
        .image("db:1")
        .running(service("web", "web:1"))
        .running(service("api", "api:1"))
        .running(service("db", "db:1"))
        .container(service("cron", "db:1"), ContainerState::Removing);
    device.0.recreated.insert("id3".parse().unwrap());
    check_forecast(
        &device,
        &target()
            .service(service("web", "web:2").strategy(KillThenDownload))
            .service(service("api", "api:2").strategy(HandOver))
            .service(service("db", "db:1"))
            .service(service("cron", "db:1")),
        &expect![[r#"
            1. hand shop/api (id2) over: ImageChanged
            1. kill shop/db (id3): Restart
            1. start shop/db: Restart
            1. kill shop/web (id1): ImageChanged
            2. pull web:2 on docker: Missing
            3. start shop/web: ImageChanged, waits for [Image { image: ImageRef("web:2") }]
            4. start shop/cron: Missing, waits for [Removal]
            5. record commit c1 of shop: Reached
        "#]],
    );
}

#[test]
fn an_app_that_is_purged_goes_and_comes_back() {
    let mut device = device()
        .image("web:1")
        .volume("shop", "data", "")
        .commit("shop", "c1")
        .running(service("web", "web:1").volume("data"));
    device.0.purged.insert("shop".parse().unwrap());
    check_forecast(
        &device,
        &target()
            .service(service("web", "web:1").volume("data"))
            .volume("shop", "data", ""),
        &expect![[r#"
            1. kill shop/web (id1): Purge
            2. remove volume 1_data on docker: Purge
            3. create volume 1_data on docker: Purge
            4. start shop/web: Purge, waits for [Component { name: "1_data" }]
        "#]],
    );
}

#[test]
fn steps_that_a_silent_engine_blocks_are_stuck() {
    check_forecast(
        &device().silent(Docker),
        &target().service(service("web", "web:1")),
        &expect![[r#"
            ... the docker engine does not answer: connection refused
            ... shop/web waits for the docker engine
        "#]],
    );
}

#[test]
fn a_reboot_is_foreseen_with_what_comes_after_it() {
    check_forecast(
        &device()
            .boot("one")
            .image("web:1")
            .differs(HostPart::BootConfig),
        &target()
            .configures_host()
            .service(service("web", "web:1").requires_reboot()),
        &expect![[r#"
            1. start shop/web: Missing
            1. configure the host's boot configuration: ConfigurationChanged
            2. reboot for the configuration of the host, shop/web: TakesEffect
            3. start existing shop/web (foreseen-1): NotRunning, waits for [Reboot]
            4. record commit c1 of shop: Reached
        "#]],
    );
}

#[test]
fn a_configuration_that_the_host_refuses_is_left() {
    check_forecast(
        &device().failed(Subject::Host(HostPart::BootConfig), "not to be changed"),
        &target().configures_host(),
        &expect![[r#"
            ... the host's boot configuration is tried again later: not to be changed
        "#]],
    );
}

#[test]
fn conformance1_a_service_with_a_replaced_key_goes_on_until_the_next_update_and_is_foreseen_with_it()
 {
    let mut current = device()
        .image("web:1")
        .commit("shop", "c1")
        .running(service("web", "web:1"));
    let made_from = current.0.services[0].digest.clone().unwrap();
    let key = current.0.services[0].key.clone();
    let none = Default::default();
    current.0.replaced_keys.note(key, made_from, &none);
    let target = target().service(service("web", "web:1").with("another key"));
    let now = plan(&current.0, &target.0);
    assert_eq!(now.steps, [], "nothing is done for its own sake");
    check_forecast(
        &current,
        &target,
        &expect![[r#"
            1. kill shop/web (id1): KeyReplaced
            1. start shop/web: KeyReplaced
        "#]],
    );
}

#[test]
fn an_update_of_the_operating_system_is_foreseen_to_its_end() {
    let settled = || {
        device()
            .boot("one")
            .image("web:1")
            .running(service("web", "web:1"))
            .commit("shop", "c1")
    };
    let desired = target().service(service("web", "web:1")).os("2");
    check_forecast(
        &settled().os("1", None).installing_os(40).busy(Subject::Os),
        &desired,
        &expect![[r#"
            1. stage version 2 of the operating system [begun]: Missing
            2. activate version 2 of the operating system, and reboot for version 2 of the operating system: TakesEffect
            3. commit version 2 of the operating system: Reached
        "#]],
    );
    check_forecast(
        &settled()
            .os("2", Some("1"))
            .os_attempt("2", "before", OsPhase::RollingBack)
            .os_rejected("2"),
        &desired,
        &expect![[r#"
            1. roll back version 2 of the operating system: Unhealthy
            2. reboot for the operating system before version 2: TakesEffect
        "#]],
    );
}
