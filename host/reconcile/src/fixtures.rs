//! Apps and containers for unit tests.

use std::collections::BTreeSet;
use std::time::Duration;

use model::compose::{ApiKeys, DeviceFacts, HostFacts, KeyError, resolve};
use model::{
    ApiKey, AppId, Branding, ContainerState, CurrentService, DesiredApp, EngineKind, LocalDefaults,
    ServiceKey, ServiceName, TargetState,
};
use serde_json::{Value, json};

/// Returns an app with these services, in the form of a local target.
pub(crate) fn shop(release: &str, services: Value) -> DesiredApp {
    struct NoKeys;
    impl ApiKeys for NoKeys {
        fn service_key(&self, _: AppId, _: &ServiceName) -> Result<ApiKey, KeyError> {
            Ok(ApiKey::from_text(""))
        }
    }
    let mut numbered = serde_json::Map::new();
    for (number, service) in services.as_array().unwrap().iter().enumerate() {
        let mut whole = json!({ "imageId": number + 1, "image": "web:1", "environment": {}, "labels": {}, "running": true });
        let fields = whole.as_object_mut().unwrap();
        fields.extend(service.as_object().unwrap().clone());
        numbered.insert((number + 1).to_string(), whole);
    }
    let body = json!({ "local": { "name": "bench", "config": {}, "apps": { "1": {
        "name": "shop", "commit": release, "releaseId": "1", "services": numbered, "volumes": {}, "networks": {},
    } } } });
    let branding = Branding::default();
    let defaults = LocalDefaults {
        device_name: "bench".to_owned(),
        branding: branding.clone(),
    };
    let facts = DeviceFacts {
        uuid: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        name: "bench".into(),
        hostname: "bench".into(),
        device_type: "generic".into(),
        arch: "amd64".into(),
        os_version: "test".into(),
        host_root: "/".into(),
        api_port: 48484,
        branding,
        host: HostFacts::default(),
    };
    let target = TargetState::from_local_json(&body, &defaults).unwrap();
    let resolved = resolve(&target, &facts, &NoKeys).unwrap();
    let (_, app) = resolved.desired.apps.into_iter().next().unwrap();
    DesiredApp {
        uuid: "fleet".parse().unwrap(),
        ..app
    }
}

/// Returns a running container of one of its services.
pub(crate) fn container_of(app: &DesiredApp, name: &str) -> CurrentService {
    let service = &app.services[&name.parse::<ServiceName>().unwrap()];
    CurrentService {
        key: ServiceKey {
            app: app.uuid.clone(),
            service: service.key.service.clone(),
        },
        app_id: app.id,
        id: service.id,
        device: None,
        release: None,
        engine: EngineKind::Docker,
        container: "abc".parse().unwrap(),
        name: service.container_name(),
        image: "web:1".into(),
        engine_image: "sha256:ab".parse().unwrap(),
        state: ContainerState::Running,
        exit_code: None,
        health: None,
        created_at_ms: 0,
        digest: None,
        stop_grace: Duration::ZERO,
        waits_in_boot: None,
        depends_on: BTreeSet::new(),
    }
}

/// Returns a container of the service `name` of the app `app`, whose id is the service's name.
pub(crate) fn service(app: &str, name: &str, state: ContainerState) -> CurrentService {
    let desired = shop("c1", json!([{ "serviceName": name }]));
    let service = container_of(&desired, name);
    CurrentService {
        key: ServiceKey {
            app: app.parse().unwrap(),
            ..service.key
        },
        container: name.parse().unwrap(),
        state,
        ..service
    }
}
