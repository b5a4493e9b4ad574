//! The identity, from files in memory: what is read, what is completed, and what is refused.

use std::sync::Mutex;

use serde_json::json;

use super::*;

/// A file in memory, and how often it was written.
struct File(Mutex<(Map<String, Value>, usize)>);

impl ConfigFile for File {
    fn read(&self) -> Result<Map<String, Value>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.lock().unwrap().0.clone())
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut Map<String, Value>),
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut held = self.0.lock().unwrap();
        change(&mut held.0);
        held.1 += 1;
        Ok(())
    }
}

fn file(content: Value) -> File {
    File(Mutex::new((content.as_object().unwrap().clone(), 0)))
}

fn own() -> DeviceUuid {
    "0123456789abcdef0123456789abcdef".parse().unwrap()
}

const UUID: &str = "ffffffffffffffffffffffffffffffff";

#[test]
fn without_an_endpoint_the_device_has_no_cloud_and_its_file_is_not_written() {
    for (content, uuid) in [
        (json!({}), own().to_string()),
        (
            json!({"apiEndpoint": "", "deviceApiKey": "k"}),
            own().to_string(),
        ),
        (json!({"apiEndpoint": null, "uuid": UUID}), UUID.to_owned()),
    ] {
        let file = file(content);
        let found = establish(&file, &own(), "rootCA", PlainHttp::Loopback).unwrap();
        assert_eq!(found.uuid.as_str(), uuid);
        assert_eq!(found.cloud, None);
        assert_eq!(file.0.lock().unwrap().1, 0);
    }
}

#[test]
fn a_managed_device_gets_uuid_and_key_at_its_first_start_and_keeps_them() {
    let file =
        file(json!({"apiEndpoint": "https://api.example.com/", "apiKey": "provision", "x": 1}));
    let first = establish(&file, &own(), "rootCA", PlainHttp::Loopback)
        .unwrap()
        .cloud
        .unwrap();
    assert_eq!(first.uuid, own());
    assert_eq!(first.endpoint, "https://api.example.com");
    assert_eq!(first.device_key.len(), 32);
    assert!(!first.is_provisioned());
    assert_eq!(first.provisioning_key().unwrap().reveal(), "provision");
    let other: DeviceUuid = UUID.parse().unwrap();
    let second = establish(&file, &other, "rootCA", PlainHttp::Loopback)
        .unwrap()
        .cloud
        .unwrap();
    assert_eq!(second, first, "the file is the truth");
    let (held, writes) = file.0.into_inner().unwrap();
    assert_eq!(writes, 1);
    assert_eq!(held["x"], 1);
    assert_eq!(held["deviceApiKey"], first.device_key);
}

#[test]
fn a_whole_identity_is_read_and_left_as_it_is() {
    let file = file(json!({
        "apiEndpoint": "http://127.0.0.1:8080",
        "uuid": UUID,
        "deviceApiKey": "secret",
        "deviceId": "12",
        "registered_at": 1_700_000_000_000.5,
    }));
    let found = establish(&file, &own(), "rootCA", PlainHttp::Loopback)
        .unwrap()
        .cloud
        .unwrap();
    assert!(found.is_provisioned());
    assert_eq!((found.device_id, found.uuid.as_str()), (Some(12), UUID));
    assert_eq!(file.0.lock().unwrap().1, 0);
    assert!(!format!("{found:?}").contains("secret"));
}

#[test]
fn a_cloud_elsewhere_without_tls_is_refused_unless_the_owner_allows_it() {
    for (endpoint, elsewhere) in [
        ("https://api.example.com", false),
        ("http://127.0.0.1:8080", false),
        ("http://127.8.8.8", false),
        ("http://localhost:8080", false),
        ("http://[::1]:8080", false),
        ("http://[::ffff:127.0.0.1]:8080", false),
        ("http://api.example.com", true),
        ("http://localhost.example.com", true),
        ("http://127.0.0.1.example.com", true),
        ("http://192.168.7.2:8080/some/path", true),
        ("http://0.0.0.0:8080", true),
        ("http://[fe80::1]:8080", true),
    ] {
        for key in ["apiEndpoint", "logsEndpoint"] {
            let mut content = json!({ "apiEndpoint": "https://a.b" });
            content[key] = endpoint.into();
            let file = file(content);
            let found = establish(&file, &own(), "rootCA", PlainHttp::Loopback);
            assert_eq!(found.is_err(), elsewhere, "{key}: {endpoint}");
            if let Err(error) = found {
                let text = error.to_string();
                assert!(matches!(error, IdentityError::Plain { .. }), "{text}");
                assert!(text.contains("allow_plain = true"), "{text}");
                assert!(text.contains(&format!("`{key}`")), "{text}");
                assert!(!text.contains("some/path"), "{text}");
                // No key was created for it either.
                assert_eq!(file.0.lock().unwrap().1, 0);
            }
            establish(&file, &own(), "rootCA", PlainHttp::Anywhere).unwrap();
        }
    }
}

#[test]
fn an_unreadable_setting_is_named_without_its_value() {
    let with = |key: &str, value: Value| {
        let mut content = json!({"apiEndpoint": "https://a.b", "uuid": UUID, "deviceApiKey": "k"});
        content[key] = value;
        content
    };
    for (key, value) in [
        ("uuid", json!("short-SECRET")),
        ("uuid", json!(12)),
        ("apiEndpoint", json!("ftp://SECRET")),
        ("apiEndpoint", json!("SECRET")),
        ("apiEndpoint", json!("https://me:SECRET@a.b")),
        ("logsEndpoint", json!("SECRET")),
        ("deviceApiKey", json!("SECRET\r\nX: y")),
        ("deviceApiKey", json!({"SECRET": 1})),
        ("deviceId", json!("SECRET")),
        ("deviceId", json!(-1)),
        ("rootCA", json!("SECRET")),
        ("rootCA", json!("SGVsbG8=")),
    ] {
        let error = establish(
            &file(with(key, value.clone())),
            &own(),
            "rootCA",
            PlainHttp::Loopback,
        )
        .unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("`{key}`")), "{value}: {text}");
        assert!(!text.contains("SECRET"), "{value}: {text}");
    }
}
