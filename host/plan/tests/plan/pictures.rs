//! Each rule as a state, a target and the picture of the plan. `UPDATE_EXPECT=1` refreshes them.

mod apps;
mod components;
mod engines;
mod failures;
mod forecasts;
mod host;
mod images;
mod locks;
mod order;
mod os;
mod services;
mod strategies;

use expect_test::Expect;
use plan::{Subject, plan};

use crate::build::{Device, Target, image_ref, key, service as any_service};

/// Plans, and compares the plan with the picture: the one driver.
fn check_plan(current: Device, desired: Target, expected: Expect) {
    expected.assert_eq(&plan(&current.0, &desired.0).to_string());
}

/// Returns a service of the app `shop`.
fn service(name: &str, image: &str) -> crate::build::Service {
    any_service("shop", name, image)
}

fn image(reference: &str) -> Subject {
    Subject::Image(image_ref(reference))
}

fn shop(service: &str) -> Subject {
    Subject::Service(key("shop", service))
}

fn locks() -> Subject {
    Subject::Locks("shop".parse().unwrap())
}
