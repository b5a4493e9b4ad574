//! [`os::DBus`] against a private bus with stand-ins for systemd's services.

use std::time::Duration;

use os::{Action, DBus, HostOs, MethodCall, MethodError, OsError, UnitName, UnitState};
use tests::SystemBus;

const LOGIND: &str = "org.freedesktop.login1";
const SYSTEMD: &str = "org.freedesktop.systemd1";

#[expect(clippy::unwrap_used, reason = "names in this file are names")]
fn unit(name: &str) -> UnitName {
    name.parse().unwrap()
}

#[tokio::test]
async fn the_device_reboots_and_powers_off_through_logind() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    os.act(Action::Reboot).await.unwrap();
    os.act(Action::PowerOff).await.unwrap();
    assert_eq!(bus.calls(), ["Reboot False", "PowerOff False"]);
}

#[tokio::test]
async fn a_unit_is_as_systemd_says_and_one_that_is_missing_is_no_error() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    for (name, load, active, sub) in [
        ("openvpn.service", "loaded", "active", "running"),
        ("a-b@c.service", "loaded", "failed", "failed"),
        ("masked.service", "masked", "inactive", "dead"),
    ] {
        bus.set_unit(name, load, active, sub).await;
        let expected = UnitState {
            load_state: load.into(),
            active_state: active.into(),
            sub_state: sub.into(),
        };
        assert_eq!(os.unit(&unit(name)).await.unwrap(), expected);
    }
    let missing = os.unit(&unit("missing.service")).await.unwrap();
    assert_eq!(missing, UnitState::not_found());
    assert!(!missing.is_loaded());
}

#[tokio::test]
async fn units_are_started_stopped_and_restarted_where_contradicting_jobs_are_replaced() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    let vpn = unit("openvpn.service");
    bus.set_unit("openvpn.service", "loaded", "inactive", "dead")
        .await;
    os.act(Action::Start(vpn.clone())).await.unwrap();
    assert_eq!(os.unit(&vpn).await.unwrap().active_state, "active");
    os.act(Action::Stop(vpn.clone())).await.unwrap();
    assert_eq!(os.unit(&vpn).await.unwrap().active_state, "inactive");
    os.act(Action::Restart(vpn.clone())).await.unwrap();
    assert_eq!(os.unit(&vpn).await.unwrap().sub_state, "running");
    assert_eq!(
        bus.calls(),
        [
            r#"StartUnit "openvpn.service" "replace""#,
            r#"StopUnit "openvpn.service" "replace""#,
            r#"RestartUnit "openvpn.service" "replace""#,
        ]
    );
}

#[tokio::test]
async fn the_host_is_named_through_hostnamed_and_a_bad_name_does_not_get_there() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    os.act(Action::SetHostName("gate-1".into())).await.unwrap();
    let refused = os
        .act(Action::SetHostName("gate 2".into()))
        .await
        .unwrap_err();
    assert!(matches!(refused, OsError::InvalidHostName(_)), "{refused}");
    assert_eq!(bus.calls(), [r#"SetStaticHostname "gate-1" False"#]);
}

#[tokio::test]
async fn a_refusal_says_what_was_refused_and_why() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    let missing = os
        .act(Action::Restart(unit("missing.service")))
        .await
        .unwrap_err();
    let message = missing.to_string();
    assert!(message.contains("RestartUnit"), "{message}");
    assert!(
        message.contains("Unit missing.service not found."),
        "{message}"
    );
    assert!(
        message.contains("org.freedesktop.systemd1.NoSuchUnit"),
        "{message}"
    );

    bus.replace(
        LOGIND,
        "Reboot",
        "b",
        "",
        "raise dbus.exceptions.DBusException('not today', name='org.freedesktop.DBus.Error.AccessDenied')",
    )
    .await;
    let message = os.act(Action::Reboot).await.unwrap_err().to_string();
    assert!(message.contains("Reboot"), "{message}");
    assert!(message.contains("not today"), "{message}");
    assert!(message.contains("AccessDenied"), "{message}");
}

#[tokio::test]
async fn an_answer_of_another_type_is_an_error() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    bus.replace(SYSTEMD, "LoadUnit", "s", "s", "ret = 'text'")
        .await;
    let error = os.unit(&unit("a.service")).await.unwrap_err();
    assert!(matches!(error, OsError::Answer { .. }), "{error}");
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_given_up() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address()).answer_within(Duration::from_millis(300));
    bus.replace(LOGIND, "Reboot", "b", "", "time.sleep(1000)")
        .await;
    let error = os.act(Action::Reboot).await.unwrap_err();
    assert!(matches!(error, OsError::TimedOut { .. }), "{error}");
    // The other services are still reached, over the same connection.
    os.act(Action::SetHostName("gate".into())).await.unwrap();
}

#[tokio::test]
async fn a_bus_that_is_not_there_is_named_and_is_found_when_it_comes_back() {
    let nowhere = DBus::connect("unix:path=/nowhere/bus");
    let error = nowhere.act(Action::Reboot).await.unwrap_err();
    assert!(matches!(error, OsError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("unix:path=/nowhere/bus"));
    let error = DBus::connect("nonsense")
        .act(Action::Reboot)
        .await
        .unwrap_err();
    assert!(matches!(error, OsError::Unreachable { .. }), "{error}");

    let Some(mut bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    os.act(Action::Reboot).await.unwrap();
    assert_eq!(bus.calls(), ["Reboot False"]);
    bus.restart().await;
    os.act(Action::PowerOff).await.unwrap();
    assert_eq!(bus.calls(), ["PowerOff False"]);
}

fn method(service: &str, path: &str, member: &str, signature: &str, arguments: &str) -> MethodCall {
    let (interface, member) = member.rsplit_once('.').unwrap_or_default();
    MethodCall {
        service: service.to_owned(),
        path: path.to_owned(),
        interface: interface.to_owned(),
        member: member.to_owned(),
        signature: signature.to_owned(),
        arguments: arguments.to_owned(),
        longest_answer: 64 << 10,
    }
}

#[tokio::test]
async fn methods_take_and_answer_json() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    bus.set_unit("openvpn.service", "loaded", "active", "running")
        .await;
    let os = DBus::connect(bus.address());
    let manager = "/org/freedesktop/systemd1";
    let load = "org.freedesktop.systemd1.Manager.LoadUnit";
    let call = method(SYSTEMD, manager, load, "s", "[\"openvpn.service\"]");
    let answer = os.call_method(&call).await.unwrap();
    let [path] = serde_json::from_str::<[String; 1]>(&answer).unwrap();
    // A variant in the answer.
    let get = "org.freedesktop.DBus.Properties.Get";
    let property = "[\"org.freedesktop.systemd1.Unit\",\"ActiveState\"]";
    let call = method(SYSTEMD, &path, get, "ss", property);
    let answer = os.call_method(&call).await.unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let expected = serde_json::json!([{ "type": "s", "data": "active" }]);
    assert_eq!(answer, expected);
    // A dictionary of variants.
    let all = "org.freedesktop.DBus.Properties.GetAll";
    let unit = "[\"org.freedesktop.systemd1.Unit\"]";
    let call = method(SYSTEMD, &path, all, "s", unit);
    let answer = os.call_method(&call).await.unwrap();
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer[0]["SubState"]["data"], "running", "{answer}");
    // No arguments.
    let names = method(
        "org.freedesktop.DBus",
        "/org/freedesktop/DBus",
        "org.freedesktop.DBus.ListNames",
        "",
        "[]",
    );
    let answer = os.call_method(&names).await.unwrap();
    assert!(answer.contains(SYSTEMD), "{answer}");
}

#[tokio::test]
async fn a_method_that_cannot_be_called_says_why() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let os = DBus::connect(bus.address());
    let error = async |call: &MethodCall| os.call_method(call).await.unwrap_err();
    let manager = "/org/freedesktop/systemd1";
    let unknown = method(SYSTEMD, manager, "org.acme.Nothing", "", "[]");
    let refused = error(&unknown).await;
    assert!(
        matches!(refused, MethodError::Refused { .. }),
        "{refused:?}"
    );
    let nobody = method("org.acme.Nobody", "/", "org.acme.Nobody.Do", "", "[]");
    let refused = error(&nobody).await;
    assert!(
        matches!(refused, MethodError::Refused { .. }),
        "{refused:?}"
    );
    let load = "org.freedesktop.systemd1.Manager.LoadUnit";
    for call in [
        method(SYSTEMD, manager, load, "s", "[1]"),
        method("no name", manager, load, "", "[]"),
        method(SYSTEMD, "no path", load, "", "[]"),
    ] {
        let invalid = error(&call).await;
        assert!(
            matches!(invalid, MethodError::Invalid(_)),
            "{call:?} {invalid:?}"
        );
    }
    let short = MethodCall {
        longest_answer: 10,
        ..method(SYSTEMD, manager, load, "s", "[\"openvpn.service\"]")
    };
    let unreadable = error(&short).await;
    assert!(
        matches!(unreadable, MethodError::Unreadable(_)),
        "{unreadable:?}"
    );
    let nowhere = DBus::connect("unix:path=/nowhere");
    let unreachable = nowhere.call_method(&unknown).await.unwrap_err();
    assert!(
        matches!(unreachable, MethodError::Unreachable(_)),
        "{unreachable:?}"
    );
}
