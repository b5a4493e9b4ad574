//! Engines: selection and availability.

use expect_test::expect;

use super::{check_plan, service};
use crate::build::{Docker, Wasm, device, service as any_service, target};

#[test]
fn an_image_of_a_kind_without_engine_is_waited_on() {
    check_plan(
        device().image("web:1"),
        target()
            .service(service("web", "web:1"))
            .service(service("sensor", "file:/srv/sensor.wasm")),
        expect![[r#"
            under locks of shop (sensor, web)
              start shop/web on docker
            ... shop/sensor needs the wasm engine, which this device does not have
        "#]],
    );
}

#[test]
fn nothing_is_planned_on_an_engine_that_does_not_answer() {
    check_plan(
        device().silent(Docker),
        target()
            .network("shop", "default", "")
            .service(service("web", "web:1")),
        expect![[r#"
            ... the docker engine does not answer: connection refused
            ... shop/web waits for the docker engine
        "#]],
    );
}

#[test]
fn an_image_that_a_silent_engine_may_hold_is_not_made_elsewhere() {
    check_plan(
        device()
            .with_wasm()
            .silent(Docker)
            .image_on(Wasm, "sensor:1"),
        target()
            .service(service("web", "web:1"))
            .service(any_service("cafe", "sensor", "sensor:1")),
        expect![[r#"
            under locks of cafe (sensor)
              start cafe/sensor on wasm
            ... the docker engine does not answer: connection refused
            ... shop/web waits for the docker engine
        "#]],
    );
}

#[test]
fn a_service_moves_to_the_engine_of_its_new_image() {
    check_plan(
        device()
            .with_wasm()
            .image_on(Wasm, "sensor:2")
            .running(service("sensor", "sensor:1")),
        target().service(service("sensor", "sensor:2")),
        expect![[r#"
            under locks of shop (sensor)
              kill shop/sensor (id1)
              start shop/sensor on wasm
        "#]],
    );
}
