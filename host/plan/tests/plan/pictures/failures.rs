//! Steps that failed or are under way.

use expect_test::expect;
use plan::ComponentKind::Network;
use plan::Subject;

use super::{check_plan, locks, service, shop};
use crate::build::{Docker, device, target};

#[test]
fn a_service_that_fails_holds_up_no_other() {
    check_plan(
        device()
            .image("web:1")
            .image("db:1")
            .image("api:1")
            .failed(shop("db"), "port is taken"),
        target()
            .service(service("web", "web:1"))
            .service(service("api", "api:1").after(&["db"]))
            .service(service("db", "db:1")),
        expect![[r#"
            under locks of shop (api, db, web)
              start shop/web on docker
            ... shop/api waits for `db` to be started
            ... shop/db is tried again later: port is taken
        "#]],
    );
}

#[test]
fn nothing_is_planned_twice() {
    check_plan(
        device()
            .image("web:1")
            .busy(shop("web"))
            .busy(Subject::Component(Network, Docker, "shop_default".into()))
            .busy(locks()),
        target()
            .network("shop", "default", "")
            .service(service("web", "web:1")),
        expect![[r#"
            nothing
        "#]],
    );
}
