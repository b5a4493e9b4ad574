//! A component of `wasi:http`, as somebody would write it who has never heard of this project. Only `plugin.toml` makes
//! it a plugin.

use std::convert::Infallible;

use futures_lite::stream::unfold;
use wstd::http::body::{Body, Bytes};
use wstd::http::{Error, Method, Request, Response, StatusCode};
use wstd::time::Duration;

#[wstd::http_server]
async fn main(request: Request<Body>) -> Result<Response<Body>, Error> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (method, segments.as_slice()) {
        (Method::GET, [""]) => Ok(Response::new("Hello, wasi:http!\n".to_owned().into())),
        (Method::POST, ["shout"]) => shout(request).await,
        (Method::GET, [name, "countdown"]) => Ok(countdown((*name).to_owned())),
        _ => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_FOUND;
            Ok(response)
        }
    }
}

/// Returns the text of the request in capital letters.
async fn shout(mut request: Request<Body>) -> Result<Response<Body>, Error> {
    let text = request.body_mut().str_contents().await?.to_uppercase();
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    headers.insert("content-type", "text/plain; charset=utf-8".parse()?);
    Ok(response)
}

/// Returns three lines, a tenth of a second apart.
fn countdown(name: String) -> Response<Body> {
    let lines = unfold(3, move |left| {
        let line = Bytes::from(format!("{left}, {name}\n"));
        async move {
            if left == 0 {
                return None;
            }
            wstd::task::sleep(Duration::from_millis(100)).await;
            Some((Ok::<_, Infallible>(line), left - 1))
        }
    });
    Response::new(Body::from_try_stream(lines))
}
