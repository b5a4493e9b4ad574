//! A fake device: the real device end of the tunnel, with a router of the test in place of the supervisor.

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use tunnel::{CloseMessage, End, Offer};

use crate::harness::{ApiCaller, Cloud};

/// The protocol of the tunnel.
pub(crate) const PROTOCOL: &str = "h2.platform";
/// The key that the cloud should send to each of these devices.
pub(crate) const SECRET: &str = "secret of the supervisor";

/// A device that is registered with the cloud.
#[derive(Debug, Clone)]
pub(crate) struct KnownDevice {
    pub(crate) id: i64,
    pub(crate) actor: i64,
    pub(crate) uuid: String,
    pub(crate) key: String,
}

/// Creates a device of a fleet, with a key, and reports its secret.
pub(crate) async fn known(cloud: &Cloud, ann: &ApiCaller<'_>, fleet: i64) -> KnownDevice {
    let fleets = ann
        .rows(&format!(
            "/v7/application({fleet})?$select=is_for__device_type"
        ))
        .await;
    let device_type = fleets[0]["is_for__device_type"]["__id"].clone();
    let device = json!({ "belongs_to__application": fleet, "is_of__device_type": device_type });
    let id = ann.create("device", device).await;
    let row = ann
        .rows(&format!("/v7/device({id})?$select=uuid,actor"))
        .await
        .remove(0);
    let path = format!("/api-key/device/{id}/device-key");
    let (status, key) = ann.send(reqwest::Method::POST, &path, json!({})).await;
    assert_eq!(status, StatusCode::OK, "{key}");
    let key = key.as_str().expect("a key").to_owned();
    let report = json!({ "api_secret": SECRET });
    let path = format!("/v7/device({id})");
    let (status, answer) = cloud
        .by(key.clone())
        .send(reqwest::Method::PATCH, &path, report)
        .await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    KnownDevice {
        id,
        actor: row["actor"]["__id"].as_i64().expect("an actor"),
        uuid: row["uuid"].as_str().expect("a uuid").to_owned(),
        key,
    }
}

/// Requests a tunnel with these headers; returns the connection, or the status if there is none.
pub(crate) async fn ask_for_tunnel(
    cloud: &Cloud,
    uuid: &str,
    key: Option<&str>,
    headers: http::HeaderMap,
) -> Result<http::Response<hyper::body::Incoming>, StatusCode> {
    let answer = tunnel_answer(&cloud.url, uuid, key, headers).await;
    answer.expect("an answer")
}

/// Does the same at an address where possibly nobody answers.
async fn tunnel_answer(
    url: &str,
    uuid: &str,
    key: Option<&str>,
    headers: http::HeaderMap,
) -> Option<Result<http::Response<hyper::body::Incoming>, StatusCode>> {
    let address = url.strip_prefix("http://").expect("an address");
    let stream = TcpStream::connect(address).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, Body>(TokioIo::new(stream))
            .await
            .ok()?;
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let mut request = Request::get(format!("/device/v3/{uuid}/tunnel"))
        .header(header::HOST, address)
        .body(Body::empty())
        .expect("a request");
    request.headers_mut().extend(headers);
    if let Some(key) = key {
        let bearer = HeaderValue::from_str(&format!("Bearer {key}")).expect("a key");
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
    }
    let answer = sender.send_request(request).await.ok()?;
    Some(match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => Ok(answer),
        other => Err(other),
    })
}

/// Opens the tunnel of a device, and answers with this router until the task is aborted or the cloud ends the tunnel;
/// returns the cloud's final message.
pub(crate) async fn connect(
    cloud: &Cloud,
    device: &KnownDevice,
    router: Router,
) -> JoinHandle<Option<CloseMessage>> {
    let offer = Offer::new(PROTOCOL).expect("an offer");
    let answer = ask_for_tunnel(cloud, &device.uuid, Some(&device.key), offer.headers())
        .await
        .expect("a tunnel");
    offer
        .is_taken(answer.status(), answer.headers())
        .expect("a tunnel");
    served(answer, router).await.expect("the connection")
}

/// Does the same at an address where possibly nobody answers.
pub(crate) async fn connect_at(
    url: &str,
    device: &KnownDevice,
    router: Router,
) -> Option<JoinHandle<Option<CloseMessage>>> {
    let offer = Offer::new(PROTOCOL).expect("an offer");
    let answer = tunnel_answer(url, &device.uuid, Some(&device.key), offer.headers()).await?;
    served(answer.ok()?, router).await
}

async fn served(
    answer: http::Response<hyper::body::Incoming>,
    router: Router,
) -> Option<JoinHandle<Option<CloseMessage>>> {
    let connection = hyper::upgrade::on(answer).await.ok()?;
    Some(tokio::spawn(async move {
        let (pipe, closer) = tunnel::over(TokioIo::new(connection), End::Device).await;
        let answer = move |request| {
            let router = router.clone();
            async move {
                match router.oneshot(request).await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                }
            }
        };
        let _ = tunnel::serve(pipe, answer, std::future::pending()).await;
        closer.close_message().await
    }))
}
