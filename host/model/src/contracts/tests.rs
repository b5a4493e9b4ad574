use serde_json::json;

use super::*;
use crate::{Branding, LocalDefaults};

fn offers() -> DeviceProperties {
    DeviceProperties {
        supervisor: "19.0.0".into(),
        os: Some(("someos".into(), "2.48.0+rev1".into())),
        kernel: Some("4.9.140-l4t-r32.2".into()),
        device_type: "raspberrypi4-64".into(),
        arch: "aarch64".into(),
    }
}

/// A target of two apps: `7`, which has the service `main` with this contract, and `8` without any.
fn target(contract: Value, labels: Value) -> TargetState {
    let app = |contract: Value, labels: Value| {
        json!({"name": "a", "commit": "c", "releaseId": 1, "services": {"1": {
            "imageId": 1, "serviceName": "main", "image": "i", "environment": {}, "labels": labels,
            "contract": contract,
        }}})
    };
    let body =
        json!({"local": {"apps": {"7": app(contract, labels), "8": app(Value::Null, json!({}))}}});
    let defaults = LocalDefaults {
        device_name: "local".into(),
        branding: Branding::default(),
    };
    TargetState::from_local_json(&body, &defaults).unwrap()
}

fn needs(needs: Value) -> TargetState {
    target(
        json!({"type": "sw.container", "requires": needs}),
        json!({}),
    )
}

fn rejected(mut target: TargetState) -> Option<String> {
    let held = hold_to(&mut target, &offers(), &Branding::default()).unwrap();
    assert!(held.dropped.is_empty());
    assert!(held.rejected.keys().all(|app| app.as_str() == "7"));
    held.rejected.into_values().next()
}

#[test]
fn needs_are_met_by_what_the_device_is() {
    for need in [
        json!({"type": "sw.supervisor", "version": ">=10.0.0"}),
        json!({"type": "sw.supervisor", "slug": "any-name"}),
        json!({"type": "sw.os", "slug": "someos", "version": ">=2.40 <3"}),
        json!({"type": "sw.kernel", "version": ">=4.9.140"}),
        json!({"type": "sw.l4t", "version": "32.2"}),
        json!({"type": "hw.device-type", "slug": "raspberrypi4-64"}),
        json!({"type": "arch.sw", "slug": "aarch64"}),
        json!({"or": [{"type": "arch.sw", "slug": "amd64"}, {"type": "arch.sw", "slug": "aarch64"}]}),
    ] {
        assert_eq!(rejected(needs(json!([need]))), None, "{need}");
    }
    for contract in [
        json!(null),
        json!({}),
        json!({"requires": []}),
        json!({"requires": null}),
    ] {
        assert_eq!(rejected(target(contract, json!({}))), None);
    }
}

#[test]
fn an_unmet_need_rejects_its_app_and_no_other() {
    for need in [
        json!({"type": "sw.supervisor", "version": ">=20"}),
        json!({"type": "sw.os", "slug": "otheros"}),
        json!({"type": "sw.os", "slug": "someos", "version": ">2.48"}),
        json!({"type": "sw.kernel", "version": "^5"}),
        json!({"type": "sw.l4t", "version": ">=32.4"}),
        json!({"type": "hw.device-type", "slug": "raspberrypi3"}),
        json!({"type": "hw.device-type", "slug": "raspberrypi4-64", "version": ">=1"}),
        json!({"or": [{"type": "arch.sw", "slug": "amd64"}, {"type": "arch.sw", "slug": "i386"}]}),
        json!({"or": []}),
    ] {
        let fine = json!({"type": "sw.supervisor"});
        assert!(rejected(needs(json!([fine, need]))).is_some(), "{need}");
    }
    let why = rejected(needs(json!([{"type": "sw.supervisor", "version": ">=20"}])));
    assert_eq!(
        why.as_deref(),
        Some("service `main` needs `sw.supervisor` `>=20`")
    );
    // An unknown property is treated as missing.
    let mut unknown = needs(json!([{"type": "sw.os"}]));
    let held = hold_to(
        &mut unknown,
        &DeviceProperties::default(),
        &Branding::default(),
    )
    .unwrap();
    assert_eq!(held.rejected.len(), 1);
}

#[test]
fn an_optional_service_with_an_unmet_need_is_left_out() {
    let contract = json!({"requires": [{"type": "arch.sw", "slug": "amd64"}]});
    let mut optional = target(contract, json!({"io.platform.features.optional": "1"}));
    let held = hold_to(&mut optional, &offers(), &Branding::default()).unwrap();
    assert_eq!(held.rejected, BTreeMap::new());
    assert_eq!(held.dropped.len(), 1);
    let release = optional.apps[&"7".parse().unwrap()]
        .release
        .as_ref()
        .unwrap();
    assert!(release.services.is_empty());
}

#[test]
fn a_contract_that_is_not_understood_makes_the_target_invalid() {
    let mut deep = json!({"type": "arch.sw"});
    for _ in 0..20 {
        deep = json!({"or": [deep]});
    }
    for contract in [
        json!("x"),
        json!({"requires": {}}),
        json!({"requires": ["x"]}),
        json!({"requires": [{}]}),
        json!({"requires": [{"type": "sw.application"}]}),
        json!({"requires": [{"or": {}}]}),
        json!({"requires": [{"or": [{"type": "nothing"}]}]}),
        json!({"requires": [{"type": "sw.os", "version": "latest"}]}),
        json!({"requires": [{"type": "sw.os", "version": 2}]}),
        json!({"requires": [deep]}),
    ] {
        let mut target = target(contract.clone(), json!({}));
        let errors = hold_to(&mut target, &offers(), &Branding::default()).unwrap_err();
        let text = errors.to_string();
        assert!(text.contains("`apps.7.main.contract"), "{contract}: {text}");
    }
}
