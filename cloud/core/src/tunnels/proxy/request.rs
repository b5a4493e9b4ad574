//! The request of a caller of the proxy, and its target devices.

use axum::body::Bytes;
use http::{Method, Uri};
use serde_json::{Map, Value};

use crate::tunnels::device_request::DeviceRequest;

/// A request to one or several devices.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    pub(super) recipients: Recipients,
    pub(super) device_request: DeviceRequest,
}

/// The target devices: every given criterion must match.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Recipients {
    uuid: Option<String>,
    device: Option<i64>,
    fleet: Option<i64>,
    /// The devices of these numbers; empty for all.
    among: Vec<i64>,
}

impl Recipients {
    /// Returns the filter for the devices in the query language, in the form used in an address.
    pub(super) fn filter(&self) -> String {
        let uuid = self
            .uuid
            .as_ref()
            .map(|uuid| format!("uuid%20eq%20%27{uuid}%27"));
        let device = self.device.map(|id| format!("id%20eq%20{id}"));
        let fleet = self
            .fleet
            .map(|id| format!("belongs_to__application%20eq%20{id}"));
        let among = (!self.among.is_empty()).then(|| {
            let numbers: Vec<String> = self.among.iter().map(i64::to_string).collect();
            format!("id%20in%20({})", numbers.join(","))
        });
        let all: Vec<String> = [uuid, device, fleet, among].into_iter().flatten().collect();
        all.join("%20and%20")
    }

    /// Whether at most one device can match.
    pub(super) fn is_one(&self) -> bool {
        self.uuid.is_some() || self.device.is_some()
    }

    /// Returns the fleet, if it alone says whose right is needed: all its devices are targets, or several of them.
    pub(super) fn whole_fleet(&self) -> Option<i64> {
        self.fleet.filter(|_| !self.is_one())
    }
}

impl ProxyRequest {
    /// Creates the request that makes all devices of a fleet restart its services.
    pub(super) fn restart(fleet: i64) -> Self {
        let data = serde_json::json!({ "appId": fleet });
        ProxyRequest {
            recipients: Recipients {
                fleet: Some(fleet),
                ..Recipients::default()
            },
            device_request: DeviceRequest {
                method: Method::POST,
                path: "/v1/restart".to_owned(),
                query: None,
                body: Some(Bytes::from(data.to_string())),
            },
        }
    }

    /// Creates a GET request to some devices of a fleet.
    pub(super) fn look_up(fleet: i64, among: Vec<i64>, path: &str) -> Self {
        ProxyRequest {
            recipients: Recipients {
                fleet: Some(fleet),
                among,
                ..Recipients::default()
            },
            device_request: DeviceRequest {
                method: Method::GET,
                path: path.to_owned(),
                query: None,
                body: None,
            },
        }
    }

    /// Reads a request to `/supervisor/…`.
    ///
    /// # Errors
    /// The error in the request.
    pub(super) fn parse(uri: &Uri, body: &Map<String, Value>) -> Result<Self, String> {
        let path = uri.path().strip_prefix("/supervisor").unwrap_or_default();
        if !path.starts_with('/') {
            return Err("the path on the device is missing: `/supervisor/ping`".to_owned());
        }
        let field = |name: &str| body.get(name).filter(|value| !value.is_null());
        let recipients = Recipients {
            uuid: field("uuid").map(uuid).transpose()?,
            device: field("deviceId")
                .map(|id| number("deviceId", id))
                .transpose()?,
            fleet: field("appId").map(|id| number("appId", id)).transpose()?,
            among: Vec::new(),
        };
        if recipients == Recipients::default() {
            return Err("one of `uuid`, `deviceId` and `appId` must select devices".to_owned());
        }
        let data = match field("data") {
            None => None,
            Some(data @ Value::Object(_)) => Some(Bytes::from(data.to_string())),
            Some(_) => return Err("`data` must be an object".to_owned()),
        };
        Ok(ProxyRequest {
            recipients,
            device_request: DeviceRequest {
                method: field("method").map_or(Ok(Method::POST), method)?,
                path: path.to_owned(),
                query: uri.query().and_then(without_key),
                body: data,
            },
        })
    }
}

/// Checks a uuid: it becomes part of a filter, so it must have the form of one.
fn uuid(value: &Value) -> Result<String, String> {
    match value.as_str() {
        Some(uuid)
            if (1..=62).contains(&uuid.len())
                && uuid.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            Ok(uuid.to_ascii_lowercase())
        }
        _ => Err("`uuid` must be the hexadecimal digits of a device".to_owned()),
    }
}

fn number(name: &str, value: &Value) -> Result<i64, String> {
    let number = match value {
        Value::Number(number) => number.as_i64(),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    };
    number
        .filter(|number| *number >= 0)
        .ok_or_else(|| format!("`{name}` must be a whole number"))
}

fn method(value: &Value) -> Result<Method, String> {
    let methods = [
        Method::PUT,
        Method::PATCH,
        Method::POST,
        Method::HEAD,
        Method::DELETE,
        Method::GET,
    ];
    let word = value.as_str().unwrap_or_default();
    methods
        .into_iter()
        .find(|method| method.as_str().eq_ignore_ascii_case(word))
        .ok_or_else(|| "`method` must be one of PUT, PATCH, POST, HEAD, DELETE and GET".to_owned())
}

/// Removes the caller's own key, which the device must not receive.
fn without_key(query: &str) -> Option<String> {
    let parts: Vec<&str> = query
        .split('&')
        .filter(|part| {
            let name = form_urlencoded::parse(part.as_bytes()).next();
            !part.is_empty() && name.is_none_or(|(name, _)| !name.eq_ignore_ascii_case("apikey"))
        })
        .collect();
    (!parts.is_empty()).then(|| parts.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn proxy_request(address: &str, body: Value) -> Result<ProxyRequest, String> {
        let uri: Uri = address.parse().expect("an address");
        ProxyRequest::parse(&uri, body.as_object().expect("an object"))
    }

    #[test]
    fn devices_are_named_in_three_ways_and_each_that_is_given_counts() {
        for (body, filter, whole) in [
            (json!({ "uuid": "AB12" }), "uuid eq 'ab12'", None),
            (json!({ "deviceId": 7 }), "id eq 7", None),
            (json!({ "deviceId": "7", "uuid": null }), "id eq 7", None),
            (
                json!({ "appId": 4 }),
                "belongs_to__application eq 4",
                Some(4),
            ),
            (
                json!({ "appId": "4", "deviceId": 7, "uuid": "ab" }),
                "uuid eq 'ab' and id eq 7 and belongs_to__application eq 4",
                None,
            ),
        ] {
            let found = proxy_request("/supervisor/ping", body.clone()).expect("one");
            let decoded = found
                .recipients
                .filter()
                .replace("%20", " ")
                .replace("%27", "'");
            assert_eq!(decoded, filter, "{body}");
            assert_eq!(found.recipients.whole_fleet(), whole, "{body}");
        }
    }

    #[test]
    fn requests_are_passed_on_without_the_callers_key() {
        let address = "/supervisor/v2/containerId?service=a%26b&APIKEY=1&api%6Bey=2&x";
        let body = json!({ "deviceId": 7, "method": "get" });
        let device_request = proxy_request(address, body).expect("one").device_request;
        assert_eq!(device_request.method, Method::GET);
        assert_eq!(device_request.path, "/v2/containerId");
        assert_eq!(device_request.query.as_deref(), Some("service=a%26b&x"));
        assert_eq!(device_request.body, None);
        let body = json!({ "deviceId": 7, "data": { "force": true } });
        let device_request = proxy_request("/supervisor/v1/update?apikey=3", body)
            .expect("one")
            .device_request;
        assert_eq!(device_request.method, Method::POST);
        assert_eq!(device_request.query, None);
        assert_eq!(
            device_request.body.as_deref(),
            Some(&b"{\"force\":true}"[..])
        );
    }

    #[test]
    fn requests_that_cannot_be_passed_on_are_refused_with_the_reason() {
        for (address, body, named) in [
            (
                "/supervisor/ping",
                json!({}),
                "`uuid`, `deviceId` and `appId`",
            ),
            ("/supervisor", json!({ "deviceId": 7 }), "path"),
            ("/supervisor/ping", json!({ "deviceId": 7.5 }), "`deviceId`"),
            ("/supervisor/ping", json!({ "deviceId": [] }), "`deviceId`"),
            ("/supervisor/ping", json!({ "appId": "x" }), "`appId`"),
            (
                "/supervisor/ping",
                json!({ "uuid": "a' or 1 eq 1" }),
                "`uuid`",
            ),
            ("/supervisor/ping", json!({ "uuid": "" }), "`uuid`"),
            (
                "/supervisor/ping",
                json!({ "deviceId": 7, "method": "TRACE" }),
                "`method`",
            ),
            (
                "/supervisor/ping",
                json!({ "deviceId": 7, "method": 1 }),
                "`method`",
            ),
            (
                "/supervisor/ping",
                json!({ "deviceId": 7, "data": [1] }),
                "`data`",
            ),
        ] {
            let why = proxy_request(address, body.clone()).expect_err("refused");
            assert!(why.contains(named), "{body}: {why}");
        }
    }
}
