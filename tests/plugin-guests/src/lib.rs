//! The component that the tests of the plugin runtime call: it does what its path names, mostly things that a plugin
//! should not do. It has no manifest; each test adds one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a guest of tests"
)]

mod gate;
mod misbehave;
mod provide;
mod reach;
#[cfg(target_family = "wasm")]
mod start;
mod streams;
mod traces;

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
                include platform:supervisor/endpoint@1.4.0;
                include platform:supervisor/identifier@1.4.0;
                include platform:supervisor/proxy@1.4.0;
                include platform:supervisor/os-updater@1.4.0;
                include platform:supervisor/watcher@1.4.0;
                import platform:supervisor/identify@1.4.0;
            }
        ",
        world: "tests:guest/guest",
        generate_all,
    });
}

use bindings::exports::platform::supervisor::{handler, identify};
use bindings::platform::supervisor::types::{Body, Error, Request, Response};
use bindings::platform::supervisor::{caller, config, identify_window, led, log, timer};

struct Guest;

#[allow(unsafe_code, reason = "generated from wit/")]
mod exports {
    super::bindings::export!(Guest with_types_in super::bindings);
    use super::Guest;
}

/// The most common answer.
fn text(text: impl Into<String>) -> Result<Response, Error> {
    answer(200, &[], text)
}

fn answer(
    status: u16,
    headers: &[(&str, &str)],
    text: impl Into<String>,
) -> Result<Response, Error> {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()));
    Ok(Response {
        status,
        headers: headers.collect(),
        body: Body::Bytes(text.into().into_bytes()),
    })
}

fn error(status: u16, message: impl Into<String>) -> Result<Response, Error> {
    Err(Error {
        status,
        code: "test".to_owned(),
        message: message.into(),
    })
}

impl handler::Guest for Guest {
    async fn handle(request: Request) -> Result<Response, Error> {
        let path = request.path.clone();
        let Some(what) = path.rsplit('/').next() else {
            return error(404, "nothing");
        };
        if let Some(outcome) = misbehave::handle(what) {
            return outcome;
        }
        match what {
            "hello" => text("hello"),
            "traces" => text(traces::leave(true).to_string()),
            "few-traces" => text(traces::leave(false).to_string()),
            "request" => text(describe(&request)),
            "empty" => Ok(Response {
                status: 204,
                headers: Vec::new(),
                body: Body::Empty,
            }),
            "many-tasks" => {
                for _ in 0..10_000 {
                    wit_bindgen::spawn_local(timer::sleep(u32::MAX));
                }
                timer::sleep(1).await;
                text("10000 tasks")
            }
            "hold" => {
                let held = vec![1_u8; (argument_of(&request, "mib") as usize) << 20];
                timer::sleep(milliseconds(&request)).await;
                text(format!("held {}", std::hint::black_box(held).len() >> 20))
            }
            "large-answer" => Ok(Response {
                status: 200,
                headers: vec![("x-one".to_owned(), b"1".to_vec())],
                body: Body::Bytes(vec![b'a'; argument_of(&request, "bytes") as usize]),
            }),
            "large-line" => {
                let line = "l".repeat(argument_of(&request, "bytes") as usize);
                log::write(log::Level::Info, &line);
                text("logged")
            }
            "sleep" => {
                timer::sleep(milliseconds(&request)).await;
                text("slept")
            }
            _ => match streams::handle(what, request).await {
                Ok(outcome) => outcome,
                Err(request) => reach::handle(what, &request).await,
            },
        }
    }
}

impl identify::Guest for Guest {
    /// Lights the LED `ACT`, if there is one, until the window is over. If the configuration contains `identify-fails`,
    /// it fails with text that looks like lines of the log; if it contains `identify-names`, it fails with the caller.
    async fn identify() -> Result<(), String> {
        if config::json().contains("identify-names") {
            return Err(caller());
        }
        if config::json().contains("identify-fails") {
            return Err("\nFORGED INFO access: POST /v1/reboot status=202".repeat(1 << 14));
        }
        let _light = led::Light::open("ACT").ok().inspect(|light| {
            let _ = light.set(1);
        });
        while identify_window::remaining_ms() > 0 {
            timer::sleep(20).await;
        }
        Ok(())
    }
}

/// Returns the caller of this instance.
fn caller() -> String {
    format!("{:?} {:?}", caller::scope(), caller::plugin())
}

/// Returns all that the host has passed of the request, except its body.
fn describe(request: &Request) -> String {
    let Request {
        method,
        path,
        route,
        params,
        query,
        headers,
        ..
    } = request;
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value)))
        .collect();
    format!(
        "{method} {path} {route} {params:?} {query} {}",
        headers.join(",")
    )
}

/// Returns the value of `?ms=`.
fn milliseconds(request: &Request) -> u32 {
    argument_of(request, "ms")
}

/// Returns a number of the query string.
fn argument_of(request: &Request, name: &str) -> u32 {
    argument(request, name)
        .and_then(|text| text.parse().ok())
        .unwrap_or(u32::MAX)
}

/// Returns a value of the query string, unchanged.
fn argument<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    request
        .query
        .split('&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
