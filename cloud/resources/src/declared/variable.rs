//! Variables of fleets, devices, services and images (docs/spec/cloud.md#model-variables).

use crate::access::{Methods, Rows};
use crate::check::Check;
use crate::field::{Field, Readers, flag, owner, text, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    let read = Methods::READ;
    vec![
        variable(
            "application_config_variable",
            "a setting of the devices of a fleet",
            "application",
            Some(Check::ConfigName),
        )
        .also("application__has__config_var_name")
        .devices(read, Rows::Through("application")),
        variable(
            "device_config_variable",
            "a setting of a device, which takes precedence over its fleet's",
            "device",
            Some(Check::ConfigName),
        )
        .also("device__has__config_var_name")
        .devices(
            read.and(Methods::CREATE).and(Methods::UPDATE),
            Rows::Through("device"),
        ),
        variable(
            "application_environment_variable",
            "a variable of all services of a fleet",
            "application",
            Some(Check::EnvironmentName),
        )
        .also("application__has__env_var_name")
        .devices(read, Rows::Through("application")),
        build_variable(),
        variable(
            "device_environment_variable",
            "a variable of all services of a device",
            "device",
            Some(Check::EnvironmentName),
        )
        .also("device__has__env_var_name")
        .devices(Methods::ALL, Rows::Through("device")),
        variable(
            "service_environment_variable",
            "a variable of a service, on all devices",
            "service",
            Some(Check::EnvironmentName),
        )
        .also("service__has__name")
        .devices(read, Rows::Through("service")),
        variable(
            "device_service_environment_variable",
            "a variable of a service on a device",
            "service_install",
            Some(Check::EnvironmentName),
        )
        .also("service_install__has__name")
        .devices(Methods::ALL, Rows::Through("service_install")),
        variable(
            "image_environment_variable",
            "a variable that a release gives to containers of an image",
            "release_image",
            None,
        )
        .also("release_image__has__name")
        .devices(read, Rows::Through("release_image")),
    ]
}

/// The flag of variables whose value can be read only by the devices that receive it.
const IS_SECRET: &str = "is_secret";

fn variable(
    name: &'static str,
    doc: &'static str,
    of: &'static str,
    check: Option<Check>,
) -> Resource {
    let value = value()
        .secret_where(IS_SECRET)
        .doc("null for people who may not change it, and for everybody if `is_secret` is true");
    build_resource(name, doc, of, check, value).field(
        flag(IS_SECRET)
            .doc("only the devices that get the value can read it; can be cleared only together with a new `value`"),
    )
}

/// Build variables are never secret: no device receives them, and builds read them as people do.
fn build_variable() -> Resource {
    let value = value().doc("null for people who may not change it");
    build_resource(
        "build_environment_variable",
        "a variable of the builds of a fleet",
        "application",
        Some(Check::EnvironmentName),
        value,
    )
}

fn value() -> Field {
    text("value", 100_000)
        .required()
        .check(Check::OneLine)
        .read_by(Readers::Changers)
}

fn build_resource(
    name: &'static str,
    doc: &'static str,
    of: &'static str,
    check: Option<Check>,
    value: Field,
) -> Resource {
    let mut called = words("name", 1, 255).required();
    called.check = check;
    Resource::new(name, doc)
        .fields([owner(of, of), called, value])
        .unique([of, "name"])
        .people(Methods::ALL, Rows::Through(of))
}
