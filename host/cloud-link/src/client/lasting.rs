//! Lasting requests: the output of services, and the tunnel.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};

use super::Client;
use super::answer::refusal;
use super::connections::CONNECT_WITHIN;
use super::error::{CloudError, unreachable};

impl Client {
    /// `POST /device/v2/<uuid>/log-stream`: lines as NDJSON, packed, for as long as `body` lasts; any 2xx is success.
    /// `limit` is for the whole request, if its end is known.
    pub(crate) async fn send_logs(
        &self,
        body: reqwest::Body,
        limit: Option<Duration>,
    ) -> Result<(), CloudError> {
        let base = self.identity.logs_endpoint.as_ref();
        let base = base.unwrap_or(&self.identity.endpoint);
        let url = format!("{base}/device/v2/{}/log-stream", self.identity.uuid);
        let mut headers = self.headers(&self.identity.device_key())?;
        let ndjson = HeaderValue::from_static("application/x-ndjson");
        headers.insert(CONTENT_TYPE, ndjson);
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let request = self
            .connections
            .lasting()?
            .post(url)
            .headers(headers)
            .body(body);
        let what = "take logs";
        let answer = match limit {
            None => request.send().await,
            Some(limit) => tokio::time::timeout(limit, request.send())
                .await
                .map_err(|_| CloudError::Timeout { what, limit })?,
        };
        let answer = answer.map_err(unreachable)?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(refusal(answer, CONNECT_WITHIN).await)
    }

    /// `GET /device/v3/<uuid>/tunnel`: returns a connection that has switched protocols, to WebSocket messages of this
    /// subprotocol.
    pub(crate) async fn tunnel(&self, protocol: &str) -> Result<reqwest::Upgraded, CloudError> {
        let offer =
            tunnel::Offer::new(protocol).map_err(|error| CloudError::Invalid(error.to_string()))?;
        let mut headers = self.headers(&self.identity.device_key())?;
        headers.extend(offer.headers());
        let (endpoint, uuid) = (&self.identity.endpoint, &self.identity.uuid);
        let url = format!("{endpoint}/device/v3/{uuid}/tunnel");
        let request = self.connections.lasting()?.get(url).headers(headers).send();
        let late = |_| CloudError::Timeout {
            what: "open a tunnel",
            limit: CONNECT_WITHIN,
        };
        let answer = tokio::time::timeout(CONNECT_WITHIN, request).await;
        let answer = answer.map_err(late)?.map_err(unreachable)?;
        if answer.status().is_client_error() || answer.status().is_server_error() {
            return Err(refusal(answer, CONNECT_WITHIN).await);
        }
        let accepted = offer.is_taken(answer.status(), answer.headers());
        accepted.map_err(|error| CloudError::Invalid(error.to_string()))?;
        let upgraded = tokio::time::timeout(CONNECT_WITHIN, answer.upgrade()).await;
        upgraded.map_err(late)?.map_err(unreachable)
    }
}
