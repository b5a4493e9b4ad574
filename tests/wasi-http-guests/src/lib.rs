//! A component that answers through `wasi:http`, and does what its path names, mostly things that it should not do. It
//! has no manifest; each test adds one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a guest of tests"
)]

use wasip2::exports::http::incoming_handler;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingRequest, IncomingResponse,
    Method, OutgoingBody, OutgoingRequest, OutgoingResponse, RequestOptions, ResponseOutparam,
    Scheme,
};
use wasip2::io::streams::{InputStream, StreamError};

#[allow(
    unsafe_code,
    missing_docs,
    unused_qualifications,
    unreachable_pub,
    clippy::allow_attributes_without_reason,
    reason = "generated from wit/"
)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package tests:guest;
            world guest {
                import platform:supervisor/config@1.4.0;
            }
        ",
        world: "tests:guest/guest",
        generate_all,
    });
}

use bindings::platform::supervisor::config;

struct Guest;

#[allow(unsafe_code, reason = "generated from the interfaces of wasi:http")]
mod exports {
    use super::Guest;
    wasip2::http::proxy::export!(Guest);
}

impl incoming_handler::Guest for Guest {
    fn handle(request: IncomingRequest, place: ResponseOutparam) {
        let path = request.path_with_query().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        match path {
            "/" => answer(place, 200, &[], b"the root"),
            "/request" => answer(place, 200, &[], account(&request).as_bytes()),
            "/echo" => echo(&request, place),
            "/long" => answer(place, 200, &[], &vec![b'x'; 3 << 20]),
            "/created" => answer(
                place,
                201,
                &[("location", "/v3/5"), ("content-length", "4")],
                b"five",
            ),
            "/status" => answer(place, 600, &[], b""),
            "/header" => answer(place, 200, &[("x-long", &"x".repeat(20 << 10))], b""),
            "/silent" => {}
            "/error" => {
                let error = ErrorCode::InternalError(Some("out of paper".to_owned()));
                ResponseOutparam::set(place, Err(error));
            }
            "/timeout" => ResponseOutparam::set(place, Err(ErrorCode::HttpResponseTimeout)),
            "/panic" => panic!("out of ink"),
            "/panic-later" => {
                let (body, _) = begin(place, 200, &[]);
                let stream = body.write().unwrap();
                stream.blocking_write_and_flush(b"so far").unwrap();
                panic!("out of ink");
            }
            "/given-up" => drop(begin(place, 200, &[])),
            "/short" => {
                let (body, _) = begin(place, 200, &[("content-length", "10")]);
                write(&body, b"five!");
                let _ = OutgoingBody::finish(body, None);
            }
            "/spin-later" => {
                let (body, _) = begin(place, 200, &[]);
                write(&body, b"so far");
                loop {
                    std::hint::black_box(0);
                }
            }
            "/config" => answer(place, 200, &[], config::json().as_bytes()),
            "/texts" => answer(place, 200, &[], texts().as_bytes()),
            "/headers" => {
                fields(60);
            }
            "/hoard" => hoard(),
            "/fetch" => answer(place, 200, &[], fetch(query).as_bytes()),
            "/post" => answer(place, 200, &[], post(query).as_bytes()),
            "/fetch-six" => answer(place, 200, &[], fetch_six(query).as_bytes()),
            "/fetch-held" => answer(place, 200, &[], fetch_held(query).as_bytes()),
            "/fetch-soon" => answer(place, 200, &[], fetch_soon(query).as_bytes()),
            "/fetch-field" => answer(place, 200, &[], fetch_field(query).as_bytes()),
            "/fetch-long" => answer(place, 200, &[], fetch_long(query).as_bytes()),
            "/fetch-many-fields" => answer(place, 200, &[], fetch_many_fields(query).as_bytes()),
            "/post-long" => answer(place, 200, &[], post_long(query).as_bytes()),
            "/post-sized" => answer(place, 200, &[], post_sized(query).as_bytes()),
            _ => answer(place, 404, &[], b"no such path"),
        }
    }
}

/// Sets an answer whose body follows later.
fn begin(place: ResponseOutparam, status: u16, fields: &[(&str, &str)]) -> (OutgoingBody, bool) {
    let headers = Fields::new();
    let mut fits = true;
    for (name, value) in fields {
        fits &= headers.append(name, value.as_bytes()).is_ok();
    }
    let response = OutgoingResponse::new(headers);
    fits &= response.set_status_code(status).is_ok();
    let body = response.body().unwrap();
    ResponseOutparam::set(place, Ok(response));
    (body, fits)
}

fn answer(place: ResponseOutparam, status: u16, fields: &[(&str, &str)], text: &[u8]) {
    let (body, _) = begin(place, status, fields);
    write(&body, text);
    OutgoingBody::finish(body, None).unwrap();
}

fn write(body: &OutgoingBody, bytes: &[u8]) {
    let stream = body.write().unwrap();
    for piece in bytes.chunks(4096) {
        stream.blocking_write_and_flush(piece).unwrap();
    }
}

/// Describes the request as the component sees it.
fn account(request: &IncomingRequest) -> String {
    let mut lines = vec![format!(
        "{:?} {:?} {:?} {:?}",
        request.method(),
        request.scheme(),
        request.authority(),
        request.path_with_query()
    )];
    let mut headers: Vec<_> = request.headers().entries();
    headers.sort();
    for (name, value) in headers {
        lines.push(format!("{name}: {}", String::from_utf8_lossy(&value)));
    }
    lines.join("\n")
}

fn read(stream: &InputStream, mut each: impl FnMut(&[u8])) {
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(bytes) => each(&bytes),
            Err(StreamError::Closed) => return,
            Err(StreamError::LastOperationFailed(error)) => panic!("{}", error.to_debug_string()),
        }
    }
}

/// Sends back the body while reading it.
fn echo(request: &IncomingRequest, place: ResponseOutparam) {
    let incoming = request.consume().unwrap();
    let (body, _) = begin(place, 200, &[]);
    {
        let (from, to) = (incoming.stream().unwrap(), body.write().unwrap());
        read(&from, |bytes| {
            for piece in bytes.chunks(4096) {
                to.blocking_write_and_flush(piece).unwrap();
            }
        });
    }
    drop(IncomingBody::finish(incoming));
    OutgoingBody::finish(body, None).unwrap();
}

/// Says which texts of a request are refused for their length.
fn texts() -> String {
    let request = OutgoingRequest::new(Fields::new());
    let (long, fits) = (1 << 20, 8 << 10);
    let method = |length| {
        request
            .set_method(&Method::Other("M".repeat(length)))
            .is_ok()
    };
    let path = |length: usize| {
        let path = format!("/{}", "p".repeat(length - 1));
        request.set_path_with_query(Some(&path)).is_ok()
    };
    let authority = |length| request.set_authority(Some(&"a".repeat(length))).is_ok();
    format!(
        "method {} {}, path {} {}, authority {} {}",
        method(32),
        method(long),
        path(fits),
        path(32 << 10),
        authority(fits),
        authority(32 << 10)
    )
}

/// Returns this many headers of a kilobyte.
fn fields(count: usize) -> Fields {
    let fields = Fields::new();
    for _ in 0..count {
        fields.append("x", &[b'x'; 1024]).unwrap();
    }
    fields
}

/// Makes the host hold as many requests as it accepts, each as large as allowed.
fn hoard() {
    let mut held = Vec::new();
    loop {
        let request = OutgoingRequest::new(fields(28));
        let path = format!("/{}", "p".repeat((8 << 10) - 1));
        request.set_path_with_query(Some(&path)).unwrap();
        held.push(request);
    }
}

/// Creates a request to `http://…`.
fn request(url: &str, method: &Method) -> OutgoingRequest {
    request_with(url, method, Fields::new())
}

fn request_with(url: &str, method: &Method, fields: Fields) -> OutgoingRequest {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap();
    let request = OutgoingRequest::new(fields);
    request.set_method(method).unwrap();
    request.set_scheme(Some(&Scheme::Http)).unwrap();
    request.set_authority(Some(authority)).unwrap();
    request
        .set_path_with_query(Some(&format!("/{path}")))
        .unwrap();
    request
}

/// Waits for the answer.
fn awaited(answer: &FutureIncomingResponse) -> Result<IncomingResponse, ErrorCode> {
    answer.subscribe().block();
    answer.get().unwrap().unwrap()
}

fn response(answer: &FutureIncomingResponse) -> String {
    match awaited(answer) {
        Ok(response) => {
            let mut text = Vec::new();
            let body = response.consume().unwrap();
            read(&body.stream().unwrap(), |bytes| {
                text.extend_from_slice(bytes)
            });
            format!("{} {}", response.status(), String::from_utf8_lossy(&text))
        }
        Err(error) => format!("{error:?}"),
    }
}

fn fetch(url: &str) -> String {
    sent(request(url, &Method::Get), None)
}

fn sent(request: OutgoingRequest, options: Option<RequestOptions>) -> String {
    match outgoing_handler::handle(request, options) {
        Ok(answer) => response(&answer),
        Err(error) => format!("{error:?}"),
    }
}

/// Gives the other host a tenth of a second.
fn fetch_soon(url: &str) -> String {
    let options = RequestOptions::new();
    options.set_first_byte_timeout(Some(100_000_000)).unwrap();
    sent(request(url, &Method::Get), Some(options))
}

/// Returns the header `x-one` of the answer.
fn fetch_field(url: &str) -> String {
    let answer = outgoing_handler::handle(request(url, &Method::Get), None).unwrap();
    let values = awaited(&answer).unwrap().headers().get("x-one");
    String::from_utf8_lossy(&values.concat()).into_owned()
}

/// Sends a request whose host and path are as long as each may be.
fn fetch_long(url: &str) -> String {
    let request = request(url, &Method::Get);
    let long = |length: usize| "a".repeat(length);
    request.set_authority(Some(&long(8 << 10))).unwrap();
    let path = format!("/{}", long((8 << 10) - 1));
    request.set_path_with_query(Some(&path)).unwrap();
    sent(request, None)
}

/// Sends more headers than a request may have.
fn fetch_many_fields(url: &str) -> String {
    let fields = Fields::new();
    for _ in 0..65 {
        fields.append("x-one", b"1").unwrap();
    }
    sent(request_with(url, &Method::Get, fields), None)
}

/// Sends a request after four whose answers it holds, and another one after it let go of them.
fn fetch_held(url: &str) -> String {
    let get = || outgoing_handler::handle(request(url, &Method::Get), None).unwrap();
    let held: Vec<_> = (0..4).map(|_| awaited(&get()).unwrap()).collect();
    let beyond = response(&get());
    drop(held);
    format!("{beyond}, then {}", response(&get()))
}

/// Sends a body that is longer than one may be.
fn post_long(url: &str) -> String {
    let request = request(url, &Method::Post);
    let body = request.body().unwrap();
    let answer = outgoing_handler::handle(request, None).unwrap();
    {
        let stream = body.write().unwrap();
        let pieces = (0..=(512 << 10)).step_by(4096);
        // The host stops reading.
        let is_read = |_: &usize| stream.blocking_write_and_flush(&[b'x'; 4096]).is_ok();
        pieces.take_while(is_read).for_each(drop);
    }
    drop(OutgoingBody::finish(body, None));
    response(&answer)
}

/// Sends a body and its length.
fn post_sized(url: &str) -> String {
    let fields = Fields::new();
    fields.append("content-length", b"8").unwrap();
    fields.append("x-one", b"1").unwrap();
    let request = request_with(url, &Method::Post, fields);
    let body = request.body().unwrap();
    let answer = outgoing_handler::handle(request, None).unwrap();
    write(&body, b"the body");
    OutgoingBody::finish(body, None).unwrap();
    response(&answer)
}

fn post(url: &str) -> String {
    let request = request(url, &Method::Post);
    let body = request.body().unwrap();
    let answer = outgoing_handler::handle(request, None).unwrap();
    write(&body, b"the body");
    OutgoingBody::finish(body, None).unwrap();
    response(&answer)
}

/// Sends six requests at once.
fn fetch_six(url: &str) -> String {
    let answers: Vec<_> = (0..6)
        .map(|_| outgoing_handler::handle(request(url, &Method::Get), None).unwrap())
        .collect();
    let answers = answers.iter().map(response);
    answers.collect::<Vec<_>>().join("\n")
}
