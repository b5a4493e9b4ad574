//! A device in developer mode, which the tool accesses through its API.

use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::uri::Authority;
use http_body_util::{BodyExt as _, Limited};
use plugin_manifest::check_name;
use reqwest::redirect::Policy;
use reqwest::{Body, Client, Method};
use serde_json::Value;

/// The port of supervisors.
const PORT: u16 = 48484;
const CONNECT: Duration = Duration::from_secs(10);
/// The time limit from a request to the end of its answer: a device may compile for a minute, after a slow upload.
const WHOLE: Duration = Duration::from_secs(720);
/// The maximum length of an answer that is read, in bytes.
const MOST: usize = 1 << 20;

/// The address of a device: `10.0.0.7`, `shelf.local:48484` or `[fe80::1]`, optionally after `http://`.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{text}")]
pub(crate) struct DeviceAddress {
    /// The text that the author wrote.
    text: String,
    authority: String,
}

impl FromStr for DeviceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = text.strip_prefix("http://").unwrap_or(text);
        let place = place.trim_end_matches('/');
        let authority = place.parse::<Authority>().ok();
        // A name and a password would be sent to the device instead of the key.
        let authority = authority.filter(|_| !place.contains('@'));
        let authority = authority.ok_or_else(|| {
            "give the address of a device, for example `10.0.0.7` or `shelf.local:48484`".to_owned()
        })?;
        let authority = match authority.port() {
            Some(_) => authority.to_string(),
            None => format!("{authority}:{PORT}"),
        };
        Ok(DeviceAddress {
            text: place.to_owned(),
            authority,
        })
    }
}

/// A client of devices.
pub(crate) struct DeviceClient<'a> {
    client: Client,
    key: &'a str,
}

impl<'a> DeviceClient<'a> {
    /// Creates the client, which has this API key.
    ///
    /// # Errors
    /// The key is missing or not valid.
    pub(crate) fn new(key: Option<&'a str>) -> Result<Self> {
        let is_key = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let key = key.context(
            "a device's API key is missing: give it in SUPERVISOR_PLUGIN_DEVICE_KEY or with --key; \
             `supervisor api-key show` prints it on the device",
        )?;
        let key = key.trim();
        ensure!(
            !key.is_empty() && key.bytes().all(is_key),
            "the key has other characters than letters, digits and `_`: `supervisor api-key show` prints it on the device"
        );
        // The key is sent only to the device: neither to a proxy nor to an address that the device names.
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .build()
            .context("failed to set up the client")?;
        Ok(DeviceClient { client, key })
    }

    /// Has the device install a plugin, and returns the object in its answer.
    ///
    /// # Errors
    /// The device cannot be reached, or refuses the plugin.
    pub(crate) async fn install(
        &self,
        device: &DeviceAddress,
        name: &str,
        component: Bytes,
    ) -> Result<Value> {
        self.send(Method::PUT, device, name, component).await
    }

    /// Has the device remove a plugin.
    ///
    /// # Errors
    /// The device cannot be reached, or refuses.
    pub(crate) async fn uninstall(&self, device: &DeviceAddress, name: &str) -> Result<()> {
        check_name(name).map_err(anyhow::Error::msg)?;
        let removed = self.send(Method::DELETE, device, name, Bytes::new()).await;
        removed.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        device: &DeviceAddress,
        name: &str,
        body: Bytes,
    ) -> Result<Value> {
        let url = format!("http://{}/v3/plugins/{name}", device.authority);
        let request = self
            .client
            .request(method, url)
            .bearer_auth(self.key)
            .header("content-type", "application/wasm")
            .body(body);
        let answer = request.send().await;
        let answer = answer.map_err(|error| {
            anyhow::Error::new(error.without_url()).context("it does not answer")
        })?;
        let status = answer.status();
        let body = Limited::new(Body::from(answer), MOST).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("failed to read its answer: {error}"))?;
        let body = body.to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() && answer.is_object() {
            return Ok(answer);
        }
        match answer["message"].as_str() {
            Some(message) if message != "Unauthorized" => bail!("{}", printable(message)),
            _ if status == 401 => bail!(
                "the key is not the device's own: `supervisor api-key show` prints it on the device"
            ),
            _ => bail!(
                "it answered {status}: it is not a supervisor, or one that is older than this tool"
            ),
        }
    }
}

/// Returns text from a device that is safe to show: line breaks are the only control characters that are kept.
pub(crate) fn printable(text: &str) -> String {
    let shown = |char: char| match char {
        '\n' => char,
        char if char.is_control() => '\u{fffd}',
        char => char,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_the_supervisors_port_unless_it_names_another() {
        for (text, authority) in [
            ("10.0.0.7", Some("10.0.0.7:48484")),
            ("10.0.0.7:80", Some("10.0.0.7:80")),
            ("http://shelf.local/", Some("shelf.local:48484")),
            ("[fe80::1]", Some("[fe80::1]:48484")),
            ("[::1]:48485", Some("[::1]:48485")),
            ("https://shelf.local", None),
            ("a@b", None),
            ("a b", None),
            ("a/b", None),
            ("", None),
        ] {
            let address = text.parse::<DeviceAddress>().ok();
            let shown = address.map(|address| address.authority);
            assert_eq!(shown.as_deref(), authority, "{text}");
        }
    }

    #[test]
    fn text_of_a_device_does_not_steer_a_terminal() {
        assert_eq!(printable("a\nb\u{1b}[2J\r"), "a\nb\u{fffd}[2J\u{fffd}");
    }
}
