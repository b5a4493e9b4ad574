//! Variables of fleets, devices, services and images (cloud behaviour 1.7).

use crate::access::{Methods, Role, Rows};
use crate::check::Check;
use crate::field::{OnDelete, Readers, link, text, words};
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
        .grant(Role::DeviceKey, read, Rows::Through("application")),
        variable(
            "device_config_variable",
            "a setting of a device, before that of its fleet",
            "device",
            Some(Check::ConfigName),
        )
        .also("device__has__config_var_name")
        .grant(
            Role::DeviceKey,
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
        .grant(Role::DeviceKey, read, Rows::Through("application")),
        variable(
            "build_environment_variable",
            "a variable of the builds of a fleet",
            "application",
            Some(Check::EnvironmentName),
        ),
        variable(
            "device_environment_variable",
            "a variable of all services of a device",
            "device",
            Some(Check::EnvironmentName),
        )
        .also("device__has__env_var_name")
        .grant(Role::DeviceKey, Methods::ALL, Rows::Through("device")),
        variable(
            "service_environment_variable",
            "a variable of a service, on all devices",
            "service",
            Some(Check::EnvironmentName),
        )
        .also("service__has__name")
        .grant(Role::DeviceKey, read, Rows::Through("service")),
        variable(
            "device_service_environment_variable",
            "a variable of a service on a device",
            "service_install",
            Some(Check::EnvironmentName),
        )
        .also("service_install__has__name")
        .grant(
            Role::DeviceKey,
            Methods::ALL,
            Rows::Through("service_install"),
        ),
        variable(
            "image_environment_variable",
            "a variable that a release gives to containers of an image",
            "release_image",
            None,
        )
        .also("release_image__has__name")
        .grant(Role::DeviceKey, read, Rows::Through("release_image")),
    ]
}

fn variable(
    name: &'static str,
    doc: &'static str,
    of: &'static str,
    check: Option<Check>,
) -> Resource {
    let mut called = words("name", 1, 255).required();
    called.check = check;
    Resource::new(name, doc)
        .field(link(of, of, OnDelete::Cascade).required().belongs())
        .field(called)
        .field(
            text("value", 100_000)
                .required()
                .check(Check::OneLine)
                .read_by(Readers::Changers)
                .doc("null to people who may not change it"),
        )
        .unique([of, "name"])
        .people(Methods::ALL, Rows::Through(of))
}
