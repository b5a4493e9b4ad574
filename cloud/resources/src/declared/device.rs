//! Devices (docs/spec/cloud.md#model-device).

use crate::access::{Action, Methods, Role, Rows};
use crate::check::Check;
use crate::field::{
    Constant, Default, OnDelete, Writer, flag, int, link, owner, short, text, time, word, words,
};
use crate::resource::Resource;

pub(super) fn all() -> Vec<Resource> {
    vec![device(), device_plugin_field()]
}

/// A field that a plugin adds to a device's report; it cannot be written in any other way
/// (docs/spec/cloud.md#model-plugin-fields).
fn device_plugin_field() -> Resource {
    Resource::new(
        "device_plugin_field",
        "what a plugin on a device adds to the device's report",
    )
    .fields([
        owner("device", "device").by(Writer::Platform),
        words("plugin", 1, 63)
            .required()
            .by(Writer::Platform)
            .doc("the plugin's name"),
        words("name", 1, 64)
            .required()
            .by(Writer::Platform)
            .doc("the field's name"),
        text("value", 256)
            .required()
            .by(Writer::Platform)
            .doc("as text, whatever its type"),
        word("value_type", &["text", "number", "boolean"])
            .required()
            .by(Writer::Platform)
            .doc("what the value is"),
        text("unit", 16)
            .by(Writer::Platform)
            .doc("the unit of the value, for people"),
    ])
    .unique(["device", "plugin", "name"])
    .people(Methods::READ, Rows::Through("device"))
    .devices(Methods::READ, Rows::Through("device"))
}

/// The device to which a device key belongs.
const ITSELF: Rows = Rows::Where("actor eq @actor");

/// Devices of fleets in which the user is an operator, in addition to those of fleets that the user may change.
const OPERATED: Rows = Rows::Where(
    "belongs_to__application/any(a:a/user_application_membership/any(s:s/user eq @user and s/application_membership_role/any(r:r/name eq 'operator')) \
     or a/team_application_access/any(t:t/application_membership_role/any(r:r/name eq 'operator') and t/team/any(g:g/team_membership/any(m:m/user eq @user))))",
);

fn device() -> Resource {
    let fields = Resource::new("device", "a device").fields([
        link("actor", "actor", OnDelete::Refuse).owned(),
        words("uuid", 32, 62)
            .check(Check::DeviceUuid)
            .default(Default::Uuid)
            .by(Writer::Creator),
        short("local_id")
            .by(Writer::People)
            .doc("an id that the creator of the device chooses"),
        short("device_name")
            .never_null()
            .check(Check::OneLine)
            .by(Writer::Provisioning)
            .doc("two random words joined by `-` by default"),
        text("note", 1_000_000).by(Writer::People).doc("for people"),
        link("is_of__device_type", "device_type", OnDelete::Refuse)
            .required()
            .by(Writer::People),
        link("belongs_to__application", "application", OnDelete::Cascade)
            .by(Writer::People)
            .belongs(),
    ]);
    let fields = what_it_may_do(what_it_should_be(what_it_says(how_it_is_reached(fields))));
    fields
        .unique(["uuid"])
        .unique(["actor"])
        .index(["device_name"])
        .linked_by("device_tag", "device")
        .linked_by("device_config_variable", "device")
        .linked_by("device_environment_variable", "device")
        .linked_by("image_install", "device")
        .many("installs__image", "image_install", "device")
        .linked_by("service_install", "device")
        .many("installs__service", "service_install", "device")
        .linked_by("device_plugin_field", "device")
        .linked_by("device_history", "tracks__device")
        .people(Methods::ALL, Rows::Through("belongs_to__application"))
        .people(Methods::UPDATE, OPERATED)
        .grant(
            Role::ProvisioningKey,
            Methods::CREATE,
            Rows::Where("belongs_to__application/any(a:a/actor eq @actor)"),
        )
        .devices(Methods::READ.and(Methods::UPDATE), ITSELF)
        .people_action(
            Action::SupervisorProxyWrite,
            Rows::Through("belongs_to__application"),
        )
        .people_action(Action::SupervisorProxyWrite, OPERATED)
        .people_action(Action::Tunnel, Rows::Through("belongs_to__application"))
        .people_action(Action::Tunnel, OPERATED)
        .action(
            Role::User,
            Action::CreateDeviceKey,
            Rows::Through("belongs_to__application"),
        )
        .action(
            Role::User,
            Action::SshHost,
            Rows::Through("belongs_to__application"),
        )
        .people_action(
            Action::ReadTargetState,
            Rows::Through("belongs_to__application"),
        )
        .action(Role::DeviceKey, Action::ReadTargetState, ITSELF)
        .action(Role::DeviceKey, Action::WriteLog, ITSELF)
        .action(Role::DeviceKey, Action::CloudLink, ITSELF)
        .action(Role::DeviceKey, Action::SupervisorProxyWrite, ITSELF)
}

/// Adds what the platform knows about its connection.
fn how_it_is_reached(device: Resource) -> Resource {
    device.fields([
        word(
            "api_heartbeat_state",
            &["online", "offline", "timeout", "unknown"],
        )
        .default(Default::Text("unknown"))
        .by(Writer::Platform)
        .doc("whether it polls"),
        time("changed_api_heartbeat_state_on__date")
            .by(Writer::Platform)
            .doc("when that last changed"),
        flag("is_connected_to_vpn")
            .by(Writer::Platform)
            .doc("whether it holds its tunnel"),
        time("last_vpn_event")
            .by(Writer::Platform)
            .doc("when that was last written"),
        flag("is_online")
            .by(Writer::Platform)
            .doc("the same as is_connected_to_vpn"),
        time("last_connectivity_event").by(Writer::Platform),
        time("is_locked_until__date").by(Writer::People),
        text("public_address", 50)
            .by(Writer::Platform)
            .doc("the address from which its last report came"),
        text("ip_address", 2000)
            .check(Check::SpaceSeparated)
            .by(Writer::Device),
        text("mac_address", 900)
            .check(Check::SpaceSeparated)
            .by(Writer::Device),
        link(
            "is_managed_by__service_instance",
            "service_instance",
            OnDelete::SetNull,
        )
        .by(Writer::Platform)
        .doc("the server that holds its tunnel"),
        int("api_port")
            .by(Writer::Device)
            .doc("port of its own API"),
        text("api_secret", 64)
            .by(Writer::Device)
            .secret()
            .encrypted(),
    ])
}

/// Adds what it reports about itself.
fn what_it_says(device: Resource) -> Resource {
    device.fields([
        int("memory_usage").by(Writer::Device).doc("MB"),
        int("memory_total").by(Writer::Device).doc("MB"),
        int("storage_usage").by(Writer::Device).doc("MB"),
        int("storage_total").by(Writer::Device).doc("MB"),
        short("storage_block_device")
            .by(Writer::Device)
            .doc("the block device of that storage"),
        int("cpu_usage").by(Writer::Device).doc("percent"),
        int("cpu_temp").by(Writer::Device).doc("°C"),
        short("cpu_id").check(Check::CpuId).by(Writer::Device),
        flag("is_undervolted").by(Writer::Device),
        link("is_running__release", "release", OnDelete::Ignore)
            .by(Writer::Device)
            .doc("the release may be deleted; the link then refers to no record"),
        int("download_progress").by(Writer::Device).doc("percent"),
        text("status", 50)
            .by(Writer::Device)
            .doc("what it is doing according to its report, in a word"),
        text("os_version", 70).by(Writer::Device),
        word("os_variant", &["prod", "dev"]).by(Writer::Device),
        text("supervisor_version", 20).by(Writer::Device),
        int("provisioning_progress")
            .by(Writer::Device)
            .doc("percent"),
        short("provisioning_state").by(Writer::Device),
        word(
            "update_status",
            &[
                "rejected",
                "downloading",
                "downloaded",
                "applying changes",
                "aborted",
                "done",
            ],
        )
        .by(Writer::Device),
        time("last_update_status_event")
            .by(Writer::Platform)
            .doc("when that was last written"),
        word(
            "overall_status",
            &[
                "inactive",
                "post-provisioning",
                "configuring",
                "disconnected",
                "updating",
                "reduced-functionality",
                "operational",
            ],
        )
        .never_null()
        .computed()
        .doc("its overall state, in a word"),
        int("overall_progress").computed().doc("percent"),
    ])
}

/// Adds what it should run.
fn what_it_should_be(device: Resource) -> Resource {
    device.fields([
        link("is_pinned_on__release", "release", OnDelete::Refuse)
            .by(Writer::Provisioning)
            .doc("the release that it should run, whatever its fleet runs"),
        link("should_be_running__release", "release", OnDelete::Ignore)
            .computed()
            .doc("the release to which it is pinned, otherwise that of its fleet"),
        link(
            "should_be_operated_by__release",
            "release",
            OnDelete::Refuse,
        )
        .by(Writer::People)
        .doc("the operating system that it should have"),
        link("should_be_managed_by__release", "release", OnDelete::Refuse)
            .by(Writer::People)
            .doc("the supervisor that it should have"),
    ])
}

/// Adds what people decide about it, and its location.
fn what_it_may_do(device: Resource) -> Resource {
    device.fields([
        flag("is_active")
            .default(Default::Boolean(true))
            .by(Writer::People)
            .doc("whether it is in use"),
        flag("is_frozen").constant(Constant::Boolean(false)),
        flag("is_web_accessible")
            .by(Writer::People)
            .doc("if the type of its fleet allows that"),
        time("is_accessible_by_support_until__date").by(Writer::People),
        link("belongs_to__user", "user", OnDelete::SetNull).by(Writer::Platform),
        short("latitude").by(Writer::Platform),
        short("longitude").by(Writer::Platform),
        short("custom_latitude")
            .by(Writer::People)
            .doc("its location according to people"),
        short("custom_longitude").by(Writer::People),
        short("location").by(Writer::Platform),
    ])
}
