//! The history of devices, and the tunnel servers (docs/spec/cloud.md#model-history).

use crate::access::{Methods, Role, Rows};
use crate::field::{Field, OnDelete, Writer, flag, link, short, text, time, word, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![service_instance(), device_history()]
}

fn service_instance() -> Resource {
    Resource::new("service_instance", "a server that holds tunnels of devices")
        .fields([
            word("service_type", &["vpn"]).required(),
            words("ip_address", 1, 39).required(),
            time("last_heartbeat").required(),
        ])
        .many(
            "manages__device",
            "device",
            "is_managed_by__service_instance",
        )
        .people(Methods::READ, Rows::Where("service_type eq 'vpn'"))
        .grant(
            Role::TunnelServer,
            Methods::ALL,
            Rows::Where("service_type eq 'vpn'"),
        )
}

fn device_history() -> Resource {
    // The rows that an entry refers to may no longer exist.
    let was = |name, to| -> Field { link(name, to, OnDelete::Ignore).by(Writer::Platform) };
    Resource::new(
        "device_history",
        "the state of a device from one change to the next",
    )
    .fields([
        time("end_timestamp")
            .by(Writer::Platform)
            .doc("when that ended; null if it has not"),
        was("tracks__device", "device"),
        was("tracks__actor", "actor"),
        text("uuid", 62).by(Writer::Platform),
        was("belongs_to__application", "application"),
        flag("is_active").by(Writer::Platform),
        was("is_running__release", "release"),
        was("is_pinned_on__release", "release"),
        was("is_managed_by__service_instance", "service_instance"),
        text("os_version", 70).by(Writer::Platform),
        word("os_variant", &["prod", "dev"]).by(Writer::Platform),
        text("supervisor_version", 20).by(Writer::Platform),
        was("is_of__device_type", "device_type"),
        short("cpu_id").by(Writer::Platform),
        was("should_be_managed_by__release", "release"),
        was("is_created_by__actor", "actor"),
        was("is_ended_by__actor", "actor"),
    ])
    .index(["uuid", "created_at"])
    .people(Methods::READ, Rows::Through("belongs_to__application"))
}
