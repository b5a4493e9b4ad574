//! Services, and their installations on devices (docs/spec/cloud.md#model-service).

use crate::access::{Methods, Rows};
use crate::check::Check;
use crate::field::{OnDelete, Writer, int, link, owner, text, time, word, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![
        service(),
        service_label(),
        service_install(),
        image_install(),
    ]
}

fn service() -> Resource {
    Resource::new("service", "one of the services of a fleet")
        .also("application__has__service_name")
        .fields([
            owner("application", "application"),
            words("service_name", 1, 63)
                .check(Check::ServiceName)
                .required(),
        ])
        .unique(["application", "service_name"])
        .linked_by("service_environment_variable", "service")
        .linked_by("service_label", "service")
        .linked_by("service_install", "installs__service")
        .many("is_built_by__image", "image", "is_a_build_of__service")
        .guests(Methods::READ, Rows::Through("application"))
        .people(Methods::ALL, Rows::Through("application"))
        .devices(Methods::READ, Rows::Through("application"))
}

fn service_label() -> Resource {
    Resource::new("service_label", "a label of a service's containers")
        .also("service__has__label_name")
        .fields([
            owner("service", "service"),
            words("label_name", 1, 255).required(),
            text("value", 300).required(),
        ])
        .unique(["service", "label_name"])
        .people(Methods::ALL, Rows::Through("service"))
        .devices(Methods::READ, Rows::Through("service"))
}

fn service_install() -> Resource {
    Resource::new("service_install", "says that a device should run a service")
        .also("device__installs__service")
        .also("device__installs__application__has__service_name")
        .fields([
            owner("device", "device"),
            link("installs__service", "service", OnDelete::Cascade).required(),
        ])
        .link_also("service", "service", "installs__service")
        .unique(["device", "installs__service"])
        .linked_by("device_service_environment_variable", "service_install")
        .people(Methods::ALL, Rows::Through("device"))
        .devices(Methods::READ.and(Methods::UPDATE).and(Methods::DELETE),
            Rows::Through("device"),
        )
        // Services of the device's fleet, or of the releases that manage or operate the device.
        .devices(Methods::CREATE,
            Rows::Where(
                "device/any(d:d/actor eq @actor) and installs__service/any(s:\
                 s/application/any(a:a/owns__device/any(d:d/actor eq @actor)) \
                 or s/is_built_by__image/any(i:i/release_image/any(p:p/is_part_of__release/any(r:\
                 r/should_manage__device/any(d:d/actor eq @actor) or r/should_operate__device/any(d:d/actor eq @actor)))))",
            ),
        )
}

/// The states of an image on a device, as devices report them.
const INSTALL_STATUS: &[&str] = &[
    "Stopping",
    "Stopped",
    "Downloading",
    "Downloaded",
    "Installing",
    "Installed",
    "Starting",
    "Running",
    "Idle",
    "Handing over",
    "Awaiting handover",
    "Deleting",
    "deleted",
    "Dead",
    "paused",
    "restarting",
    "removing",
    "exited",
    "configuring",
    "Unknown",
];

fn image_install() -> Resource {
    Resource::new("image_install", "an image on a device, and its state there")
        .also("device__installs__image")
        .fields([
            owner("device", "device"),
            link("installs__image", "image", OnDelete::Cascade).required(),
            time("install_date").required(),
            int("download_progress").by(Writer::Device).doc("percent"),
            word("status", INSTALL_STATUS)
                .required()
                .doc("`deleted` once the device no longer has it"),
            link("is_provided_by__release", "release", OnDelete::Cascade).required(),
        ])
        .link_also("image", "image", "installs__image")
        .unique(["device", "installs__image"])
        .people(Methods::ALL, Rows::Through("device"))
        .devices(
            Methods::READ.and(Methods::CREATE).and(Methods::UPDATE),
            Rows::Through("device"),
        )
}
