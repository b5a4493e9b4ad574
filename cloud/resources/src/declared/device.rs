//! Devices and what belongs to them (cloud behaviour 1.5 and 1.6).

use crate::access::{Methods, Role, Rows};
use crate::field::{Default, OnDelete, Writer, flag, int, link, short, text, time, word, words};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![device(), device_tag()]
}

fn device() -> Resource {
    Resource::new("device", "a device")
        .field(
            link("actor", "actor", OnDelete::Refuse)
                .never_null()
                .by(Writer::Platform),
        )
        .field(
            words("uuid", 32, 62)
                .default(Default::Uuid)
                .by(Writer::Creator),
        )
        .field(short("device_name").never_null())
        .field(text("note", 1_000_000))
        .field(link("is_of__device_type", "device_type", OnDelete::Refuse).required())
        .field(link(
            "belongs_to__application",
            "application",
            OnDelete::Cascade,
        ))
        .field(
            word(
                "api_heartbeat_state",
                &["online", "offline", "timeout", "unknown"],
            )
            .default(Default::Text("unknown"))
            .by(Writer::Platform),
        )
        .field(flag("is_online").by(Writer::Platform))
        .field(time("last_connectivity_event").by(Writer::Platform))
        .field(int("memory_usage").by(Writer::Device))
        .field(short("api_secret").by(Writer::Device).secret())
        .field(link("is_running__release", "release", OnDelete::Ignore).by(Writer::Device))
        .field(link("is_pinned_on__release", "release", OnDelete::Refuse))
        .field(
            link("should_be_running__release", "release", OnDelete::Ignore)
                .computed()
                .doc("the release of its pin, or else of its fleet"),
        )
        .unique(["uuid"])
        .unique(["actor"])
        .many("device_tag", "device_tag", "device")
        .people(Methods::ALL, Rows::Through("belongs_to__application"))
        .grant(
            Role::DeviceKey,
            Methods::READ.and(Methods::UPDATE),
            Rows::Where("actor eq @actor"),
        )
}

fn device_tag() -> Resource {
    Resource::new("device_tag", "a label of a device")
        .also("device__has__tag_key")
        .field(link("device", "device", OnDelete::Cascade).required())
        .field(words("tag_key", 1, 100).required())
        .field(text("value", 10_000).required())
        .unique(["device", "tag_key"])
        .people(Methods::ALL, Rows::Through("device"))
        .grant(Role::DeviceKey, Methods::ALL, Rows::Through("device"))
}
